// A master that hangs, and a Redis that comes and goes.
#include <algorithm>
#include <map>

#include "tests/chaos/load.h"
#include "tests/chaos/rig.h"
#include "tests/chaos/row.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

using shared::FleetStore;

constexpr const char* kWide = "1000000/s burst 1000000";  // denies nobody
constexpr size_t kKeysEach = 50;
constexpr int64_t kSlow = 20 * kMs;
// Who stood still that long cannot be answered in time by somebody who did too.
constexpr int64_t kHalfOfDeadline = 5 * kMs;

struct Opened {
  int64_t at_ns = 0;     // the first answer that an open breaker gave
  int64_t after_ns = 0;  // since the failure that opens it
};

// By node of weir, of questions to one node of Redis.
std::map<uint8_t, Opened> FindOpenings(std::vector<Sample> samples, size_t threshold) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.end_ns < b.end_ns; });
  std::map<uint8_t, size_t> failures;
  std::map<uint8_t, int64_t> crossed;
  std::map<uint8_t, Opened> opened;
  for (const Sample& sample : samples) {
    if (sample.trouble == StoreTrouble::kTimeout && ++failures[sample.node] == threshold) {
      crossed[sample.node] = sample.end_ns;
    }
    // The first question that was not sent any more.
    if (sample.trouble == StoreTrouble::kBreakerOpen && !opened.contains(sample.node) &&
        crossed.contains(sample.node)) {
      opened[sample.node] = {sample.end_ns, sample.end_ns - crossed[sample.node]};
    }
  }
  return opened;
}

void WatchFor(Report& report, int64_t ns, const std::string& what) {
  const int64_t end = NowNs() + ns;
  for (int64_t left = ns; left > 0; left = end - NowNs()) {
    report.Progress(what + ", " + std::to_string((left + kSecond / 2) / kSecond) + " s to go");
    WaitFor(std::min(left, 10 * kSecond));
  }
}

}  // namespace

void SilentMaster(Report& report, Probe& probe) {
  Rig rig;
  const auto fleet = rig.OpenFleet(rig.options());
  const SharedQuota* const quota = shared::Bound(*fleet[0], kWide);
  std::vector<std::string> keys(kKeysEach * kMasters);  // of each master in turn
  for (size_t master = 0; master < kMasters; ++master) {
    const auto some = KeysOfMaster(*quota, kKeysEach, master);
    for (size_t i = 0; i < kKeysEach; ++i) {
      keys[i * kMasters + master] = some[i];
    }
  }
  Load load({.nodes = Pointers(fleet), .quota = kWide, .keys = keys, .per_second = 2000});
  WaitFor(2 * kSecond);
  const int64_t stopped = NowNs();
  rig.redis(0).Pause();
  WatchFor(report, (report.quick() ? 8 : 60) * kSecond, "a master is stopped");
  const int64_t continued = NowNs();
  rig.redis(0).Continue();
  WaitFor(2 * kSecond);
  std::vector<Sample> samples = load.Stop();

  std::erase_if(samples,
                [&](const Sample& s) { return s.start_ns < stopped || s.start_ns >= continued; });
  std::vector<Sample> of_dead;
  std::vector<Sample> of_others;
  for (const Sample& sample : samples) {
    (sample.key % kMasters == 0 ? of_dead : of_others).push_back(sample);
  }
  uint64_t slow = 0;
  uint64_t slow_by_itself = 0;
  int64_t longest = 0;
  for (const Sample& sample : samples) {
    longest = std::max(longest, sample.took_ns());
    if (sample.took_ns() > kSlow) {
      ++slow;
      slow_by_itself +=
          sample.took_ns() - probe.StalledNs(sample.start_ns, sample.end_ns) > kSlow ? 1 : 0;
    }
  }
  report.ExpectTime("no decision over 20 ms except where the probe stalled too",
                    Text(slow_by_itself) + " of " + Text(samples.size()) + ", and " +
                        Text(slow - slow_by_itself) + " in stalls; the longest " + Ms(longest),
                    slow_by_itself == 0);

  const std::map<uint8_t, Opened> opened =
      FindOpenings(of_dead, redis::BreakerOptions{}.consecutive_failures);
  int64_t slowest_opening = 0;
  int64_t last_opening = 0;
  for (const auto& [node, opening] : opened) {
    slowest_opening = std::max(slowest_opening, opening.after_ns);
    last_opening = std::max(last_opening, opening.at_ns);
  }
  report.Expect("every node's breaker opens", Text(opened.size()) + " of " + Text(kNodes),
                opened.size() == kNodes);
  report.ExpectTime("open <= 50 ms after the threshold", Ms(slowest_opening),
                    slowest_opening <= 50 * kMs);
  std::vector<Sample> once_open = samples;
  std::erase_if(once_open, [&](const Sample& s) { return s.start_ns < last_opening; });
  report.ExpectTime(
      "p99 <= 5 ms once open",
      "p99 " + Ms(Percentile(once_open, 0.99)) + ", p99.9 " + Ms(Percentile(once_open, 0.999)),
      Percentile(once_open, 0.99) <= 5 * kMs);
  uint64_t fallbacks = 0;
  uint64_t in_stalls = 0;
  for (const Sample& sample : of_others) {
    if (!sample.by_store()) {
      ++fallbacks;
      in_stalls += probe.StalledNs(sample.start_ns, sample.end_ns) >= kHalfOfDeadline ? 1 : 0;
    }
  }
  report.ExpectTime("keys of other masters: 0 fallbacks",
                    Text(fallbacks - in_stalls) + " of " + Text(of_others.size()) + ", and " +
                        Text(in_stalls) + " in stalls of 5 ms and more",
                    fallbacks == in_stalls);
  report.Show("its own keys are exact again, by its replica",
              "after " + Ms(ExactFrom(of_dead, stopped, continued) - stopped) + ", " +
                  Text(Admitted(of_dead)) + " of " + Text(of_dead.size()) + " admitted");
}

