#include "codec/http/check_json.h"

// A value that is not what it should be is an answer here, never an exception.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "weir/decision.h"
#include "weir/quota.h"

#include "base/spelling.h"

namespace weir::codec::http {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

constexpr size_t kShownBytes = 40;  // of what a client sent, in an error
constexpr size_t kNameBytesMax = 128;
constexpr uint64_t kLastsSecondsMax =
    std::chrono::duration_cast<std::chrono::seconds>(Quota::kMaxLease).count();

// Members of all bodies; which of them a body may have is a set of bits.
enum Member : uint16_t {
  kAttributes = 1,
  kKey = 2,
  kCost = 4,
  kPeek = 8,
  kId = 16,
  kChecks = 32,
  kEstimate = 64,
  kLasts = 128,
  kActual = 256,
  kIds = 512,
};
constexpr std::array<std::string_view, 10> kMemberNames = {
    "attributes", "key", "cost", "peek", "id", "checks", "estimate", "lasts", "actual", "ids"};

constexpr uint16_t kCheckMembers = kAttributes | kKey | kCost | kPeek | kId;
constexpr uint16_t kReserveMembers = kAttributes | kKey | kEstimate | kLasts | kId;
constexpr uint16_t kSettleMembers = kId | kActual;
constexpr uint16_t kReleaseMembers = kId | kIds;

std::string Shown(std::string_view text) {
  return base::Quoted(text, kShownBytes);
}

}  // namespace

struct JsonReader::State {
  // simdjson looks at the byte behind the text: a brace there would complete an object that is not
  // whole. So the text is copied to where blanks follow it.
  std::string padded;
  ondemand::parser parser;
  ondemand::document document;
  std::vector<Attribute> attributes;
  std::vector<CheckQuestion> checks;
  std::vector<size_t> first_attributes;  // of each check
  std::vector<std::string_view> released;
  ReserveQuestion reserve;
  SettleQuestion settle;
  bool batch = false;
  bool in_check = false;  // of a batch: errors tell which
  std::string error;

  // What the members of one object say.
  struct Object {
    uint16_t seen = 0;
    CheckQuestion check;
    uint64_t units = 0;  // estimate or actual
    std::optional<Duration> lasts;
  };

  bool Read(std::string_view body, uint16_t members, Object& into);
  bool ReadObject(ondemand::object object, uint16_t members, Object& into);
  bool ReadMember(Member member, ondemand::value value, Object& into);
  bool ReadChecks(ondemand::value value);
  bool ReadIds(ondemand::value value);
  bool ReadAttributes(ondemand::value value);
  bool AddAttribute(std::string_view name, ondemand::value value);
  bool AddAttribute(std::string_view name, std::string_view text);
  bool TakeText(std::string_view name, ondemand::value value, std::string_view& text);
  bool TakeWhole(std::string_view name, ondemand::value value, uint64_t most, uint64_t& number);
  bool TakeBool(std::string_view name, ondemand::value value, bool& truth);
  bool TakeLasts(ondemand::value value, std::optional<Duration>& lasts);
  bool HasCounted(const Object& object);
  void BindAttributes();

  bool FailUnknown(std::string_view name, uint16_t members);
  bool FailFound(std::string_view name, ondemand::value value, std::string_view expected);
  bool FailMalformed(error_code code);
  bool Fail(std::initializer_list<std::string_view> parts);
};

bool JsonReader::State::Read(std::string_view body, uint16_t members, Object& into) {
  attributes.clear();
  checks.clear();
  first_attributes.clear();
  released.clear();
  batch = in_check = false;
  error.clear();
  padded.assign(body).append(simdjson::SIMDJSON_PADDING, ' ');
  if (const auto code = parser.iterate(padded.data(), body.size(), padded.size()).get(document)) {
    return FailMalformed(code);
  }
  ondemand::object object;
  if (const auto code = document.get_object().get(object)) {
    return code == simdjson::INCORRECT_TYPE
               ? Fail(
                     {"The body is not an object; expected is {\"key\": \"user-1\"}, for example."})
               : FailMalformed(code);
  }
  if (!ReadObject(object, members, into)) {
    return false;
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return Fail({"The body goes on behind the object's closing brace."});
  }
  return true;
}

