#include "envoy/rls_wire.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <variant>

namespace weir::envoy {

namespace {

enum class Kind : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kEnd = 4,
  kFixed32 = 5
};

constexpr uint32_t Tag(uint32_t field, Kind kind) {
  return field << 3 | static_cast<uint32_t>(kind);
}

bool IsUtf8(std::string_view text) {
  for (const char character : text) {
    if (static_cast<signed char>(character) < 0) [[unlikely]] {
      return simdjson::validate_utf8(text.data(), text.size());
    }
  }
  return true;
}

// The fields of one message. Once something is wrong there are no more.
class Fields {
 public:
  Fields(std::string_view bytes, int depth)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {}

  // Goes on to the next field; false: none is left, or good() is false.
  bool Next() {
    if (at_ == end_) {
      return false;
    }
    uint64_t tag = 0;
    constexpr int kTagBytesMax = 5;
    if (!ReadVarint(tag, kTagBytesMax)) {
      return false;
    }
    tag_ = static_cast<uint32_t>(tag);
    return true;
  }
  [[nodiscard]] uint32_t tag() const { return tag_; }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] int depth() const { return depth_; }

  // What the field holds; its tag says which of these.
  uint64_t Varint() {
    uint64_t value = 0;
    constexpr int kVarintBytesMax = 10;
    ReadVarint(value, kVarintBytesMax);
    return value;
  }
  std::string_view Bytes() {
    uint64_t size = 0;
    constexpr int kSizeBytesMax = 5;
    if (!ReadVarint(size, kSizeBytesMax) || size > static_cast<uint64_t>(end_ - at_)) {
      Fail();
      return {};
    }
    const std::string_view bytes(at_, size);
    at_ += size;
    return bytes;
  }
  std::string_view Text() {
    const std::string_view text = Bytes();
    good_ = good_ && IsUtf8(text);
    return text;
  }
  // A field that nobody asked for.
  void Skip() {
    if (static_cast<Kind>(tag_ & 7) != Kind::kGroup) {
      SkipOne();
      return;
    }
    // Groups are no more, but may come; each ends with its own number.
    const uint32_t outermost = tag_;
    if (depth_ == 0 || tag_ >> 3 == 0) {
      Fail();
      return;
    }
    --depth_;
    while (good_) {
      if (!Next()) {
        Fail();  // the message ends amidst a group
      } else if (tag_ == outermost + 1) {
        break;
      } else {
        Skip();
      }
    }
    ++depth_;
  }

  void Fail() { good_ = false; }

 private:
  bool ReadVarint(uint64_t& value, int bytes_max) {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) [[likely]] {
      value = static_cast<uint8_t>(*at_++);
      return true;
    }
    for (int i = 0; i < bytes_max && at_ != end_; ++i) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        return true;
      }
    }
    Fail();
    return false;
  }

  void SkipOne() {
    const auto advance = [this](ptrdiff_t bytes) {
      if (end_ - at_ < bytes) {
        Fail();
      } else {
        at_ += bytes;
      }
    };
    if (tag_ >> 3 == 0) {
      Fail();
      return;
    }
    switch (static_cast<Kind>(tag_ & 7)) {
      case Kind::kVarint:
        Varint();
        break;
      case Kind::kFixed64:
        advance(8);
        break;
      case Kind::kBytes:
        Bytes();
        break;
      case Kind::kFixed32:
        advance(4);
        break;
      default:  // an end without its group, or no kind at all
        Fail();
    }
  }

  const char* at_;
  const char* const end_;
  uint32_t tag_ = 0;
  int depth_;  // of messages and groups, that may still come
  bool good_ = true;
};

// As deep as libprotobuf goes.
constexpr int kDepthMax = 100;

bool ReadEntry(std::string_view bytes, int depth, RequestBuffer& request) {
  Fields fields(bytes, depth);
  std::string_view key;
  std::string_view value;
  while (fields.good() && fields.Next()) {
    switch (fields.tag()) {
      case Tag(1, Kind::kBytes):
        key = fields.Text();
        break;
      case Tag(2, Kind::kBytes):
        value = fields.Text();
        break;
      default:
        fields.Skip();
    }
  }
  request.AddEntry(key, value);
  return fields.good();
}

