// The scalars of YAML 1.1 as go-yaml 2 tells them apart.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "envoy/go_yaml.h"

namespace weir::envoy {

namespace {

constexpr std::string_view kLongPrefix = "tag:yaml.org,2002:";
constexpr std::string_view kNullTag = "!!null";
constexpr std::string_view kBoolTag = "!!bool";
constexpr std::string_view kIntTag = "!!int";
constexpr std::string_view kFloatTag = "!!float";
constexpr std::string_view kTextTag = "!!str";
constexpr std::string_view kTimeTag = "!!timestamp";
constexpr std::string_view kBinaryTag = "!!binary";
constexpr std::array<std::string_view, 7> kKnownTags = {kNullTag, kBoolTag, kIntTag,   kFloatTag,
                                                        kTextTag, kTimeTag, kBinaryTag};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::optional<GoScalar> FixedWord(std::string_view text) {
  if (text.empty() || IsOneOf(text, {"~", "null", "Null", "NULL"})) {
    return GoScalar{{}, kNullTag};
  }
  if (IsOneOf(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) {
    return GoScalar{{true}, kBoolTag};
  }
  if (IsOneOf(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    return GoScalar{{false}, kBoolTag};
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (IsOneOf(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) {
    return GoScalar{{kInfinity}, kFloatTag};
  }
  if (IsOneOf(text, {"-.inf", "-.Inf", "-.INF"})) {
    return GoScalar{{-kInfinity}, kFloatTag};
  }
  if (IsOneOf(text, {".nan", ".NaN", ".NAN"})) {
    return GoScalar{{std::numeric_limits<double>::quiet_NaN()}, kFloatTag};
  }
  return std::nullopt;
}

// A whole number with the prefixes of Go: 0x, 0o, 0b, and 0 for octal.
std::optional<GoValue> WholeNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool is_signed = negative || text.starts_with('+');
  std::string_view digits = text.substr(is_signed ? 1 : 0);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
    digits.remove_prefix(kind == 'x' || kind == 'b' || kind == 'o' ? 2 : 1);
  }
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  constexpr uint64_t kInt64Max = std::numeric_limits<int64_t>::max();
  if (negative) {
    if (magnitude > kInt64Max + 1) {
      return std::nullopt;
    }
    return GoValue{static_cast<int64_t>(-magnitude)};
  }
  if (magnitude <= kInt64Max) {
    return GoValue{static_cast<int64_t>(magnitude)};
  }
  if (is_signed) {
    return std::nullopt;
  }
  return GoValue{magnitude};
}

// [+-] (.5 | 5[.[5]]) [e[+-]5]
bool LooksLikeFloat(std::string_view text) {
  size_t i = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && IsDigit(text[i])) {
      ++i;
    }
    return i - begin;
  };
  const size_t before = digits();
  size_t after = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    after = digits();
  }
  if (before == 0 && after == 0) {
    return false;
  }
  if (i < text.size() && (text[i] | 0x20) == 'e') {
    ++i;
    i += i < text.size() && (text[i] == '-' || text[i] == '+') ? 1 : 0;
    if (digits() == 0) {
      return false;
    }
  }
  return i == text.size();
}

std::optional<GoValue> FloatNumber(const std::string& text) {
  if (!LooksLikeFloat(text)) {
    return std::nullopt;
  }
  const double number = std::strtod(text.c_str(), nullptr);
  if (std::isinf(number)) {
    return std::nullopt;
  }
  return GoValue{number};
}

// A date, or a date and a time: enough to tell for !!timestamp, whose value stays a text.
bool LooksLikeDate(std::string_view text) {
  return text.size() >= 8 && std::all_of(text.begin(), text.begin() + 4, IsDigit) &&
         text[4] == '-' && IsDigit(text[5]) && text.find('-', 6) != std::string_view::npos &&
         IsDigit(text.back() == 'Z' ? '0' : text.back());
}

GoScalar ResolveText(const std::string& text, std::string_view tag) {
  if (tag == kTextTag) {
    return {{text}, kTextTag};
  }
  if (auto word = FixedWord(text)) {
    return *word;
  }
  const char first = text.front();
  if (first == '.') {
    if (auto number = FloatNumber(text)) {
      return {*number, kFloatTag};
    }
  } else if (IsDigit(first) || first == '-' || first == '+') {
    if (tag == kTimeTag && LooksLikeDate(text)) {
      return {{text}, kTimeTag};
    }
    std::string plain = text;
    std::erase(plain, '_');
    if (auto number = WholeNumber(plain)) {
      return {*number, kIntTag};
    }
    if (auto number = FloatNumber(plain)) {
      return {*number, kFloatTag};
    }
  }
  return {{text}, kTextTag};
}

std::string DecodeBase64(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const YamlRefused refused{"yaml: !!binary value contains invalid base64 data"};
  std::string clean(text);
  std::erase_if(clean, [](char c) { return c == '\n' || c == '\r'; });
  if (clean.size() % 4 != 0) {
    throw refused;
  }
  const size_t padding = clean.ends_with("==") ? 2 : clean.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t word = 0;
  for (size_t i = 0; i < clean.size(); ++i) {
    const size_t letter = kLetters.find(clean[i]);
    const bool is_padding = i >= clean.size() - padding;
    if (letter == std::string_view::npos && !is_padding) {
      throw refused;
    }
    word = word << 6U | static_cast<uint32_t>(is_padding ? 0 : letter);
    if (i % 4 == 3) {
      for (const unsigned shift : {16U, 8U, 0U}) {
        bytes += static_cast<char>(word >> shift & 0xffU);
      }
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::string FloatText(double number) {
  if (!std::isfinite(number)) {
    return std::isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf";
  }
  std::array<char, 400> buffer{};
  const auto scientific = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                        std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<size_t>(scientific.ptr - buffer.data()));
  const int exponent = std::atoi(std::string(text.substr(text.find('e') + 1)).c_str());
  if (exponent < -4 || exponent >= 6) {
    return std::string(text);
  }
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  return {buffer.data(), fixed.ptr};
}

}  // namespace

GoScalar ResolveScalar(const GoNode& node) {
  if (node.tag.empty()) {
    return node.implicit ? ResolveText(node.value, {}) : GoScalar{{node.value}, kTextTag};
  }
  if (!node.tag.starts_with(kLongPrefix)) {
    return {{node.value}, node.tag};
  }
  const std::string_view name = std::string_view(node.tag).substr(kLongPrefix.size());
  const auto known = std::find_if(kKnownTags.begin(), kKnownTags.end(),
                                  [&](std::string_view tag) { return tag.substr(2) == name; });
  if (known == kKnownTags.end()) {
    return {{node.value}, node.tag};
  }
  if (*known == kBinaryTag) {
    return {{DecodeBase64(node.value)}, kBinaryTag};
  }
  GoScalar scalar = ResolveText(node.value, *known);
  if (*known == kFloatTag && scalar.tag == kIntTag) {
    if (const auto* const whole = std::get_if<int64_t>(&scalar.value.value)) {
      return {{static_cast<double>(*whole)}, kFloatTag};
    }
  }
  if (scalar.tag != *known) {
    throw YamlRefused{"yaml: cannot decode " + std::string(scalar.tag) + " `" + node.value +
                      "` as a " + std::string(*known)};
  }
  return scalar;
}

bool IsMergeKey(const GoNode& node) noexcept {
  return node.kind == GoNodeKind::kScalar && node.value == "<<" &&
         (node.implicit || node.tag == "tag:yaml.org,2002:merge");
}

std::string GoText(const GoValue& value) {
  struct Printer {
    std::string operator()(std::monostate) const { return "<nil>"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return FloatText(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const GoValue::List& list) const {
      std::string text = "[";
      for (const GoValue& item : list) {
        text += (text.size() == 1 ? "" : " ") + GoText(item);
      }
      return text + "]";
    }
    std::string operator()(const GoValue::Map& map) const {
      std::vector<std::string> items;
      items.reserve(map.size());
      for (const auto& [key, item] : map) {
        items.push_back(GoText(key) + ":" + GoText(item));
      }
      std::sort(items.begin(), items.end());
      std::string text = "map[";
      for (const std::string& item : items) {
        text += (text.size() == 4 ? "" : " ") + item;
      }
      return text + "]";
    }
  };
  return std::visit(Printer{}, value.value);
}

// Not defaulted: that would look into the type before it is complete.
bool GoValue::operator==(const GoValue& other) const {
  return value == other.value;
}

}  // namespace weir::envoy