bool JsonReader::State::ReadObject(ondemand::object object, uint16_t members, Object& into) {
  for (auto field : object) {
    std::string_view name;
    ondemand::value value;
    if (const auto code = field.unescaped_key().get(name)) {
      return FailMalformed(code);
    }
    if (const auto code = field.value().get(value)) {
      return FailMalformed(code);
    }
    const auto* const found = std::find(kMemberNames.begin(), kMemberNames.end(), name);
    const auto member = static_cast<Member>(1U << (found - kMemberNames.begin()));
    if ((member & members) == 0) {
      return FailUnknown(name, members);
    }
    if ((member & into.seen) != 0) {
      return Fail({"\"", name, "\" is given twice."});
    }
    into.seen = static_cast<uint16_t>(into.seen | member);
    if (!ReadMember(member, value, into)) {
      return false;
    }
  }
  return true;
}

bool JsonReader::State::ReadMember(Member member, ondemand::value value, Object& into) {
  switch (member) {
    case kAttributes:
      return ReadAttributes(value);
    case kKey:
      return AddAttribute("key", value);
    case kCost:
      return TakeWhole("cost", value, Cost::kMax, into.check.cost);
    case kPeek:
      return TakeBool("peek", value, into.check.peek);
    case kId:
      return TakeText("id", value, into.check.id);
    case kChecks:
      return ReadChecks(value);
    case kEstimate:
      return TakeWhole("estimate", value, Cost::kMax, into.units);
    case kLasts:
      return TakeLasts(value, into.lasts);
    case kActual:
      return TakeWhole("actual", value, Cost::kMax, into.units);
    case kIds:
      return ReadIds(value);
  }
  return false;
}

bool JsonReader::State::ReadChecks(ondemand::value value) {
  ondemand::array array;
  if (value.get_array().get(array)) {
    return FailFound("checks", value, "a list of 1 to 100 checks");
  }
  batch = in_check = true;
  for (auto element : array) {
    if (checks.size() == kChecksMax) {
      return Fail({"\"checks\" has more than 100 elements."});
    }
    ondemand::value item;
    if (const auto code = element.get(item)) {
      return FailMalformed(code);
    }
    ondemand::object object;
    if (item.get_object().get(object)) {
      return FailFound("checks", item, "objects like {\"key\": \"user-1\"} in the list");
    }
    Object read;
    first_attributes.push_back(attributes.size());
    if (!ReadObject(object, kCheckMembers, read) || !HasCounted(read)) {
      return false;
    }
    checks.push_back(read.check);
  }
  in_check = false;
  return !checks.empty() || Fail({"\"checks\" is empty; expected 1 to 100 checks."});
}

bool JsonReader::State::ReadIds(ondemand::value value) {
  ondemand::array array;
  if (value.get_array().get(array)) {
    return FailFound("ids", value, "a list of 1 to 100 texts");
  }
  for (auto element : array) {
    ondemand::value item;
    if (const auto code = element.get(item)) {
      return FailMalformed(code);
    }
    std::string_view id;
    if (!TakeText("ids", item, id)) {
      return false;
    }
    if (released.size() == kChecksMax) {
      return Fail({"\"ids\" has more than 100 elements."});
    }
    released.push_back(id);
  }
  return !released.empty() || Fail({"\"ids\" is empty; expected 1 to 100 texts."});
}

bool JsonReader::State::ReadAttributes(ondemand::value value) {
  ondemand::object object;
  if (value.get_object().get(object)) {
    return FailFound("attributes", value, "an object like {\"ip\": \"192.0.2.1\"}");
  }
  for (auto field : object) {
    std::string_view name;
    ondemand::value of_name;
    if (const auto code = field.unescaped_key().get(name)) {
      return FailMalformed(code);
    }
    if (const auto code = field.value().get(of_name)) {
      return FailMalformed(code);
    }
    if (!AddAttribute(name, of_name)) {
      return false;
    }
  }
  return true;
}

