#include "envoy/rls_json.h"

// A value that is not what it should be is an answer here, never an exception.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/spelling.h"
#include "envoy/json_writing.h"

namespace weir::envoy {

namespace {

namespace ondemand = simdjson::ondemand;

// The fields of one message, each by both of its names.
struct FieldName {
  std::string_view camel;
  std::string_view snake;
};

constexpr std::array<FieldName, 3> kRequestFields = {
    {{"domain", "domain"}, {"descriptors", "descriptors"}, {"hitsAddend", "hits_addend"}}};
constexpr std::array<FieldName, 3> kDescriptorFields = {
    {{"entries", "entries"}, {"limit", "limit"}, {"hitsAddend", "hits_addend"}}};
constexpr std::array<FieldName, 2> kEntryFields = {{{"key", "key"}, {"value", "value"}}};
constexpr std::array<FieldName, 2> kLimitFields = {
    {{"requestsPerUnit", "requests_per_unit"}, {"unit", "unit"}}};

}  // namespace

struct RlsJsonReader::State {
  std::string padded;
  ondemand::parser parser;
  ondemand::document document;
  RequestBuffer buffer;
  std::string error;

  bool Fail(std::string message) {
    if (error.empty()) {
      error = std::move(message);
    }
    return false;
  }

  // Calls `take` with each field's index and value; null is as if it were not there.
  template <size_t kCount, class Take>
  bool ReadMessage(ondemand::value value, const std::array<FieldName, kCount>& fields,
                   std::string_view what, Take take) {
    ondemand::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      return Fail(std::string(what) + " is not an object");
    }
    return ReadFields(object, fields, what, take);
  }

  template <size_t kCount, class Take>
  bool ReadFields(ondemand::object object, const std::array<FieldName, kCount>& fields,
                  std::string_view what, Take take) {
    unsigned seen = 0;
    for (auto member : object) {
      std::string_view name;
      ondemand::value value;
      if (member.unescaped_key().get(name) != simdjson::SUCCESS ||
          member.value().get(value) != simdjson::SUCCESS) {
        return Fail("the body is not JSON");
      }
      size_t index = 0;
      while (index < kCount && name != fields[index].camel && name != fields[index].snake) {
        ++index;
      }
      if (index == kCount) {
        return Fail(std::string(what) + " has no field " + base::Quoted(name, 40));
      }
      if ((seen >> index & 1U) != 0) {
        return Fail(std::string(what) + " has " + std::string(fields[index].camel) + " twice");
      }
      seen |= 1U << index;
      bool is_null = false;
      if (value.is_null().get(is_null) != simdjson::SUCCESS) {
        return Fail("the body is not JSON");
      }
      if (!is_null && !take(index, value)) {
        return Fail(std::string(what) + ": " + std::string(fields[index].camel) +
                    " is not what it should be");
      }
    }
    return true;
  }

  template <class Take>
  bool ReadList(ondemand::value value, Take take) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      return false;
    }
    for (auto item : array) {
      ondemand::value one;
      if (item.get(one) != simdjson::SUCCESS || !take(one)) {
        return false;
      }
    }
    return true;
  }

  static bool ReadText(ondemand::value value, std::string_view& text) {
    return value.get_string().get(text) == simdjson::SUCCESS;
  }

  // A number, or its text: 5, "5", 5.0, 5e0.
  static bool ReadWhole(ondemand::value value, uint64_t most, uint64_t& number) {
    std::string_view text;
    ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) {
      return false;
    }
    if (type == ondemand::json_type::string) {
      if (!ReadText(value, text)) {
        return false;
      }
    } else if (type == ondemand::json_type::number) {
      text = value.raw_json_token();
      while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
        text.remove_suffix(1);
      }
    } else {
      return false;
    }
    return ParseWhole(text, most, number);
  }

  static bool ParseWhole(std::string_view text, uint64_t most, uint64_t& number) {
    const char* const end = text.data() + text.size();
    const auto whole = std::from_chars(text.data(), end, number);
    if (whole.ec == std::errc() && whole.ptr == end) {
      return number <= most;
    }
    double fraction = 0;
    const auto real = std::from_chars(text.data(), end, fraction);
    constexpr double kExactMax = 9007199254740992.0;  // 2^53
    if (text.empty() || real.ec != std::errc() || real.ptr != end || fraction < 0 ||
        fraction > kExactMax || std::trunc(fraction) != fraction) {
      return false;
    }
    number = static_cast<uint64_t>(fraction);
    return number <= most;
  }

  bool ReadLimit(ondemand::value value, LimitOverride& limit) {
    return ReadMessage(value, kLimitFields, "limit", [&](size_t field, ondemand::value one) {
      uint64_t number = 0;
      if (field == 0) {
        const bool fits = ReadWhole(one, std::numeric_limits<uint32_t>::max(), number);
        limit.requests_per_unit = static_cast<uint32_t>(number);
        return fits;
      }
      std::string_view name;
      if (ReadText(one, name)) {
        const auto unit = ParseUnit(name);
        limit.unit = unit.value_or(Unit::kUnknown);
        // WEEK is not a unit of overrides, whose enum ends before it; names are in capitals.
        return unit.has_value() && ToString(*unit) == name && *unit != Unit::kWeek;
      }
      const bool fits = ReadWhole(one, kUnits - 1, number);
      limit.unit = static_cast<Unit>(number);
      return fits;
    });
  }

  bool ReadDescriptor(ondemand::value value) {
    // Through a copy: entries that follow move what AddDescriptor returns.
    Descriptor given;
    Descriptor& added = buffer.AddDescriptor();
    const bool good =
        ReadMessage(value, kDescriptorFields, "descriptor", [&](size_t field, ondemand::value one) {
          if (field == 0) {
            return ReadList(one, [this](ondemand::value entry) { return ReadEntry(entry); });
          }
          if (field == 1) {
            return ReadLimit(one, given.limit.emplace());
          }
          uint64_t hits = 0;
          const bool fits = ReadWhole(one, std::numeric_limits<uint64_t>::max(), hits);
          given.hits_addend = hits;
          return fits;
        });
    added.limit = given.limit;
    added.hits_addend = given.hits_addend;
    return good;
  }

  bool ReadEntry(ondemand::value value) {
    Entry entry;
    const bool good =
        ReadMessage(value, kEntryFields, "entry", [&](size_t field, ondemand::value one) {
          return ReadText(one, field == 0 ? entry.key : entry.value);
        });
    buffer.AddEntry(entry.key, entry.value);
    return good;
  }

  bool Read(std::string_view body) {
    error.clear();
    buffer.Begin();
    // simdjson looks at the bytes behind the text: blanks follow it here.
    padded.assign(body).append(simdjson::SIMDJSON_PADDING, ' ');
    ondemand::object object;
    if (parser.iterate(padded.data(), body.size(), padded.size()).get(document) !=
            simdjson::SUCCESS ||
        document.get_object().get(object) != simdjson::SUCCESS) {
      return Fail("the body is not a JSON object");
    }
    const bool good =
        ReadFields(object, kRequestFields, "request", [this](size_t field, ondemand::value value) {
          if (field == 0) {
            std::string_view domain;
            const bool is_text = ReadText(value, domain);
            buffer.set_domain(domain);
            return is_text;
          }
          if (field == 1) {
            return ReadList(value, [this](ondemand::value one) { return ReadDescriptor(one); });
          }
          uint64_t hits = 0;
          const bool fits = ReadWhole(value, std::numeric_limits<uint32_t>::max(), hits);
          buffer.set_hits_addend(static_cast<uint32_t>(hits));
          return fits;
        });
    return good && (document.current_location().error() == simdjson::OUT_OF_BOUNDS ||
                    Fail("something follows the JSON object"));
  }
};

