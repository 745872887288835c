// Keys that are hashed or fetched before they are asked for: the answers are those of the key.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "weir/limiter.h"

namespace weir {
namespace {

constexpr const char* kQuotas[] = {
    "5/min burst 5",     "5/min sliding-window",         "5/min fixed-window",
    "5/min sliding-log", "5/min sliced-window slices 6", "gap 10s"};

Limiter MakeLimiter(std::string_view quota, const Clock& clock) {
  const auto parsed = Quota::Parse(quota);
  EXPECT_TRUE(parsed.ok()) << quota << ": " << parsed.error().message;
  return *Limiter::Create(*parsed, MemoryOptions{.budget_bytes = 1 << 20, .clock = &clock});
}

TEST(PreparedKey, IsAnsweredAsTheKeyItself) {
  for (const char* const quota : kQuotas) {
    ManualClock clock;
    Limiter plain = MakeLimiter(quota, clock);
    Limiter prepared = MakeLimiter(quota, clock);
    const PreparedKey key = prepared.Prepare("user:42");
    EXPECT_EQ(key.problem(), Problem::kNone);
    for (int i = 0; i < 40; ++i) {
      clock.Advance(std::chrono::seconds(i % 3 == 0 ? 4 : 0));
      const Decision one = plain.Check("user:42");
      // By turns: it is the same key either way.
      const Decision other = i % 2 == 0 ? prepared.Check(key) : prepared.Check("user:42");
      EXPECT_EQ(one.allowed(), other.allowed()) << quota << ", question " << i;
      EXPECT_EQ(one.remaining, other.remaining) << quota << ", question " << i;
      EXPECT_EQ(one.retry_after, other.retry_after) << quota << ", question " << i;
    }
  }
}

TEST(PreparedKey, IsRefusedAsTheKeyItself) {
  ManualClock clock;
  Limiter limiter = MakeLimiter("5/min", clock);
  for (const std::string& bad : {std::string(kMaxKeyBytes + 1, 'x'), std::string("a\0b", 3)}) {
    const Problem problem = limiter.Check(bad).problem;
    EXPECT_NE(problem, Problem::kNone);
    const PreparedKey key = limiter.Prepare(bad);
    EXPECT_EQ(key.problem(), problem);
    EXPECT_EQ(limiter.Check(key).problem, problem);
  }
}

TEST(PreparedKey, FetchingAheadChangesNothing) {
  for (const char* const quota : kQuotas) {
    ManualClock clock;
    Limiter limiter = MakeLimiter(quota, clock);
    for (const std::string& key : {std::string(), std::string(kMaxKeyBytes + 1, 'x'),
                                   std::string("a\0b", 3), std::string("user:42")}) {
      limiter.Prefetch(key);
    }
    EXPECT_EQ(limiter.store()->Stats().live_slots, 0U) << quota;
    const Decision first = limiter.Check("user:42");
    EXPECT_TRUE(first.allowed()) << quota;
    limiter.Prefetch("user:42");
    EXPECT_EQ(limiter.Check("user:42", Cost(0)).remaining, first.remaining) << quota;
  }
}

}  // namespace
}  // namespace weir