// A message that comes twice is joined: what the second does not say, the first did.
bool ReadLimit(std::string_view bytes, int depth, LimitOverride& limit) {
  Fields fields(bytes, depth);
  while (fields.good() && fields.Next()) {
    switch (fields.tag()) {
      case Tag(1, Kind::kVarint):
        limit.requests_per_unit = static_cast<uint32_t>(fields.Varint());
        break;
      case Tag(2, Kind::kVarint): {
        const auto unit = static_cast<int32_t>(fields.Varint());
        limit.unit = unit >= 0 && unit < static_cast<int32_t>(kUnits) ? static_cast<Unit>(unit)
                                                                      : Unit::kUnknown;
        break;
      }
      default:
        fields.Skip();
    }
  }
  return fields.good();
}

bool ReadHits(std::string_view bytes, int depth, uint64_t& hits) {
  Fields fields(bytes, depth);
  while (fields.good() && fields.Next()) {
    if (fields.tag() == Tag(1, Kind::kVarint)) {
      hits = fields.Varint();
    } else {
      fields.Skip();
    }
  }
  return fields.good();
}

bool ReadDescriptor(std::string_view bytes, int depth, RequestBuffer& request) {
  Descriptor& descriptor = request.AddDescriptor();
  Fields fields(bytes, depth);
  while (fields.good() && fields.Next()) {
    bool good = true;
    switch (fields.tag()) {
      case Tag(1, Kind::kBytes):
        good = ReadEntry(fields.Bytes(), depth - 1, request);
        break;
      case Tag(2, Kind::kBytes):
        if (!descriptor.limit.has_value()) {
          descriptor.limit.emplace();
        }
        good = ReadLimit(fields.Bytes(), depth - 1, *descriptor.limit);
        break;
      case Tag(3, Kind::kBytes):
        if (!descriptor.hits_addend.has_value()) {
          descriptor.hits_addend.emplace(0);
        }
        good = ReadHits(fields.Bytes(), depth - 1, *descriptor.hits_addend);
        break;
      default:
        fields.Skip();
    }
    if (!good) {
      return false;
    }
  }
  return fields.good();
}

// ---- Writing.

