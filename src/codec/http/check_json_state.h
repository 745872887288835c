// What is behind a JsonReader: check_json.cc reads objects, check_json_values.cc single values and
// says what is wrong with them, check_json_plain.cc reads the usual body in a shorter way.
#pragma once

// A value that is not what it should be is an answer here, never an exception.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http/check_json.h"

namespace weir::codec::http {

namespace ondemand = simdjson::ondemand;

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
  kRule = 1024,
  kTo = 2048,
};
inline constexpr std::string_view kMemberNames[] = {"attributes", "key",    "cost",     "peek",
                                                    "id",         "checks", "estimate", "lasts",
                                                    "actual",     "ids",    "rule",     "to"};

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
  ResetQuestion reset;
  SwitchQuestion change;
  bool batch = false;
  bool in_check = false;  // of a batch: errors tell which
  std::string error;

  // What the members of one object say.
  struct Object {
    uint16_t seen = 0;
    CheckQuestion check;
    uint64_t units = 0;  // estimate or actual
    std::optional<Duration> lasts;
    std::string_view rule;
    std::string_view to;
  };

  // Forgets what was read before.
  void Clear();
  bool Read(std::string_view body, uint16_t members, Object& into);
  // False: it may be good or bad, and something of it may have been taken already.
  bool ReadPlain(std::string_view body, Object& into);
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
  bool FailMalformed(simdjson::error_code code);
  bool Fail(std::initializer_list<std::string_view> parts);
};

}  // namespace weir::codec::http
