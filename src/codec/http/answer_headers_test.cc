// The families of headers that tell of limits.
#include <gtest/gtest.h>

#include "codec/http/answer.h"
#include "codec/http/answer_testing.h"

namespace weir::codec::http {
namespace {

using namespace std::chrono_literals;

Decision Allowed() {
  return MakeDecision(Outcome::kAllowed, 100, 40, 0ns, 29'500ms);
}
Decision Denied(Duration retry_after = 36'100ms) {
  return MakeDecision(Outcome::kDenied, 5, 0, retry_after, 59s);
}

ReadAnswer Answer(const Decision& decision, uint8_t families,
                  ResetStyle reset = ResetStyle::kUnixSeconds, Duration jitter = 0ns) {
  AnswerScene scene({MakeRule("plan", {"100/min"})});
  scene.Meet(0, 0, decision);
  return Read(scene.Write({.jitter = jitter}, {.families = families, .reset = reset}));
}

size_t LimitFields(const ReadAnswer& answer) {
  return answer.fields.size() - 2;  // Content-Type and -Length are always there
}

TEST(AnswerHeaders, XRateLimitResetsAtAUnixSecondOrAfterSome) {
  ReadAnswer answer = Answer(Allowed(), kXRateLimit);
  EXPECT_EQ(answer.Field("X-RateLimit-Limit"), "100");
  EXPECT_EQ(answer.Field("X-RateLimit-Remaining"), "40");
  EXPECT_EQ(answer.Field("X-RateLimit-Reset"), "1700000030");
  EXPECT_EQ(LimitFields(answer), 3U);
  answer = Answer(Allowed(), kXRateLimit, ResetStyle::kDelta);
  EXPECT_EQ(answer.Field("X-RateLimit-Reset"), "30");
}

TEST(AnswerHeaders, RateLimitOfDraftTen) {
  ReadAnswer answer = Answer(Allowed(), kRateLimit);
  EXPECT_EQ(answer.Field("RateLimit-Policy"), "\"plan\";q=100;w=60");
  EXPECT_EQ(answer.Field("RateLimit"), "\"plan\";r=40;t=30");
  EXPECT_EQ(LimitFields(answer), 2U);
}

TEST(AnswerHeaders, RateLimitListsEveryQuota) {
  AnswerScene scene({MakeRule("polite", {"10/min", "500/h"}),
                     MakeRule("held", {"concurrency 3 lease 1min"}),
                     MakeRule("fast", {"10/100ms"})});
  scene.Meet(0, 0, MakeDecision(Outcome::kAllowed, 10, 9, 0ns, 6s));
  scene.Meet(0, 1, MakeDecision(Outcome::kAllowed, 500, 499, 0ns, 7200ms));
  scene.Meet(1, 0, MakeDecision(Outcome::kAllowed, 3, 2, 0ns, 60s));
  scene.Meet(2, 0, MakeDecision(Outcome::kAllowed, 10, 9, 0ns, 10ms));
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.Field("RateLimit-Policy"),
            "\"polite 10/min\";q=10;w=60, \"polite 500/h\";q=500;w=3600, "
            "\"held\";q=3;qu=\"concurrent-requests\", \"fast\";q=100;w=1");
  EXPECT_EQ(answer.Field("RateLimit"),
            "\"polite 10/min\";r=9;t=6, \"polite 500/h\";r=499;t=8, \"held\";r=2;t=60, "
            "\"fast\";r=9;t=1");
}

TEST(AnswerHeaders, OlderDraftsTellOfTheDecidingQuota) {
  ReadAnswer answer = Answer(Allowed(), kRateLimit3);
  EXPECT_EQ(answer.Field("RateLimit-Limit"), "100");
  EXPECT_EQ(answer.Field("RateLimit-Remaining"), "40");
  EXPECT_EQ(answer.Field("RateLimit-Reset"), "30");
  EXPECT_EQ(LimitFields(answer), 3U);

  answer = Answer(Allowed(), kRateLimit7);
  EXPECT_EQ(answer.Field("RateLimit"), "limit=100, remaining=40, reset=30");
  EXPECT_EQ(LimitFields(answer), 1U);

  answer = Answer(Allowed(), kRateLimit7 | kRateLimit);
  EXPECT_EQ(answer.fields.count("RateLimit"), 1U);
  EXPECT_EQ(answer.Field("RateLimit"), "\"plan\";r=40;t=30");

  answer = Answer(Allowed(), kXRateLimitList);
  EXPECT_EQ(answer.Field("X-RateLimit-Limit"), "100, 100;w=60;name=\"plan\"");
  EXPECT_EQ(answer.Field("X-RateLimit-Remaining"), "40");
  EXPECT_EQ(answer.Field("X-RateLimit-Reset"), "30");
}

TEST(AnswerHeaders, WeirNamesRuleBasisAndStatus) {
  const ReadAnswer answer = Answer(Denied(), kWeir);
  EXPECT_EQ(answer.Field("X-Weir-Rule"), "plan");
  EXPECT_EQ(answer.Field("X-Weir-Basis"), "store");
  EXPECT_EQ(answer.Field("X-Weir-Status"), "limited");
  EXPECT_EQ(Answer(Allowed(), kWeir).Field("X-Weir-Status"), "allowed");
}

TEST(AnswerHeaders, RetryAfterIsNeverEarlyAndOnRefusalsOnly) {
  const auto retry_after = [](Duration after, Duration jitter) {
    return Answer(Denied(after), kRetryAfter, ResetStyle::kUnixSeconds, jitter)
        .Field("Retry-After");
  };
  EXPECT_EQ(retry_after(1ns, 0ns), "1");
  EXPECT_EQ(retry_after(1s, 0ns), "1");
  EXPECT_EQ(retry_after(1s + 1ns, 0ns), "2");
  EXPECT_EQ(retry_after(36'100ms, 0ns), "37");
  EXPECT_EQ(retry_after(36'100ms, 900ms), "37");
  EXPECT_EQ(retry_after(36'100ms, 901ms), "38");
  EXPECT_EQ(Answer(Allowed(), kRetryAfter).Field("Retry-After"), "");
}

TEST(AnswerHeaders, RetryAfterIsNotEarlierThanAnyT) {
  AnswerScene scene({MakeRule("a", {"5/min"}), MakeRule("b", {"9/h"}), MakeRule("c", {"9/day"})});
  scene.Meet(0, 0, Denied(10s));
  scene.Meet(1, 0, Denied(20s));
  scene.Meet(2, 0, MakeDecision(Outcome::kAllowed, 9, 5, 0ns, 86'400s));
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.Field("Retry-After"), "20");
  EXPECT_EQ(answer.Field("RateLimit"), "\"a\";r=0;t=10, \"b\";r=0;t=20, \"c\";r=5");
}

TEST(AnswerHeaders, NoneIsSentIfNoneIsWanted) {
  EXPECT_EQ(LimitFields(Answer(Denied(), 0)), 0U);
  EXPECT_EQ(LimitFields(Answer(Allowed(), 0)), 0U);
}

}  // namespace
}  // namespace weir::codec::http
