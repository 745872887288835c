// Single values of JSON bodies, and what is wrong with them.
#include <iterator>
#include <string>

#include "weir/quota.h"

#include "base/spelling.h"
#include "codec/http/check_json_state.h"

namespace weir::codec::http {

namespace {

using simdjson::error_code;

constexpr size_t kShownBytes = 40;  // of what a client sent, in an error
constexpr size_t kNameBytesMax = 128;
constexpr uint64_t kLastsSecondsMax =
    std::chrono::duration_cast<std::chrono::seconds>(Quota::kMaxLease).count();

std::string Shown(std::string_view text) {
  return base::Quoted(text, kShownBytes);
}

}  // namespace

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

bool JsonReader::State::FailUnknown(std::string_view name, uint16_t members) {
  constexpr size_t kNear = 2;
  std::string expected;
  std::string near;
  for (size_t i = 0; i < std::size(kMemberNames); ++i) {
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

}  // namespace weir::codec::http