namespace {

// Up a second, down a second.
template <class Down, class Up>
void Flap(Report& report, Rig& rig, const std::string& how, Down down, Up up) {
  constexpr double kBurst = 60;
  constexpr double kPerSecond = 10;
  constexpr double kLimit = 600;
  constexpr const char* kQuota = "600/min burst 60";
  const auto fleet = rig.OpenFleet(rig.options());
  const SharedQuota* const quota = shared::Bound(*fleet[0], kQuota);
  std::vector<std::string> keys;
  for (size_t master = 0; master < kMasters; ++master) {
    const auto some = KeysOfMaster(*quota, 2, master);
    keys.insert(keys.end(), some.begin(), some.end());
  }
  const auto transitions = [&] {
    std::map<std::pair<size_t, std::string>, uint64_t> all;
    for (size_t i = 0; i < fleet.size(); ++i) {
      for (const redis::NodeStatus& node : fleet[i]->Nodes()) {
        all[{i, node.address}] = node.breaker_transitions;
      }
    }
    return all;
  };
  const auto before = transitions();
  Load load({.nodes = Pointers(fleet),
             .quota = kQuota,
             .keys = keys,
             .per_second = 10 * kPerSecond * static_cast<double>(keys.size())});
  const int64_t seconds = report.quick() ? 10 : 60;
  const int64_t begin = NowNs();
  for (int64_t second = 0; second < seconds; ++second) {
    if (second % 10 == 0) {
      report.Progress(how + ", " + std::to_string(seconds - second) + " s to go");
    }
    if (second % 2 == 0) {
      down();
    } else {
      up();
    }
    WaitUntil(begin + (second + 1) * kSecond);
  }
  up();
  WaitFor(kSecond);  // what was told last is published
  const std::vector<Sample> samples = load.Stop();
  uint64_t most = 0;
  for (auto [node, count] : transitions()) {
    const auto found = before.find(node);
    most = std::max(most, count - (found == before.end() ? 0 : found->second));
  }
  // The first pause of a breaker is a short one, which a minute makes up for.
  const auto allowed = static_cast<uint64_t>(seconds / 5 + (report.quick() ? 3 : 0));
  report.Expect("<= 1 breaker transition per 5 s and node (" + how + ")",
                Text(most) + " in " + Text(static_cast<uint64_t>(seconds)) + " s at the most",
                most <= allowed);
  double worst = -kBurst;
  uint64_t least = ~uint64_t{0};
  for (uint32_t key = 0; key < keys.size(); ++key) {
    worst = std::max(worst, Overshoot(OfKey(samples, key), kBurst, kPerSecond));
    least = std::min(least, Admitted(OfKey(samples, key)));
  }
  const auto local = static_cast<uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return !s.by_store(); }));
  char text[160];
  std::snprintf(text, sizeof text, "%.1f of %.0f (%.1f %%); %s of %s decisions local",
                std::max(worst, 0.0), kLimit, 100 * std::max(worst, 0.0) / kLimit,
                Text(local).c_str(), Text(samples.size()).c_str());
  report.Expect("overshoot <= 5 % of L (" + how + ")", text, worst <= 0.05 * kLimit && local > 0);
  const double due = kPerSecond * static_cast<double>(seconds);
  report.Show("admitted of the key that got the least (" + how + ")",
              Text(least) + ", rate * time = " + Text(static_cast<uint64_t>(due)));
}

}  // namespace

void Flapping(Report& report, Probe&) {
  {
    Rig rig(Rig::Way::kProxied);
    Flap(
        report, rig, "cut off",
        [&] {
          for (const auto& proxy : rig.proxies()) {
            proxy->Down();
          }
        },
        [&] {
          for (const auto& proxy : rig.proxies()) {
            proxy->Up();
          }
        });
  }
  Rig rig;
  Flap(
      report, rig, "stopped",
      [&] {
        for (size_t i = 0; i < rig.cluster().size(); ++i) {
          rig.redis(i).Pause();
        }
      },
      [&] {
        for (size_t i = 0; i < rig.cluster().size(); ++i) {
          rig.redis(i).Continue();
        }
      });
}

}  // namespace weir::chaos
