// Several quotas on one request: all or nothing.
#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Noon;
using testing::Random;

class CheckAllTest : public ::testing::Test {
 protected:
  Limiter Make(const char* text) { return *Limiter::Create(*Quota::Parse(text), store_); }
  static uint32_t Left(Limiter& limiter, std::string_view key = "key") {
    return limiter.Check(key, 0).remaining;
  }

  ManualClock clock_{Noon()};
  std::shared_ptr<MemoryStore> store_ = *MemoryStore::Create(testing::SmallStore(clock_));
};

TEST_F(CheckAllTest, TenAMinuteAndTwoSecondsBetweenThem) {
  Limiter minute = Make("10/min fixed-window");
  Limiter gap = Make("gap 2s");
  const std::array<Charge, 2> charges = {Charge{&minute, "user"}, Charge{&gap, "user"}};
  std::array<Decision, 2> decisions;
  // Polls every 100 ms for a minute: refused requests cost nothing, so the tenth gets in at 18 s.
  std::vector<int> admitted;
  for (int i = 0; i < 600; ++i) {
    if (CheckAll(charges, decisions).allowed()) {
      admitted.push_back(i * 100);
    }
    clock_.Advance(milliseconds(100));
  }
  EXPECT_EQ(admitted,
            (std::vector<int>{0, 2000, 4000, 6000, 8000, 10000, 12000, 14000, 16000, 18000}));
  EXPECT_TRUE(CheckAll(charges, decisions).allowed()) << "the next minute";
}

TEST_F(CheckAllTest, ADenialChargesNothingAnywhere) {
  Limiter wide = Make("100/min burst 100");
  Limiter odd = Make("70/min burst 70");
  Limiter narrow = Make("1/min fixed-window");
  ASSERT_TRUE(narrow.Check("key").allowed());
  const std::array<Charge, 3> charges = {Charge{&wide, "key", 5}, Charge{&odd, "key", 5},
                                         Charge{&narrow, "key"}};
  std::array<Decision, 3> decisions;
  std::array<Receipt, 3> receipts;
  const Verdict verdict = CheckAll(charges, decisions, std::nullopt, receipts);
  EXPECT_EQ(verdict.outcome, Outcome::kDenied);
  EXPECT_EQ(verdict.deciding, 2U);
  EXPECT_EQ(verdict.retry_after, decisions[2].retry_after);
  EXPECT_EQ(decisions[0].remaining, 100U) << "what is left without this request";
  EXPECT_EQ(Left(wide), 100U);
  EXPECT_EQ(Left(odd), 70U);
  EXPECT_EQ(wide.Check("key", 0).reset_after, Duration::zero());
  for (const Receipt& receipt : receipts) {
    EXPECT_EQ(receipt.charged, 0U);
  }
}

TEST_F(CheckAllTest, TheLongestWaitOfTheRefusingSpeaks) {
  Limiter second = Make("1/s burst 1");
  Limiter hour = Make("1/h burst 1");
  Limiter minute = Make("1/min burst 1");
  Limiter free = Make("10/min burst 10");
  for (Limiter* limiter : {&second, &hour, &minute}) {
    ASSERT_TRUE(limiter->Check("key").allowed());
  }
  const std::array<Charge, 4> charges = {Charge{&second, "key"}, Charge{&hour, "key"},
                                         Charge{&minute, "key"}, Charge{&free, "key"}};
  std::array<Decision, 4> decisions;
  const Verdict verdict = CheckAll(charges, decisions);
  EXPECT_EQ(verdict.outcome, Outcome::kDenied);
  EXPECT_EQ(verdict.deciding, 1U);
  EXPECT_EQ(verdict.retry_after, std::chrono::hours(1));
  EXPECT_TRUE(decisions[3].allowed());
  clock_.Advance(verdict.retry_after);
  EXPECT_TRUE(CheckAll(charges, decisions).allowed()) << "waiting it alone is enough";
}

