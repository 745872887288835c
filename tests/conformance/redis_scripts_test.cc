// The shipped scripts in an embedded Lua against the C++ laws, the memory store and the oracles:
// a million steps of random traces, reply for reply.
#include <string>

#include <gtest/gtest.h>

#include "testing/lua_host.h"
#include "testing/script_trace.h"

namespace weir::testing {
namespace {

constexpr uint64_t kSeed = 20260301;

TEST(RedisScripts, AnswerAsTheLawsDo) {
  LuaHost host;
  Random random(kSeed);
  for (int trace = 0; trace < 5500; ++trace) {
    const Quota quota = RandomShared(random);
    const TraceOptions options{.steps = 100, .name = "model " + std::to_string(trace) + " "};
    ASSERT_EQ(FollowModel(host, quota, random, options), "") << "trace " << trace;
  }
  EXPECT_EQ(host.redis().CountWithoutTtl(), 0U);
}

TEST(RedisScripts, AnswerAsTheLawsDoWhenTheClockStepsBackAndForth) {
  LuaHost host;
  Random random(kSeed + 1);
  for (int trace = 0; trace < 2000; ++trace) {
    const Quota quota = RandomShared(random);
    if (quota.algorithm() == Algorithm::kConcurrency) {
      continue;  // tests of its own, below
    }
    const TraceOptions options{.clock = TraceClock::kArgument,
                               .steps = 100,
                               .steps_back = true,
                               .name = "steps " + std::to_string(trace) + " "};
    ASSERT_EQ(FollowModel(host, quota, random, options), "") << "trace " << trace;
  }
  EXPECT_EQ(host.redis().CountWithoutTtl(), 0U);
}

// The same by the store's own clock, which the short way of the bucket reads: calls that say their
// time do not take it. What a step forward would end is kept, as the laws keep it.
TEST(RedisScripts, AnswerAsTheLawsDoWhenTheStoresOwnClockSteps) {
  LuaHost host;
  host.redis().KeepEnded();
  Random random(kSeed + 4);
  for (int trace = 0; trace < 1000;) {
    const Quota quota = RandomShared(random);
    if (quota.algorithm() == Algorithm::kConcurrency) {
      continue;  // tests of its own, below
    }
    const TraceOptions options{
        .steps = 100, .steps_back = true, .name = "own " + std::to_string(trace) + " "};
    ASSERT_EQ(FollowModel(host, quota, random, options), "") << "trace " << trace;
    ++trace;
  }
}

TEST(RedisScripts, AnswerAsMemoryAndTheOraclesDo) {
  LuaHost host;
  Random random(kSeed + 2);
  for (int trace = 0; trace < 2000; ++trace) {
    const Quota quota = RandomComparable(random);
    const TraceOptions options{.steps = 100, .name = "memory " + std::to_string(trace)};
    ASSERT_EQ(FollowMemory(host, quota, random, options), "") << "trace " << trace;
  }
}

TEST(RedisScripts, TakeSeveralQuotasAllOrNothing) {
  LuaHost host;
  Random random(kSeed + 3);
  for (int trace = 0; trace < 700; ++trace) {
    std::vector<Quota> quotas;
    for (uint64_t i = random.Between(2, 5); i != 0; --i) {
      quotas.push_back(RandomShared(random));
    }
    const TraceOptions options{.steps = 50, .name = "many " + std::to_string(trace)};
    ASSERT_EQ(FollowModels(host, quotas, random, options), "") << "trace " << trace;
  }
}

}  // namespace
}  // namespace weir::testing
