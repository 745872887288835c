// Conditions with and, or and not, as other programs have them, and rules that say the same. Ours
// know only "and", and "one of" for one attribute: what is excepted becomes a rule of its own that
// keeps the limit away, and what is left of an "or" becomes several rules.
#pragma once

#include <string>
#include <vector>

#include "import/imported.h"

namespace weir::import {

struct Literal {
  Condition condition;
  bool negated = false;

  bool operator==(const Literal& other) const = default;
};

using Conjunction = std::vector<Literal>;

// Any of these; none at all never holds. One that is empty always does.
using Predicate = std::vector<Conjunction>;

// What is larger than this is not taken apart.
inline constexpr size_t kMaxConjunctions = 64;

[[nodiscard]] Predicate Always();
[[nodiscard]] Predicate Only(Condition condition);
// Each throws std::length_error if the outcome has more than kMaxConjunctions.
[[nodiscard]] Predicate And(const Predicate& a, const Predicate& b);
[[nodiscard]] Predicate Or(const Predicate& a, const Predicate& b);
[[nodiscard]] Predicate Not(const Predicate& a);

// Adds `rule`, in its group, for the requests that meet `when`. If that takes several rules, which
// count apart, it is noted. Empty: done. Otherwise why it cannot be said, and nothing was added.
[[nodiscard]] std::string AddRules(const Rule& rule, const Predicate& when, Imported& into);

}  // namespace weir::import
