// The shipped scripts in a real redis-server and a real Cluster against the C++ laws: more than a
// hundred thousand steps, pipelined, on Redis's own clock and on one that steps back and forth.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/redis/key_name.h"
#include "testing/lua_host.h"
#include "testing/redis_host.h"
#include "testing/redis_process.h"
#include "testing/script_trace.h"

namespace weir::testing {
namespace {

constexpr uint64_t kSeed = 20260302;
constexpr uint64_t kLongMs = 3'600'000'000;  // longer than any test runs

std::string RunTraces(ScriptHost& host, Random& random, int traces, TraceClock clock, bool steps) {
  for (int trace = 0; trace < traces; ++trace) {
    const Quota quota = clock == TraceClock::kOwn ? RandomQuick(random) : RandomShared(random);
    if (steps && quota.algorithm() == Algorithm::kConcurrency) {
      continue;
    }
    const TraceOptions options{.clock = clock,
                               .steps = 300,
                               .steps_back = steps,
                               .name = std::to_string(trace) + (steps ? " steps " : " ")};
    std::string problem = FollowModel(host, quota, random, options);
    if (!problem.empty()) {
      return "trace " + std::to_string(trace) + ": " + problem;
    }
  }
  return "";
}

TEST(RedisServer, AnswersAsTheLawsDoOnItsOwnClock) {
  const RedisProcess redis({});
  RedisHost host({redis.port()});
  Random random(kSeed);
  EXPECT_EQ(RunTraces(host, random, 150, TraceClock::kOwn, false), "");
}

TEST(RedisServer, AnswersAsTheLawsDoWhenTheClockSteps) {
  const RedisProcess redis({});
  RedisHost host({redis.port()}, kLongMs);
  Random random(kSeed + 1);
  EXPECT_EQ(RunTraces(host, random, 100, TraceClock::kArgument, false), "");
  EXPECT_EQ(RunTraces(host, random, 100, TraceClock::kArgument, true), "");
  // Nothing that a script has written is without an end.
  const std::vector<std::vector<std::string>> count = {{"DBSIZE"}, {"INFO", "keyspace"}};
  const auto replies = host.Ask(count);
  EXPECT_NE(replies[1].text.find("expires=" + std::to_string(replies[0].integers[0])),
            std::string::npos)
      << replies[1].text;
}

// By the store's own clock, which the short way of the bucket reads and may not tell.
TEST(RedisServer, AnswersAsTheLawsDoWhenItsClockSteps) {
  const RedisProcess redis({});
  RedisHost host({redis.port()}, kLongMs, RedisHost::Time::kGiven);
  Random random(kSeed + 4);
  for (int trace = 0; trace < 60;) {
    const Quota quota = RandomShared(random);
    if (quota.algorithm() == Algorithm::kConcurrency) {
      continue;
    }
    const TraceOptions options{.clock = TraceClock::kHost,
                               .steps = 300,
                               .steps_back = trace % 3 != 0,
                               .name = "own " + std::to_string(trace) + " "};
    ASSERT_EQ(FollowModel(host, quota, random, options), "") << "trace " << trace;
    ++trace;
  }
}

TEST(RedisServer, AClusterAnswersAsTheLawsDo) {
  RedisCluster cluster(3);
  Random random(kSeed + 2);
  RedisHost own(cluster.ports());
  EXPECT_EQ(RunTraces(own, random, 60, TraceClock::kOwn, false), "");
  RedisHost given(cluster.ports(), kLongMs);
  EXPECT_EQ(RunTraces(given, random, 60, TraceClock::kArgument, true), "");
}

TEST(RedisServer, TakesSeveralQuotasAllOrNothing) {
  const RedisProcess redis({});
  RedisHost host({redis.port()}, kLongMs);
  Random random(kSeed + 3);
  for (int trace = 0; trace < 60; ++trace) {
    std::vector<Quota> quotas;
    for (uint64_t i = random.Between(2, 5); i != 0; --i) {
      quotas.push_back(RandomShared(random));
    }
    const TraceOptions options{
        .clock = TraceClock::kArgument, .steps = 100, .name = "many " + std::to_string(trace)};
    ASSERT_EQ(FollowModels(host, quotas, random, options), "") << "trace " << trace;
  }
}

}  // namespace
}  // namespace weir::testing