char* PutVarint(char* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Fields of small numbers: a tag is one byte. What is 0 or empty is not written.
size_t NumberSize(uint64_t value) {
  return value == 0 ? 0 : 1 + VarintSize(value);
}
char* PutNumber(char* to, uint32_t field, uint64_t value) {
  if (value == 0) {
    return to;
  }
  *to++ = static_cast<char>(Tag(field, Kind::kVarint));
  return PutVarint(to, value);
}
size_t BytesSize(size_t size) {
  return 1 + VarintSize(size) + size;
}
char* PutSize(char* to, uint32_t field, size_t size) {
  *to++ = static_cast<char>(Tag(field, Kind::kBytes));
  return PutVarint(to, size);
}
char* PutText(char* to, uint32_t field, std::string_view text) {
  to = PutSize(to, field, text.size());
  return std::copy(text.begin(), text.end(), to);
}

// Of all but its name: six numbers, and what is in front of them.
constexpr size_t kStatusBytesMax = 80;

char* PutStatus(char* to, const DescriptorStatus& status) {
  const auto code = static_cast<uint64_t>(status.code);
  size_t size = NumberSize(code) + NumberSize(status.limit_remaining);
  if (!status.has_limit) {
    to = PutSize(to, 2, size);
    return PutNumber(PutNumber(to, 1, code), 3, status.limit_remaining);
  }
  const CurrentLimit& limit = status.current_limit;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(status.duration_until_reset);
  // A negative number is one of 64 bits.
  const auto whole = static_cast<uint64_t>(seconds.count());
  const auto nanos = static_cast<uint64_t>((status.duration_until_reset - seconds).count());
  const size_t limit_size = NumberSize(limit.requests_per_unit) +
                            NumberSize(static_cast<uint64_t>(limit.unit)) +
                            (limit.name.empty() ? 0 : BytesSize(limit.name.size()));
  const size_t reset_size = NumberSize(whole) + NumberSize(nanos);
  size += BytesSize(limit_size) + BytesSize(reset_size);
  to = PutNumber(PutSize(to, 2, size), 1, code);
  to = PutNumber(PutSize(to, 2, limit_size), 1, limit.requests_per_unit);
  to = PutNumber(to, 2, static_cast<uint64_t>(limit.unit));
  if (!limit.name.empty()) {
    to = PutText(to, 3, limit.name);
  }
  to = PutNumber(to, 3, status.limit_remaining);
  to = PutNumber(PutSize(to, 4, reset_size), 1, whole);
  return PutNumber(to, 2, nanos);
}

void AppendBytes(std::string& out, uint32_t field, std::string_view bytes) {
  const size_t begin = out.size();
  out.resize(begin + BytesSize(bytes.size()));
  PutText(out.data() + begin, field, bytes);
}

// A google.protobuf.Value: exactly one of its fields, be it 0 or empty.
std::string ValueBytes(const MetadataValue& value);

std::string StructBytes(const MetadataValue::Fields& fields) {
  std::string bytes;
  for (const auto& [name, value] : fields) {
    std::string field;
    AppendBytes(field, 1, name);
    AppendBytes(field, 2, ValueBytes(value));
    AppendBytes(bytes, 1, field);
  }
  return bytes;
}

std::string ValueBytes(const MetadataValue& value) {
  std::string bytes;
  if (const bool* const boolean = std::get_if<bool>(&value.value)) {
    bytes += static_cast<char>(Tag(4, Kind::kVarint));
    bytes += static_cast<char>(*boolean ? 1 : 0);
  } else if (const double* const number = std::get_if<double>(&value.value)) {
    bytes += static_cast<char>(Tag(2, Kind::kFixed64));
    const auto bits = std::bit_cast<uint64_t>(*number);
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(bits >> (8 * i));
    }
  } else if (const std::string* const text = std::get_if<std::string>(&value.value)) {
    AppendBytes(bytes, 3, *text);
  } else if (const auto* const list = std::get_if<MetadataValue::List>(&value.value)) {
    std::string all;
    for (const MetadataValue& one : *list) {
      AppendBytes(all, 1, ValueBytes(one));
    }
    AppendBytes(bytes, 6, all);
  } else if (const auto* const fields = std::get_if<MetadataValue::Fields>(&value.value)) {
    AppendBytes(bytes, 5, StructBytes(*fields));
  } else {
    bytes += static_cast<char>(Tag(1, Kind::kVarint));
    bytes += '\0';
  }
  return bytes;
}

}  // namespace

bool ReadRequest(std::string_view bytes, RequestBuffer& request) {
  request.Begin();
  Fields fields(bytes, kDepthMax);
  while (fields.good() && fields.Next()) {
    switch (fields.tag()) {
      case Tag(1, Kind::kBytes):
        request.set_domain(fields.Text());
        break;
      case Tag(2, Kind::kBytes):
        if (!ReadDescriptor(fields.Bytes(), kDepthMax - 1, request)) {
          return false;
        }
        break;
      case Tag(3, Kind::kVarint):
        request.set_hits_addend(static_cast<uint32_t>(fields.Varint()));
        break;
      default:
        fields.Skip();
    }
  }
  return fields.good();
}

void AppendAnswer(std::string& out, const Response& response) {
  // Room for all statuses at once, then what is not needed is given back.
  constexpr size_t kCodeBytes = 2;
  size_t room = kCodeBytes;
  for (const DescriptorStatus& status : response.statuses) {
    room += kStatusBytesMax + status.current_limit.name.size();
  }
  const size_t begin = out.size();
  out.resize(begin + room);
  char* to = PutNumber(out.data() + begin, 1, static_cast<uint64_t>(response.overall_code));
  for (const DescriptorStatus& status : response.statuses) {
    to = PutStatus(to, status);
  }
  out.resize(static_cast<size_t>(to - out.data()));
  for (const Header& header : response.response_headers_to_add) {
    const size_t size = BytesSize(header.key.size()) + BytesSize(header.value.size());
    const size_t at = out.size();
    out.resize(at + BytesSize(size));
    char* const inside = PutSize(out.data() + at, 3, size);
    PutText(PutText(inside, 1, header.key), 2, header.value);
  }
  if (response.has_dynamic_metadata) {
    AppendBytes(out, 6, StructBytes(response.dynamic_metadata.fields()));
  }
}

}  // namespace weir::envoy
