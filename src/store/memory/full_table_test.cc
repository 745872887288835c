// A table full of live keys: never silently unlimited, never closed to everybody, and nobody who is
// in it pays for it.
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

using std::chrono::seconds;

constexpr uint32_t kBurst = 5;

class FullTable : public ::testing::TestWithParam<int> {
 protected:
  void Fill(OverflowPolicy policy) {
    store_ = *MemoryStore::Create({.budget_bytes = 64 << 10,
                                   .overflow = policy,
                                   .clock = &clock_,
                                   .wide_percent = GetParam()});
    limiter_.emplace(*Limiter::Create(*Quota::TokenBucket(1, seconds(1000), kBurst), store_));
    // All of its keys have one home, so that a few of them fill every line they may live on.
    const TableProbe probe(*store_);
    tags_.clear();
    keys_ = probe.KeysAt(50, Table::kProbe * (probe.compact() ? 8 : 4) + 400, "one", &tags_);
    for (const std::string& key : keys_) {
      const Decision decision = limiter_->Check(key, 1);
      if (decision.basis == Basis::kStore) {
        ASSERT_TRUE(decision.allowed());
        ASSERT_EQ(decision.remaining, kBurst - 1);
        ++inside_;
      } else {
        ++outside_;
        allowed_outside_ += static_cast<uint64_t>(decision.allowed());
      }
    }
    ASSERT_EQ(inside_, Table::kProbe * (probe.compact() ? 8 : 4));
    ASSERT_EQ(outside_, 400U);
    EXPECT_EQ(store_->Stats().overflow, outside_);
  }

  // Whoever has a slot keeps it, and gets exactly its quota.
  void ExpectTheOthersUnharmed() {
    for (uint64_t i = 0; i < inside_; ++i) {
      for (uint32_t left = kBurst - 1; left > 0; --left) {
        const Decision decision = limiter_->Check(keys_[i]);
        ASSERT_TRUE(decision.allowed()) << i;
        ASSERT_EQ(decision.basis, Basis::kStore);
        ASSERT_EQ(decision.remaining, left - 1);
      }
      ASSERT_FALSE(limiter_->Check(keys_[i]).allowed());
    }
    EXPECT_EQ(store_->Stats().reclaims, 0U);
  }

  ManualClock clock_;
  std::shared_ptr<MemoryStore> store_;
  std::optional<Limiter> limiter_;
  std::vector<std::string> keys_;
  std::set<uint64_t> tags_;  // of all keys asked for
  uint64_t inside_ = 0;
  uint64_t outside_ = 0;
  uint64_t allowed_outside_ = 0;
};

TEST_P(FullTable, SketchLimitsEachOfTheOverflowingKeys) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kSketch));
  EXPECT_GT(allowed_outside_, outside_ * 9 / 10) << "nearly nobody pays for the others";
  uint64_t allowed = allowed_outside_;
  std::vector<uint64_t> each(keys_.size(), 1);
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = inside_; i < keys_.size(); ++i) {
      const Decision decision = limiter_->Check(keys_[i]);
      EXPECT_EQ(decision.basis, Basis::kSketch);
      EXPECT_EQ(decision.limit, kBurst);
      EXPECT_TRUE(decision.allowed() || decision.retry_after > Duration::zero());
      each[i] += static_cast<uint64_t>(decision.allowed());
      allowed += static_cast<uint64_t>(decision.allowed());
    }
  }
  for (uint64_t i = inside_; i < keys_.size(); ++i) {
    EXPECT_LE(each[i], kBurst + 1) << "the first request may have been denied";
  }
  EXPECT_LE(allowed, outside_ * kBurst);
  EXPECT_GT(allowed, outside_ * kBurst * 3 / 4);
  EXPECT_EQ(store_->Stats().overflow, outside_ * 21);
  ExpectTheOthersUnharmed();
}

TEST_P(FullTable, SketchGivesNoReceiptAndTakesNoneBack) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kSketch));
  Receipt receipt{.hash = 1, .charged = 1};
  const Decision decision = limiter_->Check(keys_.back(), CheckOptions{.receipt = &receipt});
  EXPECT_EQ(decision.basis, Basis::kSketch);
  EXPECT_EQ(receipt.charged, 0U);
  EXPECT_EQ(limiter_->GiveBack(receipt), 0U);
}

