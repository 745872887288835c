// Documents of outside vectors, told apart by what they hold and never by their names: a file may
// hold cases of several kinds, in lists of any name.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weir/limiter.h"

#include "testing/twin.h"
#include "testing/vectors.h"

namespace weir::vectors {

using nlohmann::json;

enum class Kind : uint8_t {
  kTable,     // GCRA: (t, quantity) -> (allowed, remaining, ...)
  kSteps,     // GCRA: n or at_most, as redis_rate's tests
  kThrottle,  // arguments of CL.THROTTLE and its reply
  kLeaky,     // leaky bucket that delays
  kCount,     // fixed window
  kCounter,   // fixed window of envoyproxy/ratelimit
  kConfig,    // its files and look-ups
  kSequence,  // calls of it
  kUnknown,
};

inline Kind KindOf(const json& test) {
  if (!test.is_object()) {
    return Kind::kUnknown;
  }
  if (test.contains("count_before")) {
    return Kind::kCounter;
  }
  if (test.contains("kind") && test.contains("files")) {
    return Kind::kConfig;
  }
  if (test.contains("steps")) {
    return test.contains("files") ? Kind::kSequence : Kind::kSteps;
  }
  if (test.contains("rate_per_s")) {
    return Kind::kLeaky;
  }
  if (test.contains("window_s") && test.contains("limit")) {
    return Kind::kCount;
  }
  if (test.contains("ops") && !test["ops"].empty()) {
    return test["ops"][0].contains("args") ? Kind::kThrottle : Kind::kTable;
  }
  return Kind::kUnknown;
}

// Every document of the folder that is JSON; what is not fails by name in vector_files_test.
inline std::vector<json> Documents() {
  std::vector<json> documents;
  for (const testing::OutsideFile& file : testing::OutsideFiles("vectors")) {
    json document = json::parse(file.Read(), nullptr, false);
    if (document.is_object()) {
      document["file"] = file.name;
      documents.push_back(std::move(document));
    }
  }
  return documents;
}

// A case, with what its document says for all of them.
struct Case {
  json document;
  json test;
};

inline std::vector<Case> CasesIn(const json& document, Kind kind) {
  std::vector<Case> cases;
  json common = document;
  for (const auto& [name, list] : document.items()) {
    if (!list.is_array()) {
      continue;
    }
    common.erase(name);
    for (const json& test : list) {
      if (KindOf(test) == kind) {
        cases.push_back({json(), test});
      }
    }
  }
  for (Case& found : cases) {
    found.document = common;
  }
  return cases;
}

inline std::vector<Case> OutsideCases(Kind kind, std::string_view suite) {
  std::vector<Case> cases;
  for (const json& document : Documents()) {
    for (Case& found : CasesIn(document, kind)) {
      cases.push_back(std::move(found));
    }
  }
  if (cases.empty()) {
    testing::SayNoOutsideData(suite);
  }
  return cases;
}

inline std::string NameOf(const Case& one) {
  return one.document.value("file", "our own") + " " +
         one.test.value("id", one.test.value("name", ""));
}

// Null and missing are the same: not asserted, or not said here.
inline bool Has(const json& object, const char* field) {
  return object.is_object() && object.contains(field) && !object[field].is_null();
}

// What the case says, or else its document.
inline const json& Field(const Case& one, const char* field) {
  return Has(one.test, field) ? one.test[field] : one.document.at(field);
}

inline Duration ScaledBy(const json& number, Duration unit) {
  return number.is_number_integer()
             ? number.get<int64_t>() * unit
             : Duration(std::llround(number.get<double>() * static_cast<double>(unit.count())));
}

// `<prefix>_ns`, `_us`, `_ms` or `_s`, whichever there is.
inline bool ReadDuration(const json& object, const std::string& prefix, Duration& duration) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const struct {
    const char* suffix;
    Duration unit;
  } units[] = {
      {"_ns", Duration(1)}, {"_us", microseconds(1)}, {"_ms", milliseconds(1)}, {"_s", seconds(1)}};
  for (const auto& unit : units) {
    if (Has(object, (prefix + unit.suffix).c_str())) {
      duration = ScaledBy(object[prefix + unit.suffix], unit.unit);
      return true;
    }
  }
  return false;
}

inline std::string KeyOf(const json& op) {
  return op.value("key", std::string("key"));
}

// Units asked for, under any of the names that the formats have.
inline int64_t UnitsOf(const json& op) {
  for (const char* name : {"quantity", "n", "cost", "hits"}) {
    if (Has(op, name)) {
      return op[name].get<int64_t>();
    }
  }
  return 1;
}

// One fresh limiter on a clock that stands at t = 0 of the case.
struct Subject {
  explicit Subject(const Quota& quota, int wide_percent = -1, WallTime start = testing::Noon())
      : clock(start) {
    MemoryOptions options = testing::SmallStore(clock);
    options.wide_percent = wide_percent;
    limiter = std::make_unique<Limiter>(*Limiter::Create(quota, options));
  }

  void GoTo(const json& op) {
    Duration t = at;
    ReadDuration(op, "t", t);
    clock.Advance(t - at);
    at = t;
  }

  ManualClock clock;
  std::unique_ptr<Limiter> limiter;
  Duration at{};
};

}  // namespace weir::vectors
