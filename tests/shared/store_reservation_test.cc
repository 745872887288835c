// Reservations on a store whose replies are lost after it has done its work: each is settled once,
// by one node, and what it came to is charged.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "testing/fault_proxy.h"
#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using std::chrono::seconds;
using testing::RedisProcess;

constexpr const char* kQuota = "10000/365d burst 10000";

class StoreReservation : public ::testing::Test {
 protected:
  RedisProcess redis_{{}};
  testing::FaultProxy proxy_{{.upstream = redis_.address()}};
  std::shared_ptr<FleetStore> store_ = Open(Patient("redis://127.0.0.1:" + PortText()));
  std::shared_ptr<FleetStore> other_ = Open(Patient(UrlOf(redis_)));  // without the proxy
  const SharedQuota* const quota_ = Bound(*store_, kQuota);
  const SharedQuota* const same_ = Bound(*other_, kQuota);

  [[nodiscard]] std::string PortText() const { return std::to_string(proxy_.port()); }

  bool Reserve(FleetStore& store, const SharedQuota* quota, const std::string& token) {
    SharedAsk ask{.quota = quota, .key = "k", .cost = 100};
    SharedRequest request{.asks = {&ask, 1}};
    store.Reserve(request, 100, seconds(600), token);
    return ask.decision.allowed();
  }
  void WaitUntilWell() {
    proxy_.Set({});
    ASSERT_TRUE(Eventually(
        [&] { return AskOne(*store_, quota_, "probe", {.cost = 0}).basis == Basis::kStore; }));
  }
  uint32_t Left() { return AskOne(*other_, same_, "k", {.cost = 0}).remaining; }
};

TEST_F(StoreReservation, WhatItCameToCountsOnceAlthoughTheRepliesAreLost) {
  uint32_t charged = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string token = "token " + std::to_string(i);
    const uint32_t actual = i % 2 == 0 ? 30 : 170;
    ASSERT_TRUE(Reserve(*other_, same_, token));
    WaitUntilWell();
    // All replies, of the first question already; or now and then one of a later question.
    proxy_.Set({.drop_share = i < 4 ? 1.0 : 0.5});
    (void)store_->Settle(token, actual);
    WaitUntilWell();
    SharedSettlement settled;
    ASSERT_TRUE(Eventually([&] {
      settled = store_->Settle(token, actual);
      return settled.trouble == weir::StoreTrouble::kNone;
    }));
    EXPECT_TRUE(settled.outcome == SettleOutcome::kSettled ||
                settled.outcome == SettleOutcome::kAlreadySettled);
    EXPECT_EQ(settled.actual, actual);
    EXPECT_EQ(other_->Settle(token, 99).actual, actual);
    charged += actual;
    EXPECT_EQ(Left(), 10'000 - charged) << token;
  }
  EXPECT_GT(proxy_.counts().dropped, 3U);
}

// The record may be there although nobody said so: then two nodes know of it, and one settles it.
TEST_F(StoreReservation, OneThatMayNotHaveBeenWrittenIsSettledByOneNode) {
  int settled_here = 0;
  int settled_there = 0;
  for (int i = 0; i < 24; ++i) {
    const std::string token = "token " + std::to_string(i);
    WaitUntilWell();
    proxy_.Set({.drop_share = 0.5});
    const bool reserved = Reserve(*store_, quota_, token);
    WaitUntilWell();
    if (!reserved) {
      continue;
    }
    int settled = 0;
    for (const bool here : {i % 2 == 0, i % 2 != 0}) {
      FleetStore& node = here ? *store_ : *other_;
      const SharedSettlement settlement = node.Settle(token, 100);
      ASSERT_EQ(settlement.trouble, weir::StoreTrouble::kNone);
      settled += settlement.outcome == SettleOutcome::kSettled ? 1 : 0;
      (here ? settled_here : settled_there) +=
          settlement.outcome == SettleOutcome::kSettled ? 1 : 0;
    }
    EXPECT_EQ(settled, 1) << token;
  }
  EXPECT_GT(settled_here, 0);
  EXPECT_GT(settled_there, 0);
}

}  // namespace
}  // namespace weir::shared
