#include "codec/http/check_json.h"

#include <algorithm>
#include <iterator>

#include "weir/decision.h"

#include "codec/http/check_json_state.h"

namespace weir::codec::http {

namespace {

constexpr uint16_t kCheckMembers = kAttributes | kKey | kCost | kPeek | kId;
constexpr uint16_t kReserveMembers = kAttributes | kKey | kEstimate | kLasts | kId;
constexpr uint16_t kSettleMembers = kId | kActual;
constexpr uint16_t kReleaseMembers = kId | kIds;
constexpr uint16_t kResetMembers = kAttributes | kKey | kRule;
constexpr uint16_t kSwitchMembers = kRule | kTo | kLasts;

}  // namespace

void JsonReader::State::Clear() {
  attributes.clear();
  checks.clear();
  first_attributes.clear();
  released.clear();
  batch = in_check = false;
  error.clear();
}

bool JsonReader::State::Read(std::string_view body, uint16_t members, Object& into) {
  Clear();
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
    const auto* const found = std::find(std::begin(kMemberNames), std::end(kMemberNames), name);
    const auto member = static_cast<Member>(1U << (found - std::begin(kMemberNames)));
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
    case kRule:
      return TakeText("rule", value, into.rule);
    case kTo:
      return TakeText("to", value, into.to);
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

JsonReader::JsonReader() : state_(std::make_unique<State>()) {}
JsonReader::~JsonReader() = default;

bool JsonReader::ReadCheck(std::string_view body) {
  state_->Clear();
  State::Object object;
  if (state_->ReadPlain(body, object)) [[likely]] {
    object.check.attributes = state_->attributes;
    state_->checks.push_back(object.check);
    return true;
  }
  object = {};
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

bool JsonReader::ReadReset(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kResetMembers, object) || !state_->HasCounted(object)) {
    return false;
  }
  state_->reset = {.attributes = state_->attributes, .rule = object.rule};
  return true;
}

bool JsonReader::ReadSwitch(std::string_view body) {
  State::Object object;
  if (!state_->Read(body, kSwitchMembers, object)) {
    return false;
  }
  if ((object.seen & kRule) == 0 || (object.seen & kTo) == 0) {
    return state_->Fail({"Both \"rule\" and \"to\" are needed: which rule, and what it becomes."});
  }
  state_->change = {.rule = object.rule, .to = object.to, .lasts = object.lasts};
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
const ResetQuestion& JsonReader::reset() const noexcept {
  return state_->reset;
}
const SwitchQuestion& JsonReader::change() const noexcept {
  return state_->change;
}
std::span<const std::string_view> JsonReader::released() const noexcept {
  return state_->released;
}
std::string_view JsonReader::error() const noexcept {
  return state_->error;
}

}  // namespace weir::codec::http
