#include "import/predicate.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "import/stable_order.h"

namespace weir::import {

namespace {

void CheckSize(const Predicate& predicate) {
  if (predicate.size() > kMaxConjunctions) {
    throw std::length_error("the condition has more than " + std::to_string(kMaxConjunctions) +
                            " cases");
  }
}

// Two that differ in what they ask of one attribute are one.
std::optional<Conjunction> Merged(const Conjunction& a, const Conjunction& b) {
  if (a.size() != b.size()) {
    return std::nullopt;
  }
  Conjunction merged = a;
  bool differs = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      continue;
    }
    const bool same_attribute = a[i].condition.attribute == b[i].condition.attribute;
    if (differs || !same_attribute || a[i].negated || b[i].negated) {
      return std::nullopt;
    }
    differs = true;
    std::vector<Test>& any = merged[i].condition.any;
    for (const Test& test : b[i].condition.any) {
      if (std::find(any.begin(), any.end(), test) == any.end()) {
        any.push_back(test);
      }
    }
  }
  return merged;
}

Predicate Simplified(Predicate predicate) {
  for (size_t i = 0; i < predicate.size(); ++i) {
    for (size_t j = i + 1; j < predicate.size();) {
      if (auto merged = Merged(predicate[i], predicate[j])) {
        predicate[i] = *std::move(merged);
        predicate.erase(predicate.begin() + static_cast<ptrdiff_t>(j));
      } else {
        ++j;
      }
    }
  }
  return predicate;
}

// A conjunction as our rules have it: what must hold, and for whom it does not.
struct Case {
  Conditions when;
  std::vector<Conditions> exceptions;
};

constexpr const char* kTwoPatterns = "a rule cannot ask two different things of one attribute";

// nullopt: no request meets it.
std::optional<Case> CaseOf(const Conjunction& conjunction, std::string& problem) {
  Case made;
  bool never = false;
  for (const Literal& literal : conjunction) {
    if (literal.negated) {
      continue;
    }
    if (!Add(made.when, literal.condition, never)) {
      problem = never ? problem : kTwoPatterns;
      return std::nullopt;
    }
  }
  for (const Literal& literal : conjunction) {
    if (!literal.negated) {
      continue;
    }
    Conditions exception = made.when;
    if (Add(exception, literal.condition, never)) {
      if (exception == made.when) {
        return std::nullopt;  // it and its contrary
      }
      made.exceptions.push_back(std::move(exception));
    } else if (!never) {
      problem = kTwoPatterns;
      return std::nullopt;
    }
  }
  return made;
}

}  // namespace

Predicate Always() {
  return {Conjunction()};
}

Predicate Only(Condition condition) {
  return {{Literal{std::move(condition), false}}};
}

Predicate And(const Predicate& a, const Predicate& b) {
  Predicate both;
  for (const Conjunction& one : a) {
    for (const Conjunction& other : b) {
      Conjunction joined = one;
      for (const Literal& literal : other) {
        if (std::find(joined.begin(), joined.end(), literal) == joined.end()) {
          joined.push_back(literal);
        }
      }
      both.push_back(std::move(joined));
      CheckSize(both);
    }
  }
  return Simplified(std::move(both));
}

Predicate Or(const Predicate& a, const Predicate& b) {
  Predicate either = a;
  either.insert(either.end(), b.begin(), b.end());
  CheckSize(either);
  return Simplified(std::move(either));
}

Predicate Not(const Predicate& a) {
  Predicate negated = Always();
  for (const Conjunction& one : a) {
    Predicate any;
    for (Literal literal : one) {
      literal.negated = !literal.negated;
      any.push_back({std::move(literal)});
    }
    negated = And(negated, any);
  }
  return negated;
}

std::string AddRules(const Rule& rule, const Predicate& when, Imported& into) {
  std::vector<Case> cases;
  std::string problem;
  for (const Conjunction& conjunction : when) {
    if (auto made = CaseOf(conjunction, problem)) {
      cases.push_back(*std::move(made));
    }
    if (!problem.empty()) {
      return problem;
    }
  }
  if (cases.empty()) {
    return "its condition never holds";
  }
  // An exception keeps away what comes behind it in the group, so it can only be the last's.
  StableOrder(cases, [](const Case& a, const Case& b) {
    return a.exceptions.size() < b.exceptions.size();
  });
  if (cases.size() > 1 && !cases[cases.size() - 2].exceptions.empty()) {
    return "it has exceptions from more than one of its cases";
  }
  if (cases.size() > 1) {
    into.Note(Carry::kApproximated, rule.place,
              rule.source + ": as " + std::to_string(cases.size()) +
                  " rules, one for each case of its condition, which count apart");
  }
  auto priority = static_cast<int>(cases.size() + cases.back().exceptions.size());
  priority = priority == 1 ? 0 : priority;
  for (const Case& one : cases) {
    for (const Conditions& exception : one.exceptions) {
      Rule except = rule;
      except.name += "/except";
      except.when = exception;
      except.per.clear();
      except.action = Action::kUnlimited;
      except.priority = priority--;
      except.mentions = "keeps the limit behind it away";
      into.rules.push_back(std::move(except));
    }
    Rule made = rule;
    made.when = one.when;
    made.priority = priority;
    priority = std::max(priority - 1, 0);
    into.rules.push_back(std::move(made));
  }
  return "";
}

}  // namespace weir::import
