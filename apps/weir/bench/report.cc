#include "apps/weir/bench/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "apps/weir/text.h"

namespace weir::bench {

namespace {

using app::FormatCount;
using app::Ink;
using app::PadLeft;
using app::PadRight;
using app::Terminal;

struct Percentile {
  std::string_view name;
  double share;
};
constexpr std::array<Percentile, 5> kPercentiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}}};

std::string Line(const Terminal& terminal, std::string_view name, const std::string& value,
                 const std::string& more) {
  return " " + app::Paint(terminal, Ink::kBold, PadRight(name, 11)) + PadLeft(value, 13) + "   " +
         app::Paint(terminal, Ink::kDim, more) + "\n";
}

std::string Share(uint64_t part, const Tally& tally) {
  return app::FormatPercent(part, std::max<uint64_t>(1, tally.answers()));
}

std::string Title(const LoadPlan& plan) {
  const std::string pace = plan.rate == 0 ? "closed loop" : FormatCount(plan.rate) + "/s";
  return plan.target.authority + "  " + pace + " for " + app::FormatDuration(plan.duration) + ", " +
         std::to_string(plan.connections) + " connections, pipeline " +
         std::to_string(plan.pipeline);
}

std::string Numbers(const base::Histogram& histogram) {
  std::string text = "{\"min\":" + std::to_string(histogram.min()) +
                     ",\"mean\":" + std::to_string(std::llround(histogram.mean()));
  for (const Percentile& percentile : kPercentiles) {
    text += ",\"" + std::string(percentile.name) +
            "\":" + std::to_string(histogram.ValueAt(percentile.share));
  }
  return text + ",\"max\":" + std::to_string(histogram.max()) + "}";
}

// The step of 1, 2, 5, 10 … that a value ends at, as its number.
size_t StepOf(uint64_t value) {
  size_t step = 0;
  for (uint64_t end = 1; value > end; ++step) {
    end = step % 3 == 1 ? end / 2 * 5 : end * 2;
  }
  return step;
}

uint64_t EndOfStep(size_t step) {
  constexpr std::array<uint64_t, 3> kMantissas = {1, 2, 5};
  uint64_t end = kMantissas[step % 3];
  for (size_t tens = step / 3; tens > 0; --tens) {
    end *= 10;
  }
  return end;
}

}  // namespace

std::string FormatNs(uint64_t ns, const Terminal& terminal) {
  struct Unit {
    uint64_t ns;
    std::string_view name;
  };
  const std::array<Unit, 3> units = {
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, terminal.utf8() ? "µs" : "us"}}};
  for (const Unit& unit : units) {
    if (ns >= unit.ns) {
      const double value = static_cast<double>(ns) / static_cast<double>(unit.ns);
      const int places = value < 10 ? 2 : value < 100 ? 1 : 0;
      char text[32];
      std::snprintf(text, sizeof text, "%.*f ", places, value);
      return text + std::string(unit.name);
    }
  }
  return std::to_string(ns) + " ns";
}

std::string Picture(const base::Histogram& histogram, const Terminal& terminal) {
  std::vector<uint64_t> steps;
  histogram.ForEach([&steps](uint64_t, uint64_t highest, uint64_t count) {
    const size_t step = StepOf(highest);
    steps.resize(std::max(steps.size(), step + 1));
    steps[step] += count;
  });
  if (steps.empty()) {
    return "";
  }
  constexpr size_t kBesides = 40;  // columns for the numbers
  const size_t width = std::clamp<size_t>(terminal.width, 60, 120) - kBesides;
  const uint64_t most = *std::max_element(steps.begin(), steps.end());
  const auto first = std::find_if(steps.begin(), steps.end(), [](uint64_t n) { return n > 0; });
  std::string picture;
  uint64_t below = 0;
  for (auto step = static_cast<size_t>(first - steps.begin()); step < steps.size(); ++step) {
    const uint64_t count = steps[step];
    below += count;
    // What is there at all shows.
    const size_t bar = count == 0 ? 0 : std::max<size_t>(1, count * width / most);
    picture += PadLeft(FormatNs(EndOfStep(step), terminal), 10) + "  " +
               app::Paint(terminal, Ink::kAccent, app::Repeat(terminal.utf8() ? "█" : "#", bar)) +
               std::string(width - bar, ' ') + PadLeft(FormatCount(count), 13) + "  " +
               PadLeft(app::FormatPercent(below, histogram.count()), 8) + "\n";
  }
  return picture;
}