TEST_P(FullTable, DenyDeniesThemAndSaysOnWhatBasis) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kDeny));
  EXPECT_EQ(allowed_outside_, 0U);
  const Decision decision = limiter_->Check(keys_.back());
  EXPECT_EQ(decision.basis, Basis::kClosed);
  EXPECT_EQ(decision.outcome, Outcome::kDenied);
  EXPECT_GT(decision.retry_after, Duration::zero());
  EXPECT_EQ(decision.charged, 0U);
  ExpectTheOthersUnharmed();
}

TEST_P(FullTable, AllowAllowsThemAndSaysOnWhatBasis) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kAllow));
  EXPECT_EQ(allowed_outside_, outside_);
  EXPECT_EQ(limiter_->Check(keys_.back()).basis, Basis::kOpen);
  ExpectTheOthersUnharmed();
}

TEST_P(FullTable, HasRoomAgainWhenKeysHaveExpired) {
  for (const OverflowPolicy policy :
       {OverflowPolicy::kSketch, OverflowPolicy::kDeny, OverflowPolicy::kAllow}) {
    inside_ = outside_ = allowed_outside_ = 0;
    ASSERT_NO_FATAL_FAILURE(Fill(policy));
    clock_.Advance(seconds(1002));
    const Decision decision = limiter_->Check(keys_.back());
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.basis, Basis::kStore);
    EXPECT_EQ(store_->Stats().reclaims, 1U);
    EXPECT_EQ(store_->Stats().overflow, outside_) << "counts no more";
  }
}

TEST_P(FullTable, PeeksAndDryRunsOverflowNothing) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kDeny));
  const uint64_t before = store_->Stats().overflow;
  EXPECT_TRUE(limiter_->Check(keys_.back(), 0).allowed());
  EXPECT_EQ(limiter_->Check(keys_.back(), CheckOptions{.mode = ChargeMode::kDryRun}).charged, 0U);
  EXPECT_EQ(store_->Stats().overflow, before);
}

TEST_P(FullTable, OfManyQuotasStaysLimitedThoughAllShareTheSketch) {
  ASSERT_NO_FATAL_FAILURE(Fill(OverflowPolicy::kSketch));
  uint64_t in_sketch = 0;
  for (uint32_t quota = 2; quota < 60; ++quota) {
    Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1, seconds(1000), kBurst), store_);
    const TableProbe probe(*store_, quota);
    const std::vector<std::string> keys = probe.KeysAt(50, 20, "other", &tags_);
    for (const std::string& key : keys) {
      uint64_t allowed = 0;
      for (int i = 0; i < 10; ++i) {
        const Decision decision = limiter.Check(key);
        ASSERT_TRUE(decision.basis == Basis::kStore || decision.basis == Basis::kSketch);
        in_sketch += static_cast<uint64_t>(decision.basis == Basis::kSketch);
        allowed += static_cast<uint64_t>(decision.allowed());
      }
      ASSERT_LE(allowed, kBurst);
    }
  }
  EXPECT_GT(in_sketch, 0U);
  ExpectTheOthersUnharmed();
}

INSTANTIATE_TEST_SUITE_P(Layouts, FullTable, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

TEST(Budget, IsSharedByTableRecordsAndSketch) {
  for (const int sketch : {-1, 1, 10, 50}) {
    auto store = *MemoryStore::Create({.budget_bytes = size_t{16} << 20,
                                       .wide_percent = 50,
                                       .record_percent = 25,
                                       .sketch_percent = sketch});
    const SharedState& state = store->state();
    const size_t slots = state.tables[0]->bytes() + state.tables[1]->bytes();
    const size_t words = state.sketch->word_count() * sizeof(uint64_t);
    const size_t records = (store->Stats().budget_bytes - words) / 100 * 25;
    EXPECT_LE(slots + words + records, size_t{16} << 20);
    EXPECT_GT(slots + words + records, (size_t{16} << 20) * 99 / 100);
    const size_t share = sketch < 0 ? (size_t{16} << 20) / 32
                                    : (size_t{16} << 20) / 100 * static_cast<size_t>(sketch);
    EXPECT_LE(words, share);
    EXPECT_GT(2 * words, share);
  }
}

}  // namespace
}  // namespace weir::store
