#include "envoy/unit.h"

#include <algorithm>
#include <array>

#include "base/same_text.h"

namespace weir::envoy {

namespace {

struct UnitFacts {
  std::string_view name;
  int64_t seconds;
};

// By number.
constexpr std::array<UnitFacts, kUnits> kFacts = {{{"UNKNOWN", 0},
                                                   {"SECOND", 1},
                                                   {"MINUTE", 60},
                                                   {"HOUR", 3600},
                                                   {"DAY", 86'400},
                                                   {"MONTH", 2'592'000},
                                                   {"YEAR", 31'536'000},
                                                   {"WEEK", 604'800}}};

}  // namespace

int64_t SecondsOf(Unit unit) noexcept {
  const auto index = static_cast<size_t>(unit);
  return index < kUnits ? kFacts[index].seconds : 0;
}

std::string_view ToString(Unit unit) noexcept {
  const auto index = static_cast<size_t>(unit);
  return index < kUnits ? kFacts[index].name : kFacts[0].name;
}

std::optional<Unit> ParseUnit(std::string_view text) noexcept {
  for (size_t i = 0; i < kUnits; ++i) {
    const std::string_view name = kFacts[i].name;
    if (std::equal(text.begin(), text.end(), name.begin(), name.end(),
                   [](char a, char b) { return base::LowerCase(a) == base::LowerCase(b); })) {
      return static_cast<Unit>(i);
    }
  }
  return std::nullopt;
}

}  // namespace weir::envoy
