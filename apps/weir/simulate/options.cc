#include "apps/weir/simulate/options.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/quota.h"

#include "apps/weir/simulate/report.h"
#include "apps/weir/suggest.h"
#include "apps/weir/text.h"

namespace weir::simulate {

using app::FormatDuration;
using app::ParseDuration;
using app::ParseMilli;
using app::ParseWhole;
namespace {

constexpr int64_t kDefaultWindows = 4;
constexpr int64_t kMinWindows = 2;
constexpr int64_t kMaxWindows = 100;
constexpr Duration kMaxDuration = Quota::kMaxHorizon;  // whatever the window
constexpr int64_t kMinRateMilli = 10;
constexpr int64_t kMaxRateMilli = 100'000;

Error Wrong(std::string_view option, std::string_view found, std::string_view allowed) {
  return Error::Invalid(std::string(option) + ": '" + std::string(found) + "' is not " +
                        std::string(allowed));
}

// The limit, and the burst if the text names one.
struct ParsedLimit {
  Limit limit;
  std::optional<int64_t> burst;
};

Result<ParsedLimit> ParseLimit(const std::string& text) {
  auto quota = Quota::Parse(text.empty() ? "100/min" : text);
  if (!quota)
    return Error::Invalid("--limit: " + quota.error().message);
  ParsedLimit parsed;
  parsed.limit = {quota->limit(), quota->window()};
  switch (quota->algorithm()) {
    case Algorithm::kSlidingWindow:
      return parsed;
    case Algorithm::kTokenBucket:
      parsed.burst = quota->burst();
      return parsed;
    case Algorithm::kCalendar:
      return Wrong("--limit", text,
                   "a limit over a window of fixed length, as in 100/min or "
                   "5000/h: months and years differ in length");
    default:
      return Wrong("--limit", text,
                   "a bare limit, as in 100/min: choose the algorithm with "
                   "--algorithm");
  }
}

Result<int64_t> ParseBurst(std::string_view option, std::string_view text) {
  auto burst = ParseWhole(text);
  if (!burst || *burst == 0 || *burst > static_cast<uint64_t>(Quota::kMaxLimit)) {
    return Wrong(option, text, "a whole number from 1 to " + std::to_string(Quota::kMaxLimit));
  }
  return static_cast<int64_t>(*burst);
}

std::vector<std::string_view> KindNames() {
  std::vector<std::string_view> names;
  for (const KindInfo& info : AllKinds()) names.push_back(info.name);
  names.push_back("all");
  return names;
}

std::vector<std::string_view> TrafficNames() {
  std::vector<std::string_view> names;
  for (const TrafficInfo& info : AllTraffic()) names.push_back(info.name);
  names.push_back("all");
  return names;
}

// "token-bucket" or "token-bucket:20".
Result<Contender> ParseContender(const std::string& text, const Limit& limit, int64_t burst) {
  const size_t colon = std::min(text.find(':'), text.size());
  const KindInfo* const kind = FindKind(std::string_view(text).substr(0, colon));
  if (kind == nullptr) {
    return Error::Invalid("--algorithm: " +
                          app::UnknownName("algorithm", text.substr(0, colon), KindNames()));
  }
  int64_t number = kind->number == OwnNumber::kBurst ? burst : 0;
  if (colon < text.size()) {
    if (kind->number == OwnNumber::kNone) {
      return Error::Invalid("--algorithm: " + std::string(kind->name) +
                            " takes no number; token-bucket, leaky-bucket and queue (a burst) and "
                            "concurrency (how many at once) do");
    }
    auto own = ParseBurst("--algorithm", std::string_view(text).substr(colon + 1));
    if (!own)
      return own.error();
    number = *own;
  }
  auto contender = Contender::Create(*kind, limit, number);
  if (!contender) {
    return Error::Invalid(std::string(kind->name) + ": " + contender.error().message);
  }
  contender->set_name(text);
  return contender;
}

// Four that differ most. Without a burst, a bucket saves up to the whole limit, which is what the
// library does; beside it one that saves a fifth shows what the burst is for.
std::vector<std::string> DefaultAlgorithms(const Limit& limit, bool burst_given) {
  std::vector<std::string> names = {"fixed-window", "sliding-window", "token-bucket"};
  const int64_t fifth = limit.limit / 5;
  if (burst_given || fifth == 0) {
    names.emplace_back("min-gap");
  } else {
    names.push_back("token-bucket:" + std::to_string(fifth));
  }
  return names;
}

// Two of a kind are told apart by their burst.
void NameApart(std::vector<Contender>& contenders) {
  for (Contender& contender : contenders) {
    const auto same = std::count_if(contenders.begin(), contenders.end(), [&](const Contender& c) {
      return &c.kind() == &contender.kind();
    });
    if (same > 1) {
      contender.set_name(std::string(contender.kind().name) + ":" +
                         std::to_string(contender.quota().burst()));
    }
  }
}

Result<std::vector<Contender>> ChooseContenders(const RawOptions& raw, const Limit& limit,
                                                std::optional<int64_t> burst,
                                                uint64_t largest_cost) {
  std::vector<std::string> names = raw.algorithms;
  if (names.empty())
    names = DefaultAlgorithms(limit, burst.has_value());
  if (const auto all = std::find(names.begin(), names.end(), "all"); all != names.end()) {
    std::vector<std::string> every;
    for (const KindInfo& info : AllKinds()) {
      if (Applies(info, limit, largest_cost))
        every.emplace_back(info.name);
    }
    names.insert(names.erase(all), every.begin(), every.end());
  }
  std::vector<Contender> contenders;
  bool burst_used = false;
  for (const std::string& name : names) {
    auto contender = ParseContender(name, limit, burst.value_or(0));
    if (!contender)
      return contender.error();
    burst_used = burst_used || contender->kind().number == OwnNumber::kBurst;
    const bool twice = std::any_of(contenders.begin(), contenders.end(), [&](const Contender& c) {
      return &c.kind() == &contender->kind() && c.quota() == contender->quota();
    });
    if (!twice)
      contenders.push_back(*std::move(contender));
  }
  NameApart(contenders);
  if (burst && !burst_used) {
    return Error::Invalid(
        "--burst: none of the chosen algorithms has one; token-bucket and "
        "leaky-bucket do");
  }
  return contenders;
}

Result<std::vector<Traffic>> ChooseTraffic(const RawOptions& raw) {
  std::vector<Traffic> chosen;
  auto add = [&](Traffic traffic) {
    if (std::find(chosen.begin(), chosen.end(), traffic) == chosen.end()) {
      chosen.push_back(traffic);
    }
  };
  for (const std::string& name : raw.traffic) {
    if (name == "all")
      continue;
    const auto traffic = FindTraffic(name);
    if (!traffic) {
      return Error::Invalid("--traffic: " + app::UnknownName("traffic", name, TrafficNames()));
    }
    add(*traffic);
  }
  const bool all = std::find(raw.traffic.begin(), raw.traffic.end(), "all") != raw.traffic.end();
  if (all || raw.traffic.empty()) {
    for (const TrafficInfo& info : AllTraffic()) add(info.traffic);
  }
  return chosen;
}

Result<Duration> ChooseDuration(const RawOptions& raw, Duration window) {
  if (raw.duration.empty())
    return window * kDefaultWindows;
  auto duration = ParseDuration(raw.duration);
  if (!duration)
    return Wrong("--duration", raw.duration, duration.error().message);
  const Duration least = window * kMinWindows;
  const Duration most = window <= kMaxDuration / kMaxWindows ? window * kMaxWindows : kMaxDuration;
  if (*duration < least || *duration > most) {
    return Wrong("--duration", raw.duration,
                 "from " + FormatDuration(least) + " to " + FormatDuration(most) +
                     ": at least 2 windows of this limit, at most 100, or 100 years");
  }
  return duration;
}

Result<int64_t> ChooseRate(const RawOptions& raw) {
  if (raw.rate.empty())
    return TrafficSpec{}.rate_milli;
  std::string text = raw.rate;
  if (text.back() == 'x')
    text.pop_back();
  auto rate = ParseMilli(text);
  if (!rate || *rate < kMinRateMilli || *rate > kMaxRateMilli) {
    return Wrong("--rate", raw.rate,
                 "a multiple of the limit from 0.01 to 100 with at most three decimals, as in 1.5");
  }
  return rate;
}

// What is sent: made up, by five options, or recorded, by one.
Result<void> ChooseMadeUp(const RawOptions& raw, TourPlan& plan) {
  auto traffic = ChooseTraffic(raw);
  if (!traffic)
    return traffic.error();
  plan.traffic = *std::move(traffic);
  auto duration = ChooseDuration(raw, plan.limit.window);
  if (!duration)
    return duration.error();
  plan.spec.duration = *duration;
  auto rate = ChooseRate(raw);
  if (!rate)
    return rate.error();
  plan.spec.rate_milli = *rate;
  if (CountCeiling(plan.spec) > kMaxRequests) {
    return Error::Invalid("this comes to more than " + std::to_string(kMaxRequests) +
                          " requests for one traffic: take a smaller --limit, --rate or "
                          "--duration");
  }
  return {};
}

Result<void> ChooseRecorded(const RawOptions& raw, const Progress& progress, TourPlan& plan) {
  if (!raw.traffic.empty() || !raw.duration.empty() || !raw.rate.empty()) {
    return Error::Invalid(
        "--trace: a recording has its own traffic, duration and rate; leave out --traffic, "
        "--duration and --rate");
  }
  auto trace = LoadTrace(raw.trace, plan.limit.window, progress);
  if (!trace)
    return trace.error();
  if (!raw.cost.empty())
    DrawCosts(trace->requests, plan.cost, plan.spec.seed);
  for (Request& request : trace->requests) {
    plan.tells_at_once = plan.tells_at_once || request.service != Duration::zero();
    if (!raw.service.empty())
      request.service = Duration::zero();
  }
  DrawServices(trace->requests, plan.service, plan.spec.seed);
  plan.spec.duration = WholeWindows(*trace, plan.limit.window);
  plan.trace = *std::move(trace);
  return {};
}

uint64_t LargestCost(const TourPlan& plan) {
  if (!plan.trace)
    return plan.cost.most;
  uint64_t largest = 1;
  for (const Request& request : plan.trace->requests) {
    largest = std::max<uint64_t>(largest, request.cost);
  }
  return largest;
}

Service ServiceOf(const TourPlan& plan) {
  if (!plan.trace) {
    const auto [least, most] = plan.service;
    return {least, least + (most - least) / 2, most};
  }
  const std::vector<Request>& requests = plan.trace->requests;
  const auto shorter = [](const Request& a, const Request& b) { return a.service < b.service; };
  const auto [least, most] = std::minmax_element(requests.begin(), requests.end(), shorter);
  // Through double: the sum of 25 million times of a year does not fit.
  const double sum = std::accumulate(requests.begin(), requests.end(), 0.0,
                                     [](double all, const Request& request) {
                                       return all + static_cast<double>(request.service.count());
                                     });
  const auto mean = static_cast<int64_t>(sum / static_cast<double>(requests.size()));
  return {least->service, Duration(mean), most->service};
}

}  // namespace

Result<TourPlan> MakePlan(const RawOptions& raw, const Progress& progress) {
  TourPlan plan;
  auto limit = ParseLimit(raw.limit);
  if (!limit)
    return limit.error();
  plan.limit = limit->limit;

  std::optional<int64_t> burst = limit->burst;
  if (!raw.burst.empty()) {
    auto given = ParseBurst("--burst", raw.burst);
    if (!given)
      return given.error();
    burst = *given;
  }
  plan.spec.limit = plan.limit.limit;
  plan.spec.window = plan.limit.window;
  if (!raw.seed.empty()) {
    auto seed = ParseWhole(raw.seed);
    if (!seed)
      return Wrong("--seed", raw.seed, "a whole number from 0 to 2^64 - 1");
    plan.spec.seed = *seed;
  }
  if (!raw.cost.empty()) {
    auto cost = ParseCost(raw.cost);
    if (!cost)
      return Wrong("--cost", raw.cost, cost.error().message);
    plan.cost = *cost;
  }
  plan.service = UsualService(plan.limit.window);
  plan.tells_at_once = !raw.service.empty();
  if (!raw.service.empty()) {
    auto service = ParseService(raw.service);
    if (!service)
      return Wrong("--service", raw.service, service.error().message);
    plan.service = *service;
  }
  auto chosen = raw.trace.empty() ? ChooseMadeUp(raw, plan) : ChooseRecorded(raw, progress, plan);
  if (!chosen)
    return chosen.error();
  plan.limit.service = ServiceOf(plan);
  auto contenders = ChooseContenders(raw, plan.limit, burst, LargestCost(plan));
  if (!contenders)
    return contenders.error();
  plan.contenders = *std::move(contenders);
  plan.tells_at_once =
      plan.tells_at_once || std::any_of(plan.contenders.begin(), plan.contenders.end(),
                                        [](const Contender& c) { return c.Holds(); });
  return plan;
}

Result<size_t> ChooseWidth(const RawOptions& raw, size_t detected) {
  if (raw.width.empty())
    return std::clamp(detected, kMinWidth, size_t{160});
  auto width = ParseWhole(raw.width);
  if (!width || *width < kMinWidth || *width > kMaxWidth) {
    return Wrong("--width", raw.width,
                 "a number of columns from " + std::to_string(kMinWidth) + " to " +
                     std::to_string(kMaxWidth));
  }
  return static_cast<size_t>(*width);
}

}  // namespace weir::simulate
