// Limits whose rate comes with each request.
#include "limiter/throttle.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using algorithm::ThrottleAnswer;
using algorithm::ThrottleAsk;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int64_t kSecond = 1'000'000'000;

struct Fixture {
  ManualClock clock{WallTime(seconds(1'700'000'000))};
  std::shared_ptr<MemoryStore> store =
      *MemoryStore::Create({.budget_bytes = 1 << 20, .clock = &clock});
  std::unique_ptr<ThrottleLimiter> limiter = *ThrottleLimiter::Create(store);

  ThrottleAnswer Take(std::string_view key, const ThrottleAsk& ask) {
    return limiter->Take(limiter->Prepare(key), ask);
  }
};

TEST(Throttle, AnswersTheReadmeExampleOfRedisCell) {
  Fixture fixture;
  const ThrottleAnswer answer =
      fixture.Take("user123", {.burst = 16, .interval_ns = 2 * kSecond, .quantity = 1});
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.remaining, 15);
  EXPECT_EQ(answer.retry_ns, ThrottleAnswer::kNever);
  EXPECT_EQ(answer.reset_ns, 2 * kSecond);
}

TEST(Throttle, DeniesWhatDoesNotFitAndSaysWhenItWill) {
  Fixture fixture;
  const ThrottleAsk ask{.burst = 2, .interval_ns = kSecond, .quantity = 2};
  EXPECT_TRUE(fixture.Take("k", ask).allowed);
  const ThrottleAnswer denied = fixture.Take("k", ask);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_ns, 2 * kSecond);
  fixture.clock.Advance(nanoseconds(denied.retry_ns - 1));
  EXPECT_FALSE(fixture.Take("k", ask).allowed);
  fixture.clock.Advance(nanoseconds(1));
  EXPECT_TRUE(fixture.Take("k", ask).allowed);
}

TEST(Throttle, WhatNeverFitsHasNoRetryAndChargesNothing) {
  Fixture fixture;
  const ThrottleAnswer denied =
      fixture.Take("k", {.burst = 2, .interval_ns = kSecond, .quantity = 3});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_ns, ThrottleAnswer::kNever);
  EXPECT_EQ(denied.remaining, 2);
  EXPECT_EQ(denied.reset_ns, 0);
}

TEST(Throttle, AKeyKeepsItsDebtInTimeWhenTheRateChanges) {
  Fixture fixture;
  EXPECT_TRUE(fixture.Take("k", {.burst = 10, .interval_ns = kSecond, .quantity = 10}).allowed);
  const ThrottleAnswer slower =
      fixture.Take("k", {.burst = 10, .interval_ns = 2 * kSecond, .quantity = 0});
  EXPECT_EQ(slower.reset_ns, 10 * kSecond);
  EXPECT_EQ(slower.remaining, 5);
}

TEST(Throttle, ForgetsAKey) {
  Fixture fixture;
  const ThrottleAsk ask{.burst = 1, .interval_ns = 3600 * kSecond, .quantity = 1};
  EXPECT_TRUE(fixture.Take("k", ask).allowed);
  EXPECT_FALSE(fixture.Take("k", ask).allowed);
  fixture.limiter->Forget(fixture.limiter->Prepare("k"));
  EXPECT_TRUE(fixture.Take("k", ask).allowed);
}

TEST(Throttle, TakesAnyNumbers) {
  Fixture fixture;
  constexpr int64_t kExtremes[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, 1000, INT64_MAX};
  int i = 0;
  for (const int64_t burst : kExtremes) {
    for (const int64_t interval : {int64_t{1}, kSecond, INT64_MAX}) {
      for (const int64_t quantity : kExtremes) {
        const std::string key = std::to_string(++i);
        const ThrottleAsk ask{.burst = burst, .interval_ns = interval, .quantity = quantity};
        const ThrottleAnswer first = fixture.Take(key, ask);
        EXPECT_EQ(first.allowed, quantity <= burst);
        EXPECT_GE(first.remaining, 0);
        fixture.Take(key, ask);
      }
    }
  }
}

// Whole numbers of nanoseconds in 128 bits, one key at a time.
RC_GTEST_PROP(ThrottleProperty, AgreesWithTheLawOfRedisCell, ()) {
  Fixture fixture;
  std::map<std::string, __int128> tats;
  __int128 now = 0;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto wait = *rc::gen::inRange<int64_t>(0, 3 * kSecond);
    fixture.clock.Advance(nanoseconds(wait));
    now += wait;
    const std::string key = *rc::gen::element<std::string>("a", "b", "");
    const ThrottleAsk ask{.burst = *rc::gen::inRange<int64_t>(0, 8),
                          .interval_ns = *rc::gen::inRange<int64_t>(1, 2 * kSecond),
                          .quantity = *rc::gen::inRange<int64_t>(-3, 6)};
    const __int128 tat = tats.contains(key) ? std::max(tats[key], now) : now;
    const __int128 next = tat + static_cast<__int128>(ask.interval_ns) * ask.quantity;
    const __int128 tolerance = static_cast<__int128>(ask.interval_ns) * ask.burst;
    const ThrottleAnswer answer = fixture.Take(key, ask);
    RC_ASSERT(answer.allowed == (next - now <= tolerance));
    const __int128 ttl = (answer.allowed ? next : tat) - now;
    RC_ASSERT(answer.reset_ns == static_cast<int64_t>(ttl));
    RC_ASSERT(answer.remaining ==
              static_cast<int64_t>(std::max<__int128>(0, (tolerance - ttl) / ask.interval_ns)));
    if (!answer.allowed && ask.quantity <= ask.burst) {
      RC_ASSERT(answer.retry_ns == static_cast<int64_t>(next - now - tolerance));
    }
    if (answer.allowed) {
      tats[key] = next;
    }
  }
}

TEST(Throttle, NeverAdmitsMoreThanTheBurstToManyThreads) {
  Fixture fixture;
  constexpr int kThreads = 4;
  constexpr int64_t kBurst = 5000;
  std::vector<int64_t> admitted(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&fixture, &count = admitted[static_cast<size_t>(i)]] {
      for (int64_t j = 0; j < kBurst; ++j) {
        count += static_cast<int64_t>(
            fixture.Take("hot", {.burst = kBurst, .interval_ns = kSecond, .quantity = 1}).allowed);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  int64_t sum = 0;
  for (const int64_t count : admitted) {
    sum += count;
  }
  EXPECT_EQ(sum, kBurst);
}

TEST(Throttle, AFullTableIsNeitherOpenNorClosed) {
  ManualClock clock;
  auto store = *MemoryStore::Create({.budget_bytes = 64 << 10, .clock = &clock});
  auto limiter = *ThrottleLimiter::Create(store);
  const ThrottleAsk ask{.burst = 2, .interval_ns = 3600 * kSecond, .quantity = 1};
  int allowed = 0;
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) {
    const auto key = limiter->Prepare("key" + std::to_string(i));
    for (int j = 0; j < 3; ++j) {
      allowed += static_cast<int>(limiter->Take(key, ask).allowed);
    }
  }
  EXPECT_GT(store->Stats().overflow, 0U);
  EXPECT_GT(allowed, 4096) << "those without a slot get something as well";
  EXPECT_LT(allowed, kKeys) << "but are limited, together";
}

}  // namespace
}  // namespace weir
