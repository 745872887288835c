// Memory under attack: far more random keys than the budget has room for, abusers among them, and
// people who only want to be served.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/random.h"
#include "testing/twin.h"

namespace weir::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Under a sanitizer, or without optimisation, everything is this much smaller, budget and all. What
// a key has in memory, and in the sketch, stays in proportion.
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kScale = 64;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kScale = 64;
#else
constexpr uint64_t kScale = 1;
#endif
#else
constexpr uint64_t kScale = 1;
#endif

constexpr size_t kBudgetBytes = (size_t{64} << 20) / kScale;
constexpr uint64_t kRandomKeys = 50'000'000 / kScale;
constexpr uint64_t kMinutes = 5;
constexpr int kResident = 900;
constexpr int kNew = 100;
constexpr int kAbusers = 10;
constexpr uint64_t kStepMs = 1;
constexpr uint64_t kSteps = kMinutes * 60'000 / kStepMs;

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all_pages = 0;
  size_t resident_pages = 0;
  statm >> all_pages >> resident_pages;
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Somebody who sends at a mean rate, at random moments.
struct Client {
  std::string key;
  double next_ms = 0;
  uint64_t asked = 0;
  uint64_t denied = 0;
  uint64_t by_sketch = 0;
  std::deque<Timestamp> admitted = {};  // the last minute's
  uint64_t worst = 0;                   // admitted in any minute
};

class Attack : public ::testing::TestWithParam<const char*> {
 protected:
  Attack() {
    for (int i = 0; i < kResident + kNew; ++i) {
      legitimate_.push_back({.key = "a legitimate key " + std::to_string(i)});
    }
    for (int i = 0; i < kAbusers; ++i) {
      abusers_.push_back({.key = "an abuser's key " + std::to_string(i)});
    }
  }

  // Milliseconds until the next request of somebody who sends `per_minute` of them.
  double Gap(double per_minute) {
    const double uniform = (static_cast<double>(random_.Next() >> 11) + 1) / 9007199254740993.0;
    return -std::log(uniform) * 60'000 / per_minute;
  }

  void Ask(Limiter& limiter, Client& client, double per_minute, uint64_t at_ms, Timestamp now) {
    for (; client.next_ms <= static_cast<double>(at_ms); client.next_ms += Gap(per_minute)) {
      const Decision decision = limiter.Check(client.key, now);
      ++client.asked;
      client.by_sketch += static_cast<uint64_t>(decision.basis == Basis::kSketch);
      if (!decision.allowed()) {
        ++client.denied;
        continue;
      }
      client.admitted.push_back(now);
      while (client.admitted.front() + minutes(1) <= now) {
        client.admitted.pop_front();
      }
      client.worst = std::max<uint64_t>(client.worst, client.admitted.size());
    }
  }

  testing::Random random_{20261116};
  std::vector<Client> legitimate_;
  std::vector<Client> abusers_;
};

struct Totals {
  uint64_t asked = 0;
  uint64_t denied = 0;
  uint64_t by_sketch = 0;

  void Add(const Client& client) {
    asked += client.asked;
    denied += client.denied;
    by_sketch += client.by_sketch;
  }
  [[nodiscard]] double DeniedPercent() const {
    return 100.0 * static_cast<double>(denied) / static_cast<double>(asked);
  }
};

