// The bodies of nearly all checks, read by hand: an object of texts, {"key": "user-1"}, where the
// reader of all JSON takes longer to begin than this does to end. It takes only what can be
// understood in one way (texts of ASCII without escapes, small whole numbers) and leaves everything
// else, and everything wrong, to that reader.
#include <array>

#include "weir/decision.h"

#include "codec/http/check_json_state.h"

namespace weir::codec::http {

namespace {

constexpr std::array<bool, 256> kIsPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) {
    plain[byte] = byte != '"' && byte != '\\';
  }
  return plain;
}();

// Each of these returns false, and means nothing more, if something else comes.
class PlainJson {
 public:
  explicit PlainJson(std::string_view text) noexcept
      : at_(text.data()), end_(text.data() + text.size()) {}

  [[nodiscard]] bool Take(char character) noexcept {
    SkipBlanks();
    if (at_ == end_ || *at_ != character) {
      return false;
    }
    ++at_;
    return true;
  }

  [[nodiscard]] bool TakeText(std::string_view& text) noexcept {
    if (!Take('"')) {
      return false;
    }
    const char* const begin = at_;
    while (at_ != end_ && kIsPlain[static_cast<uint8_t>(*at_)]) {
      ++at_;
    }
    text = {begin, static_cast<size_t>(at_ - begin)};
    return at_ != end_ && *at_++ == '"';
  }

  [[nodiscard]] bool TakeName(std::string_view& name) noexcept {
    return TakeText(name) && Take(':');
  }

  [[nodiscard]] bool TakeWhole(uint64_t& number) noexcept {
    constexpr size_t kDigitsMax = 9;
    SkipBlanks();
    const char* const begin = at_;
    number = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      number = number * 10 + static_cast<uint64_t>(*at_++ - '0');
      if (static_cast<size_t>(at_ - begin) > kDigitsMax) {
        return false;
      }
    }
    return at_ != begin && (*begin != '0' || at_ - begin == 1);
  }

  [[nodiscard]] bool AtEnd() noexcept {
    SkipBlanks();
    return at_ == end_;
  }

 private:
  void SkipBlanks() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }

  const char* at_;
  const char* const end_;
};

bool TakeAttributes(PlainJson& json, JsonReader::State& state) {
  if (!json.Take('{')) {
    return false;
  }
  if (json.Take('}')) {
    return true;
  }
  do {
    std::string_view name;
    std::string_view text;
    if (!json.TakeName(name) || !json.TakeText(text) || !state.AddAttribute(name, text)) {
      return false;
    }
  } while (json.Take(','));
  return json.Take('}');
}

bool TakeMember(PlainJson& json, std::string_view name, JsonReader::State& state,
                JsonReader::State::Object& into) {
  std::string_view text;
  Member member = kKey;
  bool good = false;
  if (name == "key") {
    good = json.TakeText(text) && state.AddAttribute("key", text);
  } else if (name == "attributes") {
    member = kAttributes;
    good = TakeAttributes(json, state);
  } else if (name == "cost") {
    member = kCost;
    static_assert(Cost::kMax >= 999'999'999);
    good = json.TakeWhole(into.check.cost);
  }
  good = good && (into.seen & member) == 0;
  into.seen = static_cast<uint16_t>(into.seen | member);
  return good;
}

}  // namespace

bool JsonReader::State::ReadPlain(std::string_view body, Object& into) {
  PlainJson json(body);
  if (!json.Take('{')) {
    return false;
  }
  do {
    std::string_view name;
    if (!json.TakeName(name) || !TakeMember(json, name, *this, into)) {
      return false;
    }
  } while (json.Take(','));
  return json.Take('}') && json.AtEnd() && (into.seen & (kAttributes | kKey)) != 0;
}

}  // namespace weir::codec::http
