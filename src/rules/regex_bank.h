// All regular expressions of a rule set, by attribute. A few of one attribute are tried one by one;
// many are tried at once with RE2::Set, which looks at the value a single time.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <re2/re2.h>
#include <re2/set.h>

#include "weir/rule_set.h"

namespace weir::rules {

// What has been found out for one request.
struct RegexResults {
  std::bitset<kMaxRegexes> matched;
  std::bitset<kMaxRegexes> known;
};

class RegexBank {
 public:
  // The number of an expression, that of an equal one if there is one; nullopt if there are too
  // many. REQUIRES: RE2 accepts it.
  std::optional<uint16_t> Add(uint16_t attribute, std::string_view pattern);
  // After the last Add. False: RE2 has no memory for all of them together.
  [[nodiscard]] bool Compile();

  [[nodiscard]] bool Matches(uint16_t regex, std::string_view value, RegexResults& results) const;
  [[nodiscard]] size_t size() const noexcept { return regexes_.size(); }

 private:
  // From this many on a set is faster than one after the other.
  static constexpr size_t kFew = 4;

  struct Regex {
    uint16_t attribute = 0;
    std::string pattern;
    std::unique_ptr<RE2> re2;
  };
  struct Bank {
    std::unique_ptr<RE2::Set> set;
    std::vector<uint16_t> numbers;  // of the expressions in the set
  };

  void MatchAll(const Bank& bank, std::string_view value, RegexResults& results) const;

  std::vector<Regex> regexes_;
  std::unordered_map<uint16_t, Bank> banks_;
};

}  // namespace weir::rules
