// What must be exact to the unit: clocks that disagree, and many clients at once.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "tests/chaos/load.h"
#include "tests/chaos/rig.h"
#include "tests/chaos/row.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

using shared::FleetStore;

// The machine's clocks, both of them wrong by as much.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(Duration by) : by_(by) {}
  [[nodiscard]] Timestamp Now() const noexcept override { return SystemClock().Now() + by_; }
  [[nodiscard]] WallTime WallNow() const noexcept override { return SystemClock().WallNow() + by_; }

 private:
  const Duration by_;
};

// The most that was admitted within windows [a, b] of the store's clock, beyond b - a + 1 limits,
// for any a and b. A decision that may fall into one of two windows is given to neither alone.
int64_t ExcessOfWindows(const std::vector<Sample>& samples, int64_t wall_minus_now_ns,
                        int64_t window_ns, int64_t limit) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;  // by the first and last window it may be
  int64_t first = INT64_MAX;
  int64_t last = 0;
  for (const Sample& sample : samples) {
    if (sample.allowed) {
      const int64_t from = (sample.start_ns + wall_minus_now_ns) / window_ns;
      const int64_t to = (sample.end_ns + wall_minus_now_ns) / window_ns;
      ++counts[{from, to}];
      first = std::min(first, from);
      last = std::max(last, to);
    }
  }
  int64_t most = INT64_MIN;
  for (int64_t a = first; a <= last; ++a) {
    std::map<int64_t, int64_t> by_end;
    for (auto at = counts.lower_bound({a, 0}); at != counts.end(); ++at) {
      by_end[at->first.second] += at->second;
    }
    int64_t sum = 0;
    for (const auto& [b, count] : by_end) {
      sum += count;
      most = std::max(most, sum - limit * (b - a + 1));
    }
  }
  return most;
}

// The most in any window that begins with a request, beyond the limit.
int64_t ExcessOfLog(std::vector<Sample> samples, int64_t window_ns, int64_t limit) {
  std::erase_if(samples, [](const Sample& s) { return !s.allowed; });
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.start_ns < b.start_ns; });
  int64_t most = INT64_MIN;
  for (size_t i = 0; i < samples.size(); ++i) {
    int64_t count = 0;
    for (size_t j = i; j < samples.size() && samples[j].start_ns < samples[i].start_ns + window_ns;
         ++j) {
      count += samples[j].end_ns < samples[i].start_ns + window_ns ? 1 : 0;
    }
    most = std::max(most, count - limit);
  }
  return most;
}

}  // namespace

