// Masters that die and are replaced, and a Redis that is gone altogether.
#include <algorithm>

#include "tests/chaos/load.h"
#include "tests/chaos/rig.h"
#include "tests/chaos/row.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

struct Death {
  int64_t at_ns = 0;
  size_t shard = 0;
};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

void KilledMaster(Report& report, Probe&) {
  constexpr double kBurst = 50;
  constexpr double kPerSecond = 100;
  constexpr const char* kQuota = "100/s burst 50";
  constexpr size_t kKeysEach = 2;
  Rig rig;
  const auto fleet = rig.OpenFleet(rig.options());
  const SharedQuota* const quota = shared::Bound(*fleet[0], kQuota);
  std::vector<std::string> keys;
  for (size_t master = 0; master < kMasters; ++master) {
    const auto some = KeysOfMaster(*quota, kKeysEach, master);
    keys.insert(keys.end(), some.begin(), some.end());
  }
  Load load({.nodes = Pointers(fleet),
             .quota = kQuota,
             .keys = keys,
             .per_second = 2 * kPerSecond * static_cast<double>(keys.size())});
  WaitFor(2 * kSecond);
  const size_t rounds = report.quick() ? 3 : 20;
  std::vector<Death> deaths;
  uint64_t stuck = 0;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t shard = round % kMasters;
    const size_t victim = rig.IsMaster(shard) ? shard : shard + kMasters;
    const size_t heir = 2 * shard + kMasters - victim;
    report.Progress("kill " + Text(round + 1) + " of " + Text(rounds));
    deaths.push_back({NowNs(), shard});
    rig.redis(victim).Kill();
    stuck += shared::Eventually([&] { return rig.IsMaster(heir); }) ? 0 : 1;
    WaitUntil(deaths.back().at_ns + 7 * kSecond);  // so that a moment of rest is seen
    rig.redis(victim).Restart();
    stuck += shared::Eventually([&] { return rig.IsWell(); }) ? 0 : 1;
  }
  WaitFor(kSecond);
  const int64_t end = NowNs();
  const std::vector<Sample> samples = load.Stop();
  double worst = -kBurst;
  int64_t longest = 0;
  int64_t sum = 0;
  for (size_t i = 0; i < deaths.size(); ++i) {
    const int64_t until = i + 1 < deaths.size() ? deaths[i + 1].at_ns : end;
    std::vector<Sample> own;
    for (const Sample& sample : samples) {
      if (sample.key / kKeysEach == deaths[i].shard &&
          sample.start_ns >= deaths[i].at_ns - kSecond && sample.end_ns <= until) {
        own.push_back(sample);
      }
    }
    for (uint32_t key = 0; key < keys.size(); ++key) {
      worst = std::max(worst, Overshoot(OfKey(own, key), kBurst, kPerSecond));
    }
    const int64_t took = ExactFrom(own, deaths[i].at_ns, until) - deaths[i].at_ns;
    longest = std::max(longest, took);
    sum += took;
  }
  report.Expect("every replica takes over",
                Text(rounds - std::min<size_t>(stuck, rounds)) + " of " + Text(rounds), stuck == 0);
  const double bound = kBurst + kPerSecond * kNodeTimeoutMs / 1000;
  report.Expect("overshoot per failover <= B + r*(node timeout + lag)",
                Number(std::max(worst, 0.0)) + " at the most; B + r * 2 s = " + Number(bound),
                worst <= bound);
  report.ExpectTime(
      "exact again <= 5 s",
      Ms(longest) + " at the most, " + Ms(sum / static_cast<int64_t>(rounds)) + " on average",
      longest <= 5 * kSecond);
}

void Gone(Report& report, Probe&) {
  constexpr double kBurst = 60;
  constexpr double kPerSecond = 10;
  constexpr const char* kQuota = "600/min burst 60";
  Rig rig;
  const auto fleet = rig.OpenFleet(rig.options());
  const SharedQuota* const quota = shared::Bound(*fleet[0], kQuota);
  std::vector<std::string> known;
  for (size_t master = 0; master < kMasters; ++master) {
    known.push_back(KeysOfMaster(*quota, 1, master).front());
  }
  const std::vector<std::string> strangers = {"new one", "new two", "new three"};
  Load of_known({.nodes = Pointers(fleet),
                 .quota = kQuota,
                 .keys = known,
                 .per_second = 10 * kPerSecond * static_cast<double>(known.size())});
  WaitFor(3 * kSecond);
  const int64_t seconds = report.quick() ? 6 : 60;
  const int64_t begin = NowNs();
  for (size_t i = 0; i < rig.cluster().size(); ++i) {
    rig.redis(i).Kill();
  }
  Load of_strangers({.nodes = Pointers(fleet),
                     .quota = kQuota,
                     .keys = strangers,
                     .per_second = 10 * kPerSecond * static_cast<double>(strangers.size())});
  for (int64_t left = seconds; left > 0; left = seconds - (NowNs() - begin) / kSecond) {
    report.Progress("gone, " + std::to_string(left) + " s to go");
    WaitFor(std::min<int64_t>(left, 10) * kSecond);
  }
  const int64_t end = NowNs();
  std::vector<Sample> samples = of_strangers.Stop();
  for (Sample sample : of_known.Stop()) {
    sample.key += static_cast<uint32_t>(strangers.size());
    samples.push_back(sample);
  }
  std::erase_if(samples, [&](const Sample& s) { return s.start_ns < begin || s.start_ns >= end; });
  const double limit = kPerSecond * static_cast<double>(end - begin) / 1e9;
  const double bound = 1.05 * limit + kBurst;
  uint64_t most = 0;
  uint64_t least = ~uint64_t{0};
  for (uint32_t key = 0; key < strangers.size() + known.size(); ++key) {
    const uint64_t admitted = Admitted(OfKey(samples, key));
    most = std::max(most, admitted);
    least = std::min(least, admitted);
  }
  report.Expect("admitted <= 1.05 L + B in all",
                Text(least) + " to " + Text(most) + " a key; L = " + Number(limit) +
                    ", 1.05 L + B = " + Number(bound),
                static_cast<double>(most) <= bound);
  report.Expect("and not much less than L", Text(least) + " at the least",
                static_cast<double>(least) >= 0.9 * limit);
  report.Progress("Redis returns, empty");
  for (size_t i = 0; i < rig.cluster().size(); ++i) {
    rig.redis(i).Restart();
  }
  const int64_t back = NowNs();
  const bool exact = shared::Eventually([&] {
    return std::all_of(fleet.begin(), fleet.end(), [&](const auto& store) {
      return shared::AskOne(*store, shared::Bound(*store, kQuota), known[0], {.cost = 0}).basis ==
             Basis::kStore;
    });
  });
  uint64_t repaid = 0;
  for (const auto& store : fleet) {
    repaid += store->Stats().repaid_units;
  }
  report.Expect("recovers by itself",
                exact ? "after " + Ms(NowNs() - back) + ", " + Text(repaid) + " units repaid so far"
                      : "not within a minute",
                exact);
}

}  // namespace weir::chaos