TEST_F(CheckAllTest, AllowedTheOneWithTheLeastLeftOfItsLimitSpeaks) {
  Limiter large = Make("1000/min burst 1000");
  Limiter small = Make("10/min burst 10");
  ASSERT_TRUE(small.Check("key", 7).allowed());
  ASSERT_TRUE(large.Check("key", 500).allowed());
  const std::array<Charge, 2> charges = {Charge{&large, "key"}, Charge{&small, "key"}};
  std::array<Decision, 2> decisions;
  const Verdict verdict = CheckAll(charges, decisions);
  EXPECT_TRUE(verdict.allowed());
  EXPECT_EQ(verdict.deciding, 1U);
  EXPECT_EQ(decisions[1].remaining, 2U);
  EXPECT_EQ(verdict.retry_after, Duration::zero());
}

TEST_F(CheckAllTest, CountAlwaysIsCountedEvenWhenAnotherRefuses) {
  Limiter counted = Make("10/min fixed-window");
  Limiter full = Make("1/min fixed-window");
  Limiter admit = Make("10/min burst 10");
  ASSERT_TRUE(full.Check("key").allowed());
  const std::array<Charge, 3> charges = {Charge{&admit, "key"},
                                         Charge{&counted, "key", 3, ChargeMode::kCountAlways},
                                         Charge{&full, "key"}};
  std::array<Decision, 3> decisions;
  std::array<Receipt, 3> receipts;
  EXPECT_FALSE(CheckAll(charges, decisions, std::nullopt, receipts).allowed());
  EXPECT_EQ(Left(counted), 7U);
  EXPECT_EQ(Left(admit), 10U);
  EXPECT_EQ(receipts[1].charged, 3U);
  EXPECT_EQ(counted.GiveBack(receipts[1]), 3U);
}

TEST_F(CheckAllTest, CountAlwaysOverItsLimitRefusesAndIsCounted) {
  Limiter counted = Make("10/min fixed-window");
  Limiter admit = Make("10/min burst 10");
  ASSERT_TRUE(counted.Check("key", 9).allowed());
  const std::array<Charge, 2> charges = {Charge{&admit, "key"},
                                         Charge{&counted, "key", 3, ChargeMode::kCountAlways}};
  std::array<Decision, 2> decisions;
  const Verdict verdict = CheckAll(charges, decisions);
  EXPECT_EQ(verdict.outcome, Outcome::kDenied);
  EXPECT_EQ(verdict.deciding, 1U);
  EXPECT_EQ(Left(admit), 10U);
  EXPECT_FALSE(counted.Check("key").allowed());
}

TEST_F(CheckAllTest, TheSameKeyTwiceNeedsRoomForBoth) {
  Limiter limiter = Make("10/min burst 3");
  const std::array<Charge, 2> charges = {Charge{&limiter, "key", 2}, Charge{&limiter, "key", 2}};
  std::array<Decision, 2> decisions;
  const Verdict verdict = CheckAll(charges, decisions);
  EXPECT_EQ(verdict.outcome, Outcome::kDenied);
  EXPECT_EQ(Left(limiter), 3U);
  EXPECT_EQ(limiter.Check("key", 0).reset_after, Duration::zero());
  const std::array<Charge, 2> fitting = {Charge{&limiter, "key", 2}, Charge{&limiter, "key", 1}};
  EXPECT_TRUE(CheckAll(fitting, decisions).allowed());
  EXPECT_EQ(Left(limiter), 0U);
}

TEST_F(CheckAllTest, SixtyFourChargesAtOnce) {
  Limiter limiter = Make("10/min burst 5");
  std::vector<std::string> names;
  for (size_t i = 0; i < kMaxCharges; ++i) {
    names.push_back("key" + std::to_string(i));
  }
  std::vector<Charge> charges;
  for (const std::string& name : names) {
    charges.push_back({&limiter, name, 5});
  }
  std::vector<Decision> decisions(charges.size());
  std::vector<Receipt> receipts(charges.size());
  ASSERT_TRUE(limiter.Check(names.back()).allowed());
  EXPECT_FALSE(CheckAll(charges, decisions, std::nullopt, receipts).allowed());
  EXPECT_EQ(Left(limiter, names.front()), 5U);
  clock_.Advance(seconds(6));
  EXPECT_TRUE(CheckAll(charges, decisions, std::nullopt, receipts).allowed());
  for (size_t i = 0; i < charges.size(); ++i) {
    EXPECT_EQ(Left(limiter, names[i]), 0U);
    EXPECT_EQ(receipts[i].charged, 5U);
  }
  EXPECT_EQ(limiter.GiveBack(receipts[17]), 5U);
  EXPECT_EQ(Left(limiter, names[17]), 5U);
}

