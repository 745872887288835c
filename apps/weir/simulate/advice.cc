#include "apps/weir/simulate/advice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "apps/weir/text.h"

namespace weir::simulate {

using app::FormatAbout;
using app::FormatDuration;
using app::FormatPercent;
using app::FormatRatio;
using app::FormatTenths;
namespace {

// The first index whose score is least. REQUIRES: count > 0.
template <class ScoreOf>
size_t Least(size_t count, ScoreOf score_of) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (score_of(i) < score_of(best))
      best = i;
  }
  return best;
}

uint64_t Wrong(const WrongDecisions& wrong) {
  return wrong.false_allow + wrong.false_deny;
}

std::string Plural(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

std::vector<Advice> Advise(const Tour& tour) {
  const std::vector<Total>& totals = tour.totals;
  if (totals.size() < 2 || totals.front().offered == 0)
    return {};
  const auto limit = static_cast<uint64_t>(tour.plan.limit.limit);

  // By promise, not by what was seen: an adversary may not have found the weak spot. Ties go to the
  // one with fewer wrong decisions.
  auto promised = [&](size_t i) {
    return tour.plan.contenders[i].WorstPossible(tour.LargestCost());
  };
  const size_t tight = Least(totals.size(), [&](size_t i) {
    return std::tuple(promised(i), totals[i].worst_window, Wrong(totals[i].wrong));
  });
  const size_t kind = Least(totals.size(), [&](size_t i) {
    return std::pair(totals[i].wrong.false_deny, totals[i].wrong.false_allow);
  });
  const size_t even = Least(totals.size(), [&](size_t i) {
    const WrongDecisions& wrong = totals[i].wrong;
    return std::pair(std::max(wrong.false_allow, wrong.false_deny), Wrong(wrong));
  });
  const size_t open = Least(totals.size(), [&](size_t i) {
    return std::pair(totals[i].offered - totals[i].admitted, totals[i].worst_window);
  });

  auto percent = [&](size_t i, uint64_t part) { return FormatPercent(part, totals[i].offered); };
  return {
      {"no window far over the limit", tight, FormatRatio(promised(tight), limit) + " at worst"},
      {"nobody refused while there is room", kind,
       percent(kind, totals[kind].wrong.false_deny) + " false deny"},
      {"neither kind of mistake often", even,
       percent(even, totals[even].wrong.false_allow) + " and " +
           percent(even, totals[even].wrong.false_deny)},
      {"as much through as possible", open, percent(open, totals[open].admitted) + " admitted"},
  };
}

Verdict Decide(const Tour& tour) {
  const std::vector<Total>& totals = tour.totals;
  const auto limit = static_cast<uint64_t>(tour.plan.limit.limit);
  const size_t best = Least(totals.size(), [&](size_t i) {
    const WrongDecisions& wrong = totals[i].wrong;
    return std::tuple(std::max(wrong.false_allow, wrong.false_deny), Wrong(wrong),
                      tour.plan.contenders[i].DecibytesPerKey(), totals[i].worst_window);
  });
  const Total& total = totals[best];
  std::string because;
  if (Wrong(total.wrong) == 0) {
    because = "it decided every request as an exact log would have";
  } else {
    because = "it was wrong least often. It let " +
              FormatPercent(total.wrong.false_allow, total.offered) +
              " of the requests pass that an exact log would have refused, and refused " +
              FormatPercent(total.wrong.false_deny, total.offered) + " that had room";
  }
  because += ". Its fullest window held " + FormatRatio(total.worst_window, limit) +
             " the limit; a key takes " +
             FormatTenths(tour.plan.contenders[best].DecibytesPerKey()) + " bytes.";
  return {best, because};
}

std::string Offered(const Tour& tour) {
  const TourPlan& plan = tour.plan;
  const std::string span = FormatDuration(plan.spec.duration);
  if (!plan.trace)
    return "offered " + FormatRatio(static_cast<uint64_t>(plan.spec.rate_milli), 1000) + " for " +
           span;
  return "recorded over " + span;
}

std::vector<std::string> Details(const Tour& tour, const Contender& contender, const Score& score) {
  std::vector<std::string> lines;
  if (contender.Delays()) {
    lines.push_back("waits: mean " + FormatAbout(score.waits.mean) + ", p99 " +
                    FormatAbout(score.waits.p99) + ", longest " + FormatAbout(score.waits.longest));
  }
  if (tour.plan.tells_at_once)
    lines.push_back("at most " + std::to_string(score.at_once) + " at work at once");
  return lines;
}

std::string Remark(const Tour& tour, const Stage& stage) {
  const auto& scores = stage.scores;
  if (scores.empty() || stage.offered == 0)
    return "no requests fell into this run";
  if (stage.never_fit > 0) {
    return Plural(stage.never_fit, "request costs", "requests cost") +
           " more than the whole limit"
           " and can never pass: raise --limit, or count requests instead of units with --cost 1";
  }
  const auto limit = static_cast<uint64_t>(tour.plan.limit.limit);
  auto name = [&](size_t i) { return tour.plan.contenders[i].name(); };

  const size_t strict = Least(scores.size(), [&](size_t i) {
    return std::pair(scores[i].worst_window, scores[i].wrong.false_deny);
  });
  const size_t loose = Least(scores.size(), [&](size_t i) { return ~scores[i].worst_window; });
  const size_t harsh = Least(scores.size(), [&](size_t i) { return ~scores[i].wrong.false_deny; });
  const uint64_t refused = scores[harsh].wrong.false_deny;
  const std::string window = FormatDuration(tour.plan.limit.window);

  if (scores[loose].worst_window <= limit) {
    if (refused == 0)
      return "nobody went over the limit, and nobody was refused without need";
    return "nobody went over; " + name(harsh) + " refused " +
           Plural(refused, "request", "requests") + " that had room";
  }
  std::string text =
      name(loose) + " let " + std::to_string(scores[loose].worst_window) + " through in " + window;
  if (strict == loose || scores[strict].worst_window == scores[loose].worst_window)
    return text;
  text += ", " + name(strict) + " never more than " + std::to_string(scores[strict].worst_window);
  if (scores[strict].wrong.false_deny > 0) {
    text += " (it refused " + std::to_string(scores[strict].wrong.false_deny) + " that had room)";
  }
  return text;
}

}  // namespace weir::simulate
