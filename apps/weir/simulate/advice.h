// "Which algorithm should I pick?", answered from the numbers of a tour.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/weir/simulate/tour.h"

namespace weir::simulate {

// What there is to say beyond the counts, in short lines: "waits: mean 1.5 s, p99 9.9 s, longest
// 10 s" of what delays, "at most 10 at work at once" if the tour tells.
[[nodiscard]] std::vector<std::string> Details(const Tour& tour, const Contender& contender,
                                               const Score& score);

struct Advice {
  std::string goal;      // what somebody may want
  size_t contender = 0;  // who did best at it, an index into TourPlan::contenders
  std::string because;   // the number that says so
};

// One line a goal. Empty for a single contender: there is nothing to choose.
[[nodiscard]] std::vector<Advice> Advise(const Tour& tour);

// One answer for those who want one: who was wrong least often, the cheaper one of equals.
struct Verdict {
  size_t contender = 0;
  std::string because;  // a sentence or two
};

// REQUIRES: at least one contender.
[[nodiscard]] Verdict Decide(const Tour& tour);

// What was sent, in a few words: "offered 1.50x for 4 min".
[[nodiscard]] std::string Offered(const Tour& tour);

// What is worth seeing in one stage, in a sentence.
[[nodiscard]] std::string Remark(const Tour& tour, const Stage& stage);

}  // namespace weir::simulate