TEST_F(CheckAllTest, ADenialFoundOnlyWhileTakingChargesNothingEither) {
  // The last two need more than there is, which shows only once the others have been taken.
  Limiter limiter = Make("10/min burst 5");
  std::vector<std::string> names;
  for (size_t i = 0; i < kMaxCharges - 2; ++i) {
    names.push_back("key" + std::to_string(i));
  }
  std::vector<Charge> charges;
  for (const std::string& name : names) {
    charges.push_back({&limiter, name, 5});
  }
  charges.push_back({&limiter, "twice", 3});
  charges.push_back({&limiter, "twice", 3});
  std::vector<Decision> decisions(charges.size());
  EXPECT_EQ(CheckAll(charges, decisions).outcome, Outcome::kDenied);
  size_t charged = 0;
  for (const Charge& charge : charges) {
    charged += static_cast<size_t>(Left(limiter, charge.key) != 5U);
  }
  EXPECT_EQ(charged, 0U);
}

TEST_F(CheckAllTest, NothingToChargeIsAllowed) {
  EXPECT_TRUE(CheckAll({}, {}).allowed());
}

TEST_F(CheckAllTest, ARefusedChargeChargesNothingAndOutweighsAnyWait) {
  Limiter first = Make("10/min burst 10");
  Limiter denied = Make("1/h burst 1");
  ASSERT_TRUE(denied.Check("key").allowed());
  const std::array<Charge, 3> charges = {Charge{&first, "key"}, Charge{&denied, "key"},
                                         Charge{&first, ""}};
  std::array<Decision, 3> decisions;
  const Verdict verdict = CheckAll(charges, decisions);
  EXPECT_EQ(verdict.outcome, Outcome::kRefused);
  EXPECT_EQ(verdict.problem, Problem::kKeyEmpty);
  EXPECT_EQ(verdict.deciding, 2U);
  EXPECT_EQ(Left(first), 10U);
  const std::array<Charge, 2> too_large = {Charge{&first, "key"}, Charge{&first, "key", 11}};
  EXPECT_EQ(CheckAll(too_large, decisions).problem, Problem::kCostAboveBurst);
  EXPECT_EQ(Left(first), 10U);
}

// What the types cannot rule out is refused before anything is looked at.
class IllFormedTest : public CheckAllTest {
 protected:
  void ExpectRefused(std::span<const Charge> charges, std::span<Decision> decisions,
                     Problem problem, size_t deciding, std::span<Receipt> receipts = {}) {
    const Verdict verdict = CheckAll(charges, decisions, std::nullopt, receipts);
    EXPECT_EQ(verdict.outcome, Outcome::kRefused);
    EXPECT_EQ(verdict.problem, problem) << Explain(verdict.problem);
    EXPECT_EQ(verdict.deciding, deciding);
    for (size_t i = 0; i < std::min(decisions.size(), charges.size()); ++i) {
      EXPECT_EQ(decisions[i].outcome, Outcome::kRefused);
      EXPECT_EQ(decisions[i].problem, problem);
      EXPECT_EQ(decisions[i].charged, 0U);
    }
    for (const Receipt& receipt : receipts) {
      EXPECT_EQ(receipt.charged, 0U);
    }
    EXPECT_EQ(Left(limiter_), 100U) << "nothing is charged";
  }

  Limiter limiter_ = Make("100/min burst 100");
};

TEST_F(IllFormedTest, MoreChargesThanTheMostAreRefused) {
  for (const size_t count : {kMaxCharges + 1, size_t{1000}}) {
    const std::vector<Charge> charges(count, Charge{&limiter_, "key"});
    std::vector<Decision> decisions(count);
    std::vector<Receipt> receipts(count);
    receipts[3].charged = 7;
    ExpectRefused(charges, decisions, Problem::kTooManyCharges, 0, receipts);
  }
}

