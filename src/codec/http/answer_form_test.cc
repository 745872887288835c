// An answer filled into a form says what the script would have written.
#include "codec/http/answer_form.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/http/answer.h"
#include "codec/http/answer_testing.h"
#include "testing/random.h"

namespace weir::codec::http {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kDate = "Sun, 06 Nov 1994 08:49:37 GMT";

Decision RandomDecision(testing::Random& random, bool allowed) {
  const auto limit = static_cast<uint32_t>(random.Scaled(1, 4'000'000'000));
  return MakeDecision(allowed ? Outcome::kAllowed : Outcome::kDenied, limit,
                      static_cast<uint32_t>(random.Below(uint64_t{limit} + 1)),
                      allowed ? 0ns : Duration(random.Scaled(1, 100'000'000'000'000)),
                      Duration(random.Below(3) == 0 ? 0 : random.Scaled(1, 100'000'000'000'000)));
}

// Without a date there is no form; the date is taken out of the other.
TEST(AnswerForm, SaysWhatTheScriptWrites) {
  testing::Random random(7);
  const std::vector<RuleView> rules = {MakeRule("login", {"5/min"}),
                                       MakeRule("a \"b\" \xC3\xA9", {"1000/h"}),
                                       MakeRule("odd", {"7/1500ms"})};
  const std::string date_line = "Date: " + std::string(kDate) + "\r\n";
  for (uint32_t families = 0; families < 128; ++families) {
    for (const ResetStyle reset : {ResetStyle::kUnixSeconds, ResetStyle::kDelta}) {
      AnswerWriter writer({.families = static_cast<uint8_t>(families), .reset = reset}, rules);
      for (int i = 0; i < 120; ++i) {
        RulePart part;
        part.rule = &rules[random.Below(rules.size())];
        part.quota = part.rule->variants[0].quotas.data();
        part.decision = RandomDecision(random, random.OneIn(2));
        Ruling ruling;
        ruling.outcome = part.decision.outcome;
        ruling.retry_after = part.decision.retry_after;
        ruling.parts = {&part, 1};
        ruling.deciding = &part;
        AnswerContext context{.date = kDate,
                              .now = AnswerScene::kNow,
                              .jitter = Duration(random.Below(2'000'000'000)),
                              .mode = static_cast<AnswerMode>(random.Below(3)),
                              .error_body = static_cast<ErrorBody>(random.Below(2))};
        base::ByteBuffer formed;
        writer.WriteCheck(formed, ruling, context);
        std::string found(formed.view());
        const size_t at = found.find(date_line);
        ASSERT_NE(at, std::string::npos) << found;
        found.erase(at, date_line.size());
        context.date = {};
        base::ByteBuffer scripted;
        writer.WriteCheck(scripted, ruling, context);
        ASSERT_EQ(found, scripted.view());
      }
    }
  }
}

TEST(AnswerForm, IsFilledInWithinTheRoomItAsksFor) {
  Draft draft(1);
  draft.Append("a");
  for (const Hole hole :
       {Hole::kRemaining, Hole::kResetIn, Hole::kResetAt, Hole::kRetryIn, Hole::kRetryAfter}) {
    draft.Fill(hole, 0);
  }
  draft.FillDate("");
  draft.FillSeconds(Hole::kResetExact, 0ns);
  const Form form = draft.Finish();
  base::ByteBuffer out;
  {
    base::Pen pen(out, form.MostBytes());
    form.FillIn(pen, {.date = kDate,
                      .remaining = ~uint64_t{0},
                      .reset_in = ~uint64_t{0},
                      .reset_at = ~uint64_t{0},
                      .reset_exact = Duration::max(),
                      .retry_in = ~uint64_t{0},
                      .retry_after = ~uint64_t{0}});
  }
  EXPECT_LE(out.size(), form.MostBytes());
  EXPECT_EQ(out.size(), 1 + 5 * 20 + kDate.size() + std::string("9223372036.855").size());
}

TEST(AnswerForm, PutsLengthsOfAnyNumberOfDigits) {
  for (const size_t size : {0U, 9U, 10U, 99U, 100U, 999U, 1000U, 99999U, 1234567U}) {
    for (const bool head : {false, true}) {
      base::ByteBuffer out;
      WritePlain(out, {.body = std::string(size, 'x')}, {.head = head});
      const std::string end = "\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" +
                              std::string(head ? 0 : size, 'x');
      EXPECT_TRUE(out.view().ends_with(end)) << size << " " << out.view().substr(0, 200);
    }
  }
}

}  // namespace
}  // namespace weir::codec::http