void SkewedClocks(Report& report, Probe&) {
  constexpr int64_t kLimit = 40;
  constexpr const char* kFixed = "40/s fixed-window";
  constexpr const char* kLog = "40/s sliding-log";
  const std::array<SkewedClock, kNodes> clocks = {SkewedClock(std::chrono::seconds(-5)),
                                                  SkewedClock(std::chrono::seconds(0)),
                                                  SkewedClock(std::chrono::seconds(5))};
  Rig rig;
  std::vector<std::shared_ptr<FleetStore>> fleet;
  for (const SkewedClock& clock : clocks) {
    RedisOptions options = rig.options();
    options.timeout = kPatientTimeout;
    options.clock = &clock;
    fleet.push_back(rig.Open(options));
  }
  const std::vector<std::string> keys = {"a", "b", "c"};
  const auto load_of = [&](const char* quota, uint64_t scope) {
    return LoadOptions{.nodes = Pointers(fleet),
                       .quota = quota,
                       .scope = scope,
                       .keys = keys,
                       .per_second = 3.0 * kLimit * static_cast<double>(keys.size()),
                       // What is not the store's word is not what this row is about.
                       .on_failure = OnStoreFailure::kDeny,
                       .most_under_way = kPatientCrowd};
  };
  Load of_fixed(load_of(kFixed, 1));
  Load of_log(load_of(kLog, 2));
  const int64_t seconds = report.quick() ? 5 : 30;
  report.Progress("three times the limit for " + std::to_string(seconds) + " s");
  const int64_t begin = NowNs();
  const int64_t wall_minus_now = SystemClock().WallNow().time_since_epoch().count() - NowNs();
  WaitUntil(begin + seconds * kSecond);
  const std::vector<Sample> fixed = of_fixed.Stop();
  const std::vector<Sample> log = of_log.Stop();
  int64_t over_windows = INT64_MIN;
  int64_t over_log = INT64_MIN;
  uint64_t not_by_store = 0;
  for (uint32_t key = 0; key < keys.size(); ++key) {
    over_windows =
        std::max(over_windows, ExcessOfWindows(OfKey(fixed, key), wall_minus_now, kSecond, kLimit));
    over_log = std::max(over_log, ExcessOfLog(OfKey(log, key), kSecond, kLimit));
  }
  for (const auto* const samples : {&fixed, &log}) {
    for (const Sample& sample : *samples) {
      not_by_store += sample.by_store() ? 0 : 1;
    }
  }
  const auto told = [&](const std::vector<Sample>& samples, int64_t over) {
    return std::to_string(kLimit + over) + " at the most, L = " + std::to_string(kLimit) + "; " +
           Text(Admitted(samples)) + " admitted of " + Text(samples.size()) + " in " +
           std::to_string(seconds) + " s, 3 keys";
  };
  report.Expect("per window admitted <= L exactly (fixed-window)", told(fixed, over_windows),
                over_windows <= 0);
  report.Expect("per window admitted <= L exactly (sliding-log)", told(log, over_log),
                over_log <= 0);
  // A whole second at either end may be cut, the rest is full.
  const auto full = static_cast<uint64_t>(kLimit * (seconds - 2)) * keys.size();
  report.ExpectTime("and no window starved",
                    Text(std::min(Admitted(fixed), Admitted(log))) + " admitted, at least " +
                        Text(full) + "; decided without the store: " + Text(not_by_store),
                    Admitted(fixed) >= full && Admitted(log) >= full && not_by_store == 0);
}

void Crowded(Report& report, Probe&) {
  constexpr size_t kClients = 100;
  constexpr int kRequests = 10'000;
  constexpr uint64_t kLimit = 100;
  Rig rig;
  RedisOptions options = rig.options();
  options.timeout = kPatientTimeout;
  const auto fleet = rig.OpenFleet(options);
  const std::vector<const char*> quotas = {"100/day burst 100", "100/day", "100/day fixed-window",
                                           "100/day sliding-log", "100/month"};
  const size_t rounds = report.quick() ? 1 : 4;
  uint64_t runs = 0;
  uint64_t wrong = 0;
  uint64_t scope = 0;
  std::string results;
  for (size_t round = 0; round < rounds; ++round) {
    for (const char* const quota : quotas) {
      ++scope;  // a fresh key
      std::atomic<int> left{kRequests};
      std::atomic<uint64_t> admitted{0};
      std::vector<std::thread> clients;
      for (size_t i = 0; i < kClients; ++i) {
        clients.emplace_back([&, i] {
          FleetStore& store = *fleet[i % kNodes];
          const SharedQuota* const bound = shared::Bound(store, quota, scope);
          while (left.fetch_sub(1) > 0) {
            admitted += shared::AskOne(store, bound, "user").allowed() ? 1 : 0;
          }
        });
      }
      for (std::thread& client : clients) {
        client.join();
      }
      ++runs;
      if (admitted != kLimit) {
        ++wrong;
        results += " " + Text(admitted) + " (" + quota + ")";
      }
    }
    report.Progress("round " + Text(round + 1) + " of " + Text(rounds));
  }
  report.Expect("exactly the oracle's number, every run",
                Text(runs - wrong) + " of " + Text(runs) + " runs exactly 100" +
                    (wrong == 0 ? "" : "; else" + results),
                wrong == 0);
}

}  // namespace weir::chaos