TEST_F(IllFormedTest, MoreChargesThanDecisionsOrReceiptsAreRefused) {
  const std::array<Charge, 2> charges = {Charge{&limiter_, "key"}, Charge{&limiter_, "other"}};
  std::array<Decision, 2> decisions;
  std::array<Receipt, 1> receipts;
  ExpectRefused(charges, std::span(decisions).first(1), Problem::kTooManyCharges, 0);
  ExpectRefused(charges, {}, Problem::kTooManyCharges, 0);
  ExpectRefused(charges, decisions, Problem::kTooManyCharges, 0, receipts);
}

TEST_F(IllFormedTest, AModeThatCannotBeAllOrNothingIsRefused) {
  for (const ChargeMode mode : {ChargeMode::kDryRun, ChargeMode::kUpTo, ChargeMode{17}}) {
    const std::array<Charge, 2> charges = {
        Charge{&limiter_, "key"}, Charge{.limiter = &limiter_, .key = "key", .mode = mode}};
    std::array<Decision, 2> decisions;
    ExpectRefused(charges, decisions, Problem::kWrongMode, 1);
  }
}

TEST_F(IllFormedTest, AChargeWithoutALimiterIsRefused) {
  // The first one is counted whatever happens to the others, but not in a call that makes no sense.
  const std::array<Charge, 3> charges = {
      Charge{.limiter = &limiter_, .key = "key", .mode = ChargeMode::kCountAlways},
      Charge{.limiter = nullptr, .key = "key"}, Charge{&limiter_, "key"}};
  std::array<Decision, 3> decisions;
  ExpectRefused(charges, decisions, Problem::kNoLimiter, 1);
  ExpectRefused(std::span(charges).subspan(1), decisions, Problem::kNoLimiter, 0);
}

TEST_F(CheckAllTest, AStampTooFarAwayIsRefusedAndChargesNothing) {
  Limiter limiter = Make("10/min burst 10");
  const std::array<Charge, 1> charges = {Charge{&limiter, "key"}};
  std::array<Decision, 1> decisions;
  const Verdict verdict = CheckAll(charges, decisions, limiter.Now() + minutes(1));
  EXPECT_EQ(verdict.problem, Problem::kNowTooFar);
  EXPECT_EQ(Left(limiter), 10U);
}

// Random requests over random quotas: each limiter must admit exactly what it would have admitted
// of the requests that passed, and the whole passes iff every part would.
TEST_F(CheckAllTest, IsTheConjunctionOfItsParts) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    ManualClock clock(Noon());
    std::vector<Limiter> together;
    std::vector<Limiter> apart;
    std::vector<Quota> quotas;
    for (int i = 0; i < 4; ++i) {
      Quota quota = random.OneIn(2)   ? testing::RandomBucket(random)
                    : random.OneIn(3) ? testing::RandomGap(random)
                                      : testing::RandomWindow(random);
      together.push_back(*Limiter::Create(quota, testing::SmallStore(clock)));
      apart.push_back(*Limiter::Create(quota, testing::SmallStore(clock)));
      quotas.push_back(quota);
    }
    for (int step = 0; step < 60; ++step) {
      const Quota& pace = quotas[random.Below(quotas.size())];
      clock.Advance(pace.window() / pace.limit() / static_cast<int64_t>(random.Between(1, 3)));
      std::vector<Charge> charges;
      bool all_fit = true;
      for (size_t i = 0; i < together.size(); ++i) {
        const uint64_t cost = random.Between(1, std::min(quotas[i].burst(), 3U));
        charges.push_back({&together[i], "key", cost});
        all_fit =
            all_fit && apart[i]
                           .Check("key", CheckOptions{.cost = cost, .mode = ChargeMode::kDryRun})
                           .allowed();
      }
      std::array<Decision, 4> decisions;
      ASSERT_EQ(CheckAll(charges, decisions).allowed(), all_fit) << seed << '/' << step;
      for (size_t i = 0; i < charges.size(); ++i) {
        if (all_fit) {
          apart[i].Check("key", charges[i].cost);
        }
        ASSERT_EQ(together[i].Check("key", 0).remaining, apart[i].Check("key", 0).remaining)
            << quotas[i].ToString();
      }
    }
  }
}

}  // namespace
}  // namespace weir