bool JsonReader::State::AddAttribute(std::string_view name, ondemand::value value) {
  constexpr std::string_view kExpected = "text, a number, true, false or null";
  simdjson::ondemand::json_type type;
  if (const auto code = value.type().get(type)) {
    return FailMalformed(code);
  }
  switch (type) {
    case ondemand::json_type::string: {
      std::string_view text;
      const auto code = value.get_string().get(text);
      return code ? FailMalformed(code) : AddAttribute(name, text);
    }
    case ondemand::json_type::number: {
      std::string_view token = value.raw_json_token();
      token = token.substr(0, token.find_first_of(" \t\r\n"));
      ondemand::number number;
      const auto code = value.get_number().get(number);
      return code ? FailMalformed(code) : AddAttribute(name, token);
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      const auto code = value.get_bool().get(truth);
      return code ? FailMalformed(code) : AddAttribute(name, truth ? "true" : "false");
    }
    case ondemand::json_type::null: {
      bool null = false;
      const auto code = value.is_null().get(null);
      return (!code && null) || FailMalformed(code ? code : simdjson::N_ATOM_ERROR);
    }
    default:
      return FailFound(name, value, kExpected);
  }
}

bool JsonReader::State::AddAttribute(std::string_view name, std::string_view text) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Fail({"The attribute name ", Shown(name), " has ", std::to_string(name.size()),
                 " bytes; expected 1 to 128."});
  }
  if (text.size() > kMaxAttributeBytes) {
    return Fail({"The attribute ", Shown(name), " has ", std::to_string(text.size()),
                 " bytes; expected at most 2048."});
  }
  const size_t first = first_attributes.empty() ? 0 : first_attributes.back();
  if (attributes.size() - first == kMaxAttributes) {
    return Fail({"A check has more than 128 attributes."});
  }
  for (size_t i = first; i < attributes.size(); ++i) {
    if (attributes[i].name == name) {
      return Fail({"The attribute ", Shown(name), " is given twice."});
    }
  }
  attributes.push_back({name, text});
  return true;
}

bool JsonReader::State::TakeText(std::string_view name, ondemand::value value,
                                 std::string_view& text) {
  const auto code = value.get_string().get(text);
  if (code == simdjson::INCORRECT_TYPE || (!code && (text.empty() || text.size() > kIdBytesMax))) {
    return code ? FailFound(name, value, "text of 1 to 128 bytes")
                : Fail({"\"", name, "\" has ", std::to_string(text.size()),
                        " bytes; expected 1 to 128."});
  }
  return !code || FailMalformed(code);
}

bool JsonReader::State::TakeWhole(std::string_view name, ondemand::value value, uint64_t most,
                                  uint64_t& number) {
  if (value.get_uint64().get(number)) {
    return FailFound(name, value, "a whole number from 0 to " + std::to_string(most));
  }
  return number <= most ||
         Fail({"\"", name, "\" is ", std::to_string(number), "; expected a whole number from 0 to ",
               std::to_string(most), "."});
}

bool JsonReader::State::TakeBool(std::string_view name, ondemand::value value, bool& truth) {
  return !value.get_bool().get(truth) || FailFound(name, value, "true or false");
}

bool JsonReader::State::TakeLasts(ondemand::value value, std::optional<Duration>& lasts) {
  uint64_t seconds = 0;
  if (!TakeWhole("lasts", value, kLastsSecondsMax, seconds)) {
    return false;
  }
  lasts = std::chrono::seconds(seconds);
  return seconds != 0 || Fail({"\"lasts\" is 0; expected at least one second."});
}

bool JsonReader::State::HasCounted(const Object& object) {
  return (object.seen & (kAttributes | kKey)) != 0 ||
         Fail({"A check names nothing to count; expected \"attributes\" or \"key\"."});
}

// The array has stopped growing, so that views of it stay good.
void JsonReader::State::BindAttributes() {
  for (size_t i = 0; i < checks.size(); ++i) {
    const size_t first = first_attributes.empty() ? 0 : first_attributes[i];
    const size_t end =
        i + 1 < first_attributes.size() ? first_attributes[i + 1] : attributes.size();
    checks[i].attributes = std::span(attributes).subspan(first, end - first);
  }
}

