// Reservations and holds over several rules.
#include "server/reservation_book.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using std::chrono::seconds;

constexpr char kRules[] = R"(
rules:
  - name: tokens
    per: tenant
    limit: 1000/h
    algorithm: fixed-window
  - name: budget
    per: team
    limit: 500/h
    algorithm: fixed-window
  - name: jobs
    per: job
    limit: concurrency 1 lease 60s
)";

class Book : public ::testing::Test {
 protected:
  Book() {
    const RuleParse parsed = RuleSet::Parse(kRules);
    EXPECT_NE(parsed.rules, nullptr) << (parsed.issues.empty() ? "" : ToString(parsed.issues[0]));
    store_ =
        *MemoryStore::Create({.budget_bytes = 8 << 20, .clock = &clock_, .record_percent = 30});
    rules_ = *RuleLimiter::Create(parsed.rules, store_, {.clock = &clock_});
  }

  std::string Reserve(std::initializer_list<Attribute> attributes, uint64_t estimate,
                      Duration lasts = std::chrono::minutes(1)) {
    const RuleLimiter::Pin pin = rules_->pin();
    const std::vector<Attribute> all(attributes);
    return book_.Reserve(*rules_, pin,
                         {.attributes = all,
                          .estimate = estimate,
                          .lasts = lasts,
                          .now = clock_.Now(),
                          .wall = clock_.WallNow()},
                         *reply_);
  }

  uint32_t Left(std::string_view name, std::string_view value) {
    const Attribute attributes[] = {{name, value}};
    const RuleLimiter::Pin pin = rules_->pin();
    rules_->Check(pin, {.attributes = attributes, .cost = 0, .mode = ChargeMode::kDryRun}, *reply_);
    return reply_->parts().front().decision.remaining;
  }

  ManualClock clock_{WallTime(seconds(1'700'000'000))};
  std::shared_ptr<MemoryStore> store_;
  std::unique_ptr<RuleLimiter> rules_;
  std::unique_ptr<RuleReply> reply_ = std::make_unique<RuleReply>();
  ReservationBook book_;
};

TEST_F(Book, SettlesOnceWithWhatItCameTo) {
  const std::string token = Reserve({{"tenant", "a"}}, 400);
  ASSERT_EQ(token.size(), 32U);
  EXPECT_EQ(Left("tenant", "a"), 600U);
  const auto settled = book_.Settle(token, 100, clock_.Now());
  EXPECT_EQ(settled.outcome, SettleOutcome::kSettled);
  EXPECT_EQ(settled.given_back, 300U);
  EXPECT_EQ(Left("tenant", "a"), 900U);
  const auto again = book_.Settle(token, 5, clock_.Now());
  EXPECT_EQ(again.outcome, SettleOutcome::kAlreadySettled);
  EXPECT_EQ(again.actual, 100U);
  EXPECT_EQ(Left("tenant", "a"), 900U);
}

TEST_F(Book, MaySettleAboveTheEstimate) {
  const std::string token = Reserve({{"tenant", "a"}}, 100);
  book_.Settle(token, 700, clock_.Now());
  EXPECT_EQ(Left("tenant", "a"), 300U);
}

TEST_F(Book, TakesAllOrNothing) {
  EXPECT_EQ(Reserve({{"tenant", "a"}, {"team", "t"}}, 600), "");
  EXPECT_FALSE(reply_->allowed());
  EXPECT_EQ(Left("tenant", "a"), 1000U);
  EXPECT_NE(Reserve({{"tenant", "a"}, {"team", "t"}}, 500), "");
  EXPECT_EQ(Left("tenant", "a"), 500U);
  EXPECT_EQ(Left("team", "t"), 0U);
}

TEST_F(Book, HoldsComeBackWhenReleasedOrForgotten) {
  const std::string first = Reserve({{"job", "j"}}, 1, seconds(10));
  ASSERT_NE(first, "");
  EXPECT_EQ(Reserve({{"job", "j"}}, 1, seconds(10)), "");
  EXPECT_EQ(book_.Release(first, clock_.Now()).outcome, SettleOutcome::kSettled);
  const std::string second = Reserve({{"job", "j"}}, 1, seconds(10));
  ASSERT_NE(second, "");
  clock_.Advance(seconds(8));
  EXPECT_TRUE(book_.Renew(second, clock_.Now()));
  clock_.Advance(seconds(8));
  EXPECT_EQ(Reserve({{"job", "j"}}, 1, seconds(10)), "") << "renewed, so still held";
  clock_.Advance(seconds(3));
  EXPECT_NE(Reserve({{"job", "j"}}, 1, seconds(10)), "") << "the lease has ended";
  EXPECT_EQ(book_.Settle(second, 0, clock_.Now()).outcome, SettleOutcome::kGone);
  EXPECT_FALSE(book_.Renew(second, clock_.Now()));
}

TEST_F(Book, ForgetsWhatHasEnded) {
  for (int i = 0; i < 100; ++i) {
    Reserve({{"tenant", std::to_string(i)}}, 1, seconds(1 + i % 10));
  }
  EXPECT_EQ(book_.size(), 100U);
  clock_.Advance(seconds(5));
  Reserve({{"tenant", "x"}}, 1);
  EXPECT_EQ(book_.size(), 51U);
  EXPECT_EQ(Left("tenant", "0"), 999U) << "what nobody settled stays charged";
}

TEST_F(Book, KnowsNoOtherTokens) {
  EXPECT_EQ(book_.Settle("", 1, clock_.Now()).outcome, SettleOutcome::kGone);
  EXPECT_EQ(book_.Settle("00000000000000000000000000000000", 1, clock_.Now()).outcome,
            SettleOutcome::kGone);
}

}  // namespace
}  // namespace weir::server