std::string Report(const LoadPlan& plan, const Tally& tally, const Terminal& terminal) {
  const auto rate = static_cast<uint64_t>(std::llround(tally.answers_per_second()));
  std::string text = app::Paint(terminal, Ink::kBold, Title(plan)) + "\n\n";
  text += Line(terminal, "answers", FormatCount(tally.answers()), FormatCount(rate) + "/s");
  text += Line(terminal, "allowed", FormatCount(tally.count(Answer::kAllowed)),
               Share(tally.count(Answer::kAllowed), tally));
  text += Line(terminal, "denied", FormatCount(tally.count(Answer::kDenied)),
               Share(tally.count(Answer::kDenied), tally));
  text += Line(terminal, "errors", FormatCount(tally.count(Answer::kError)),
               tally.error().empty() ? "" : "the first: " + tally.error());
  if (tally.unanswered() > 0) {
    text +=
        Line(terminal, "unanswered", FormatCount(tally.unanswered()),
             "lost with their connection, or none within " + app::FormatDuration(plan.patience));
  }
  if (tally.unsent() > 0) {
    text += Line(terminal, "unsent", FormatCount(tally.unsent()),
                 "no connection had room for them: the server is far behind");
  }
  if (plan.rate > 0) {
    text += Line(terminal, "late sends", FormatCount(tally.late()),
                 "more than " + app::FormatDuration(Tally::kLate) + " after their time; p99 " +
                     FormatNs(tally.lateness().ValueAt(0.99), terminal) + ", at most " +
                     FormatNs(tally.lateness().max(), terminal));
  }
  text += "\n " + app::Paint(terminal, Ink::kBold, "latency") + "    ";
  for (const Percentile& percentile : kPercentiles) {
    text += std::string(percentile.name) + " " +
            FormatNs(tally.latency().ValueAt(percentile.share), terminal) + "   ";
  }
  text += "max " + FormatNs(tally.latency().max(), terminal) + "\n";
  text += app::Paint(terminal, Ink::kDim,
                     plan.rate > 0 ? " from the moment each request should have left\n\n"
                                   : " from the moment each request left\n\n");
  return text + Picture(tally.latency(), terminal);
}

std::string Json(const LoadPlan& plan, const Tally& tally) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "\"seconds\":%.6f,\"answers_per_second\":%.1f",
                std::chrono::duration<double>(tally.elapsed()).count(), tally.answers_per_second());
  std::string text = "{\"target\":\"" + plan.target.authority +
                     "\",\"rate\":" + std::to_string(plan.rate) +
                     ",\"connections\":" + std::to_string(plan.connections) +
                     ",\"pipeline\":" + std::to_string(plan.pipeline) + "," + numbers;
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += ",\"" + std::string(name) + "\":" + value;
  };
  add("sent", std::to_string(tally.sent()));
  add("answers", std::to_string(tally.answers()));
  add("allowed", std::to_string(tally.count(Answer::kAllowed)));
  add("denied", std::to_string(tally.count(Answer::kDenied)));
  add("errors", std::to_string(tally.count(Answer::kError)));
  add("unanswered", std::to_string(tally.unanswered()));
  add("unsent", std::to_string(tally.unsent()));
  add("late", std::to_string(tally.late()));
  add("latency_ns", Numbers(tally.latency()));
  add("lateness_ns", Numbers(tally.lateness()));
  text += ",\"histogram\":[";
  bool first = true;
  tally.latency().ForEach([&](uint64_t, uint64_t highest, uint64_t count) {
    text += (first ? "[" : ",[") + std::to_string(highest) + "," + std::to_string(count) + "]";
    first = false;
  });
  return text + "]}\n";
}

}  // namespace weir::bench
