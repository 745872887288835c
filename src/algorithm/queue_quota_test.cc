// Quotas that are queues: as text, as fields, and what they say about themselves.
#include <rapidcheck.h>

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "weir/quota.h"

namespace weir {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

TEST(QueueQuota, ReadsAndWritesText) {
  const std::vector<std::pair<std::string_view, Result<Quota>>> cases = {
      {"10/s burst 21 queue", Quota::Queue(10, 1s, 21)},
      {"10/s queue", Quota::Queue(10, 1s)},
      {"10/s burst 21 queue after 8", Quota::Queue(10, 1s, 21, 8)},
      {"10/s queue after 1_0", Quota::Queue(10, 1s, 10, 10)},
      {"100/min Leaky-Bucket QUEUE After 5 burst 20", Quota::Queue(100, 1min, 20, 5)},
      {"100/min queue leaky-bucket", Quota::Queue(100, 1min)},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    const Result<Quota> quota = Quota::Parse(text);
    ASSERT_TRUE(quota.ok()) << quota.error().message;
    EXPECT_EQ(*quota, *expected);
    EXPECT_EQ(quota->algorithm(), Algorithm::kLeakyBucket);
    EXPECT_EQ(*Quota::Parse(quota->ToString()), *quota) << quota->ToString();
  }
  EXPECT_EQ(Quota::Parse("100/min leaky-bucket queue after 1 burst 20")->ToString(),
            "100/min burst 20 queue");
  EXPECT_EQ(Quota::Queue(10, 1s, 10, 4)->ToString(), "10/s queue after 4");
  EXPECT_NE(*Quota::Queue(10, 1s, 10, 4), *Quota::Queue(10, 1s, 10, 5));
  EXPECT_NE(*Quota::Queue(10, 1s), *Quota::LeakyBucket(10, 1s));
}

TEST(QueueQuota, RefusesByNameWhatItCannotBe) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"10/s queue after", "column 17: after: expected a number, such as 8, found the end"},
      {"10/s queue after 0", "column 18: after: 0 is not allowed; the least is 1"},
      {"10/s queue after x", "column 18: after: \"x\" is not a number"},
      {"10/s burst 5 queue after 6",
       "column 26: undelayed: 6 is not allowed; the most is 5, the burst"},
      {"10/s after 5", "column 6: \"after\" follows \"queue\""},
      {"10/s queue queue", "column 12: \"queue\" is one too many"},
      {"10/s token-bucket queue", "column 19: queue: not allowed for token-bucket"},
      {"10/s sliding-log queue", "queue: not allowed for sliding-log"},
      {"10/month queue", "column 10: \"queue\" is not allowed with month"},
      {"10/s qeue", "did you mean \"queue\"?"},
  };
  for (const auto& [text, fragment] : cases) {
    const Result<Quota> quota = Quota::Parse(text);
    ASSERT_FALSE(quota.ok()) << text;
    EXPECT_NE(quota.error().message.find(fragment), std::string::npos) << quota.error().message;
  }
  EXPECT_EQ(Quota::Queue(10, 1s, 5, 0).error().message,
            "undelayed: 0 is not allowed; the least is 1");
  EXPECT_EQ(Quota::Create(
                {.algorithm = Algorithm::kLeakyBucket, .limit = 10, .window = 1s, .undelayed = -1})
                .error()
                .message,
            "undelayed: -1 is not allowed; the least is 1, or 0 for a meter that delays nothing");
  EXPECT_EQ(Quota::Create(
                {.algorithm = Algorithm::kTokenBucket, .limit = 10, .window = 1s, .undelayed = 1})
                .error()
                .message,
            "undelayed: 1 is not allowed for token-bucket; the only value is 0 (a queue is a "
            "leaky-bucket)");
}

TEST(QueueQuota, KnowsItsLongestWait) {
  EXPECT_EQ(Quota::Queue(10, 1s, 21)->longest_wait(), 2s);
  EXPECT_EQ(Quota::Queue(10, 1s, 21, 8)->longest_wait(), 1300ms);
  EXPECT_EQ(Quota::Queue(10, 1s, 21, 21)->longest_wait(), 0s);
  EXPECT_EQ(Quota::Queue(3, 1s, 2)->longest_wait(), 333'333'334ns) << "rounded up";
  EXPECT_EQ(Quota::LeakyBucket(10, 1s, 21)->longest_wait(), 0s);
  EXPECT_EQ(Quota::Queue(1, 24h, 36525)->longest_wait(), 24h * 36524);
}

RC_GTEST_PROP(QueueQuota, EveryGoodOneReadsBackEqual, ()) {
  const auto limit = *rc::gen::inRange<int64_t>(1, Quota::kMaxLimit);
  const Duration window(*rc::gen::inRange<int64_t>(1000, 1'000'000'000'000));
  const auto burst = *rc::gen::inRange<int64_t>(1, 100'000);
  const auto undelayed = *rc::gen::inRange<int64_t>(1, burst + 1);
  const Result<Quota> quota = Quota::Queue(limit, window, burst, undelayed);
  RC_ASSERT(quota.ok());
  RC_ASSERT(quota->undelayed() == undelayed);
  RC_ASSERT(*Quota::Parse(quota->ToString()) == *quota);
}

}  // namespace
}  // namespace weir