RlsJsonReader::RlsJsonReader() : state_(std::make_unique<State>()) {}
RlsJsonReader::~RlsJsonReader() = default;

bool RlsJsonReader::Read(std::string_view body) {
  return state_->Read(body);
}

const Request& RlsJsonReader::request() {
  return state_->buffer.request();
}

std::string_view RlsJsonReader::error() const noexcept {
  return state_->error;
}

namespace {

// Members of one object, with commas between them.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  ~Members() { out_ += '}'; }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  std::string& Name(std::string_view name) {
    out_ += first_ ? "\"" : ",\"";
    out_ += name;
    out_ += "\":";
    first_ = false;
    return out_;
  }
  void Text(std::string_view name, std::string_view text) {
    if (!text.empty()) {
      AppendJsonString(Name(name), text);
    }
  }
  void Number(std::string_view name, uint64_t number) {
    if (number != 0) {
      AppendJsonNumber(Name(name), number);
    }
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void AppendSeconds(std::string& out, Duration duration) {
  const int64_t ns = duration.count();
  out += '"';
  AppendJsonNumber(out, static_cast<uint64_t>(ns / 1'000'000'000));
  if (ns % 1'000'000'000 != 0) {
    out += '.';
    out += std::to_string(1'000'000'000 + ns % 1'000'000'000).substr(1);
  }
  out += "s\"";
}

void AppendStatus(std::string& out, const DescriptorStatus& status) {
  Members members(out);
  if (status.code != Code::kUnknown) {
    members.Text("code", ToString(status.code));
  }
  if (status.has_limit) {
    Members limit(members.Name("currentLimit"));
    limit.Text("name", status.current_limit.name);
    limit.Number("requestsPerUnit", status.current_limit.requests_per_unit);
    if (status.current_limit.unit != Unit::kUnknown) {
      limit.Text("unit", ToString(status.current_limit.unit));
    }
  }
  members.Number("limitRemaining", status.limit_remaining);
  if (status.has_limit) {
    AppendSeconds(members.Name("durationUntilReset"), status.duration_until_reset);
  }
}

}  // namespace

void AppendJson(std::string& out, const Response& response) {
  Members members(out);
  if (response.overall_code != Code::kUnknown) {
    members.Text("overallCode", ToString(response.overall_code));
  }
  if (!response.statuses.empty()) {
    members.Name("statuses") += '[';
    for (size_t i = 0; i < response.statuses.size(); ++i) {
      out += i == 0 ? "" : ",";
      AppendStatus(out, response.statuses[i]);
    }
    out += ']';
  }
  if (!response.response_headers_to_add.empty()) {
    members.Name("responseHeadersToAdd") += '[';
    for (size_t i = 0; i < response.response_headers_to_add.size(); ++i) {
      out += i == 0 ? "" : ",";
      Members header(out);
      header.Text("key", response.response_headers_to_add[i].key);
      header.Text("value", response.response_headers_to_add[i].value);
    }
    out += ']';
  }
  if (response.has_dynamic_metadata) {
    AppendJson(members.Name("dynamicMetadata"), response.dynamic_metadata);
  }
}

int HttpStatusOf(const Response& response, bool store_failure_is_503) noexcept {
  if (response.failure != Failure::kNone) {
    return response.failure == Failure::kStore && store_failure_is_503 ? 503 : 400;
  }
  switch (response.overall_code) {
    case Code::kOk:
      return 200;
    case Code::kOverLimit:
      return 429;
    case Code::kUnknown:
      break;
  }
  return 500;
}

}  // namespace weir::envoy
