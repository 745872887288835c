#include "rules/key_builder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/key_hash.h"
#include "rules/key_text.h"

namespace weir::rules {

namespace {

using Kind = KeySource::Kind;

// The key of a rule that counts everybody together.
constexpr std::string_view kAll = "all";

bool Has(const KeySource& source, const CompiledRule& rule, const RequestView& request) noexcept {
  switch (source.kind) {
    case Kind::kParameter:
      return true;  // the pattern that matched has it
    case Kind::kRoute:
      return !request.Value(source.attribute).empty() || !rule.model->paths.empty() ||
             !request.path().empty();
    case Kind::kText:
    case Kind::kAddress:
      break;
  }
  return !request.Value(source.attribute).empty();
}

// Appends to a span of bytes; once something does not fit, nothing does.
class Writer {
 public:
  explicit Writer(std::span<char> out) noexcept : out_(out) {}

  void Put(std::string_view text) noexcept {
    if (text.size() > out_.size() - size_) {
      ok_ = false;
      return;
    }
    std::memcpy(out_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void PutEscaped(std::string_view text) noexcept {
    const size_t written = WriteEscaped(text, out_.data() + size_, out_.size() - size_);
    ok_ = ok_ && written != 0;
    size_ += written;
  }
  void PutHash(uint64_t hash) noexcept {
    std::array<char, 16> digits;
    for (char& digit : digits) {
      digit = "0123456789abcdef"[hash >> 60];
      hash <<= 4;
    }
    Put({digits.data(), digits.size()});
  }
  [[nodiscard]] size_t size() const noexcept { return ok_ ? size_ : 0; }

 private:
  std::span<char> out_;
  size_t size_ = 0;
  bool ok_ = true;
};

std::string_view ValueOf(const KeySource& source, const PathPattern* pattern,
                         const RequestView& request, unsigned ipv6_bits,
                         std::span<char, base::IpAddress::kTextBytes> address) noexcept {
  switch (source.kind) {
    case Kind::kAddress:
      return request.AddressKey(source.ipv4_bits, ipv6_bits, address);
    case Kind::kParameter:
      return request.segments()[pattern->PositionOf(source.name)];
    case Kind::kRoute:
      if (const std::string_view given = request.Value(source.attribute); !given.empty()) {
        return given;
      }
      return pattern != nullptr ? std::string_view(pattern->text)
                                : request.path().substr(0, request.path().find_first_of("?#"));
    case Kind::kText:
      break;
  }
  return request.Value(source.attribute);
}

void PutValue(std::string_view value, Writer& writer) noexcept {
  if (value.size() <= kMaxKeyPartBytes) {
    writer.PutEscaped(value);
    return;
  }
  constexpr size_t kShown = 64;
  writer.PutEscaped(value.substr(0, kShown));
  writer.Put("\\#");  // which no escaped text contains
  writer.PutHash(base::HashKeySeeded(value, 1));
  writer.PutHash(base::HashKeySeeded(value, 2));
}

}  // namespace

bool HasKey(const CompiledRule& rule, const RequestView& request) noexcept {
  return std::all_of(rule.per.begin(), rule.per.end(), [&](const std::vector<KeySource>& part) {
    return std::any_of(part.begin(), part.end(),
                       [&](const KeySource& source) { return Has(source, rule, request); });
  });
}

size_t BuildKey(const CompiledRule& rule, const PathPattern* pattern, const RequestView& request,
                unsigned ipv6_bits, std::span<char> out) noexcept {
  Writer writer(out);
  if (rule.per.empty()) {
    writer.Put(kAll);
  }
  const unsigned bits =
      rule.model->ipv6_prefix_bits != 0 ? rule.model->ipv6_prefix_bits : ipv6_bits;
  std::array<char, base::IpAddress::kTextBytes> address;
  bool first = true;
  for (const std::vector<KeySource>& part : rule.per) {
    if (!first) {
      writer.Put({&kPartSeparator, 1});
    }
    first = false;
    const auto source = std::find_if(part.begin(), part.end(), [&](const KeySource& candidate) {
      return Has(candidate, rule, request);
    });
    if (source == part.end()) {
      writer.Put(kSharedPart);
      continue;
    }
    if (part.size() > 1) {  // so that user x and address x are two
      writer.Put(source->name);
      writer.Put("=");
    }
    PutValue(ValueOf(*source, pattern, request, bits, address), writer);
  }
  return writer.size();
}

}  // namespace weir::rules