TEST_P(Attack, KeepsItsMemoryServesPeopleAndHoldsAbusersToTheirLimit) {
  ManualClock clock(testing::Noon());
  const size_t before = ResidentBytes();
  const Quota quota = *Quota::Parse(GetParam());
  Limiter limiter = *Limiter::Create(quota, {.budget_bytes = kBudgetBytes, .clock = &clock});
  const double half_of_it = quota.limit() / 2.0;
  const double ten_times_it = 10.0 * quota.limit();
  uint64_t at_ms = 0;
  // The residents have been there for a minute, and so has half of the abusers.
  for (; at_ms < 60'000; at_ms += 10) {
    const Timestamp now = limiter.Now();
    for (int i = 0; i < kResident; ++i) {
      Ask(limiter, legitimate_[static_cast<size_t>(i)], half_of_it, at_ms, now);
    }
    for (int i = 0; i < kAbusers / 2; ++i) {
      Ask(limiter, abusers_[static_cast<size_t>(i)], ten_times_it, at_ms, now);
    }
    clock.Advance(milliseconds(10));
  }
  // The others come when the table has long been full.
  for (Client& client : legitimate_) {
    client.asked = client.denied = client.by_sketch = 0;
    client.next_ms = client.next_ms != 0 ? client.next_ms : 120'000 + Gap(half_of_it);
  }
  for (Client& client : abusers_) {
    client.next_ms = client.next_ms != 0 ? client.next_ms : 120'000;
  }
  std::vector<std::array<char, 24>> text(kRandomKeys / kSteps + 2);
  std::vector<std::string_view> keys;
  std::vector<Decision> decisions(text.size());
  uint64_t sent = 0;
  for (uint64_t step = 1; step <= kSteps; ++step, at_ms += kStepMs) {
    const Timestamp now = limiter.Now();
    keys.clear();
    for (; sent < kRandomKeys * step / kSteps; ++sent) {
      std::array<char, 24>& key = text[keys.size()];
      for (size_t half = 0; half < 24; half += 8) {
        const uint64_t letters = (random_.Next() & 0x3f3f3f3f3f3f3f3fU) | 0x4040404040404040U;
        std::memcpy(key.data() + half, &letters, 8);
      }
      keys.emplace_back(key.data(), key.size());
    }
    limiter.CheckMany(keys, now, decisions);
    for (Client& client : legitimate_) {
      Ask(limiter, client, half_of_it, at_ms, now);
    }
    for (Client& client : abusers_) {
      Ask(limiter, client, ten_times_it, at_ms, now);
    }
    clock.Advance(milliseconds(kStepMs));
  }
  const size_t after = ResidentBytes();
  Totals resident;
  Totals fresh;
  Totals abuse;
  uint64_t worst = 0;
  for (size_t i = 0; i < legitimate_.size(); ++i) {
    (i < kResident ? resident : fresh).Add(legitimate_[i]);
  }
  for (const Client& client : abusers_) {
    abuse.Add(client);
    worst = std::max(worst, client.worst);
  }
  const StoreStats stats = limiter.store()->Stats();
  std::printf(
      "%s, %zu KiB, %llu random keys in %llu minutes: memory grew by %zu KiB (%.1f %%), "
      "%llu decisions without a slot\n"
      "  resident: %llu requests, %.4f %% denied; new: %llu requests (%llu in the sketch), %.3f %% "
      "denied; abusers: %llu requests (%llu in the sketch), at most %llu in any minute\n",
      GetParam(), kBudgetBytes >> 10, static_cast<unsigned long long>(sent),
      static_cast<unsigned long long>(kMinutes), (after - before) >> 10,
      100.0 * static_cast<double>(after - before) / static_cast<double>(kBudgetBytes),
      static_cast<unsigned long long>(stats.overflow),
      static_cast<unsigned long long>(resident.asked), resident.DeniedPercent(),
      static_cast<unsigned long long>(fresh.asked),
      static_cast<unsigned long long>(fresh.by_sketch), fresh.DeniedPercent(),
      static_cast<unsigned long long>(abuse.asked),
      static_cast<unsigned long long>(abuse.by_sketch), static_cast<unsigned long long>(worst));
  if (kScale == 1) {
    EXPECT_LE(after - before, kBudgetBytes + kBudgetBytes / 10);
  }
  EXPECT_LE(resident.DeniedPercent(), 0.1);
  EXPECT_LE(fresh.DeniedPercent(), 5.0);
  EXPECT_LE(worst, quota.limit() + quota.limit() / 10);
  // The attack was one: most of the table was full, and the sketch was what stood in for it.
  EXPECT_GT(stats.overflow, kRandomKeys / 2);
  EXPECT_GT(fresh.by_sketch, fresh.asked / 10);
  EXPECT_GT(abuse.by_sketch, abuse.asked / 50);
}

std::string NameOf(const ::testing::TestParamInfo<const char*>& param) {
  constexpr const char* kNames[] = {"SlidingWindow", "SlidingLog", "LargeSlidingLog"};
  return kNames[param.index];
}

// Of records there is room for a few only: there nearly everybody is in the sketch. A thousand is a
// limit whose words have two long lanes instead of four short ones, and each key one of them. A
// bucket of 100/min is not here: a key that came once has drained before the table is full. Its
// sketch does not become smaller with the rest: a thousand people at 500 a minute fill a small one.
constexpr const char* kQuotas[] = {"100/min", "100/min sliding-log", "1000/min sliding-log"};

INSTANTIATE_TEST_SUITE_P(Quotas, Attack,
                         ::testing::ValuesIn(kQuotas, kQuotas + (kScale == 1 ? 3 : 2)), NameOf);

}  // namespace
}  // namespace weir::store