bool JsonReader::State::FailUnknown(std::string_view name, uint16_t members) {
  constexpr size_t kNear = 2;
  std::string expected;
  std::string near;
  for (size_t i = 0; i < kMemberNames.size(); ++i) {
    if ((members >> i & 1) != 0) {
      expected.append(expected.empty() ? "" : ", ").append(kMemberNames[i]);
      if (near.empty() && base::SpellingDistance(name, kMemberNames[i]) <= kNear) {
        near.append(" Did you mean ").append(kMemberNames[i]).append("?");
      }
    }
  }
  return Fail({"Unknown member ", Shown(name), "; expected: ", expected, ".", near});
}

bool JsonReader::State::FailFound(std::string_view name, ondemand::value value,
                                  std::string_view expected) {
  simdjson::ondemand::json_type type;
  if (const auto code = value.type().get(type)) {
    return FailMalformed(code);
  }
  std::string found;
  if (type == ondemand::json_type::array) {
    found = "a list";
  } else if (type == ondemand::json_type::object) {
    found = "an object";
  } else {
    std::string_view token = value.raw_json_token();
    token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
    const bool text = type == ondemand::json_type::string;
    found = Shown(text ? token.substr(1, token.size() - 2) : token);
    if (!text) {
      found = found.substr(1, found.size() - 2);
    }
  }
  return Fail({Shown(name), " is ", found, "; expected ", expected, "."});
}

bool JsonReader::State::FailMalformed(error_code code) {
  return Fail({"The body is not JSON: ", simdjson::error_message(code)});
}

bool JsonReader::State::Fail(std::initializer_list<std::string_view> parts) {
  error.clear();
  if (in_check) {
    error.append("Check ").append(std::to_string(checks.size() + 1)).append(": ");
  }
  for (const std::string_view part : parts) {
    error += part;
  }
  return false;
}

JsonReader::JsonReader() : state_(std::make_unique<State>()) {}
JsonReader::~JsonReader() = default;

bool JsonReader::ReadCheck(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kCheckMembers | kChecks, object)) {
    return false;
  }
  if (state_->batch) {
    if (object.seen != kChecks) {
      return state_->Fail({"\"checks\" stands beside other members; put them into each check."});
    }
  } else {
    if (!state_->HasCounted(object)) {
      return false;
    }
    state_->checks.push_back(object.check);
  }
  state_->BindAttributes();
  return true;
}

bool JsonReader::ReadReserve(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kReserveMembers, object) || !state_->HasCounted(object)) {
    return false;
  }
  if ((object.seen & kEstimate) == 0) {
    return state_->Fail({"\"estimate\" is missing; expected the most units it may come to."});
  }
  state_->reserve = {.attributes = state_->attributes,
                     .estimate = object.units,
                     .lasts = object.lasts,
                     .id = object.check.id};
  return true;
}

bool JsonReader::ReadSettle(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kSettleMembers, object)) {
    return false;
  }
  if (object.seen != kSettleMembers) {
    return state_->Fail(
        {"Both \"id\" and \"actual\" are needed: which reservation, and the units "
         "that were used."});
  }
  state_->settle = {.reservation = object.check.id, .actual = object.units};
  return true;
}

bool JsonReader::ReadRelease(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kReleaseMembers, object)) {
    return false;
  }
  if (object.seen != kId && object.seen != kIds) {
    return state_->Fail({"One of \"id\" and \"ids\" is needed."});
  }
  if (object.seen == kId) {
    state_->released.push_back(object.check.id);
  }
  return true;
}

std::span<const CheckQuestion> JsonReader::checks() const noexcept {
  return state_->checks;
}
bool JsonReader::is_batch() const noexcept {
  return state_->batch;
}
const ReserveQuestion& JsonReader::reserve() const noexcept {
  return state_->reserve;
}
const SettleQuestion& JsonReader::settle() const noexcept {
  return state_->settle;
}
std::span<const std::string_view> JsonReader::released() const noexcept {
  return state_->released;
}
std::string_view JsonReader::error() const noexcept {
  return state_->error;
}

}  // namespace weir::codec::http
