// The shared store on a Redis that begins to refuse while it is used: what is decided by each
// policy, which line is told, and that it ends by itself.
#include <chrono>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using testing::RedisProcess;

constexpr const char* kQuota = "1000/365d burst 1000";

class StoreTrouble : public ::testing::Test {
 protected:
  RedisProcess redis_{{.config = {"user weir on >old ~* &* +@all"}}};
  Told told_;
  std::shared_ptr<FleetStore> store_ = MakeStore();

  std::shared_ptr<FleetStore> MakeStore() {
    RedisOptions options = Patient("redis://weir:old@" + redis_.address());
    options.on_event = told_.hook();
    return Open(options);
  }

  uint32_t charged_ = 0;  // to "k", by whomever

  Basis BasisFor(OnStoreFailure policy) {
    const Decision decision = AskOne(*store_, Bound(*store_, kQuota), "k", {.on_failure = policy});
    charged_ += decision.charged;
    return decision.basis;
  }

  // Each policy does what it says, `cause` and `fix` are told once, and it is over after `end`.
  void ExpectToSuffer(const std::function<void()>& begin, const std::string& cause,
                      const std::string& fix, const std::function<void()>& end) {
    ASSERT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kStore);
    begin();
    EXPECT_TRUE(Eventually([&] { return BasisFor(OnStoreFailure::kLocal) == Basis::kLocal; }));
    EXPECT_TRUE(Eventually([&] { return told_.Count("trouble " + cause + ":") == 1; }))
        << told_.all();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kLocal);
      EXPECT_EQ(BasisFor(OnStoreFailure::kAllow), Basis::kOpen);
      EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kClosed);
    }
    EXPECT_EQ(told_.Count("trouble " + cause + ":"), 1U) << told_.all();
    EXPECT_GE(told_.Count(fix), 1U) << told_.all();
    EXPECT_EQ(told_.Count("old"), 0U) << told_.all();  // the password
    EXPECT_TRUE(store_->Stats().away);
    end();
    EXPECT_TRUE(Eventually([&] { return BasisFor(OnStoreFailure::kDeny) == Basis::kStore; }));
    EXPECT_TRUE(Eventually([&] {
      (void)BasisFor(OnStoreFailure::kLocal);  // some are over when a question is answered
      return !store_->Stats().away && told_.Count("well again") >= 1;
    })) << told_.all();
  }
  // Of a Redis that refused, so that nobody doubts what it did not do.
  void ExpectAllIsCharged() {
    const auto left = [&] {
      return AskOne(*store_, Bound(*store_, kQuota), "k", {.cost = 0}).remaining;
    };
    EXPECT_TRUE(Eventually([&] { return left() == 1000 - charged_; }))
        << left() << " left, " << charged_ << " charged";
    EXPECT_GT(charged_, 20U);
    EXPECT_EQ(store_->Stats().repaid_lost, 0U);
  }
};

TEST_F(StoreTrouble, APasswordThatIsChanged) {
  ExpectToSuffer(
      [&] {
        redis_.Ask({"ACL", "SETUSER", "weir", "resetpass", ">new"});
        redis_.Ask({"CLIENT", "KILL", "USER", "weir"});
      },
      "password", "check user:password@",
      [&] { redis_.Ask({"ACL", "SETUSER", "weir", "resetpass", ">old"}); });
}

TEST_F(StoreTrouble, AnAclThatTakesEvalshaAway) {
  ExpectToSuffer([&] { redis_.Ask({"ACL", "SETUSER", "weir", "-evalsha"}); }, "permission",
                 "+evalsha", [&] { redis_.Ask({"ACL", "SETUSER", "weir", "+evalsha"}); });
  ExpectAllIsCharged();
}

TEST_F(StoreTrouble, AMemoryThatIsFull) {
  ExpectToSuffer([&] { redis_.Ask({"CONFIG", "SET", "maxmemory", "1"}); }, "out-of-memory",
                 "raise maxmemory", [&] { redis_.Ask({"CONFIG", "SET", "maxmemory", "0"}); });
  ExpectAllIsCharged();
}

TEST_F(StoreTrouble, ATextOfSomebodyElsesIsToldOnceAndIsNoAbsence) {
  ASSERT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kStore);
  const std::string name = redis_.Ask({"KEYS", "weir:*"});
  redis_.Ask({"SET", name, "not ours"});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kClosed);
  }
  EXPECT_EQ(told_.Count("trouble unknown-state:"), 1U) << told_.all();
  EXPECT_EQ(told_.Count("give weir a Redis or a database of its own"), 1U) << told_.all();
  EXPECT_FALSE(store_->Stats().away);
  redis_.Ask({"DEL", name});
  EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kStore);
}

TEST_F(StoreTrouble, AnEvictionThatIsAllowedIsToldAndIsNoAbsence) {
  redis_.Ask({"CONFIG", "SET", "maxmemory", "100mb"});
  redis_.Ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  Told told;
  RedisOptions options = Patient("redis://weir:old@" + redis_.address());
  options.on_event = told.hook();
  options.allow_eviction = true;
  const auto store = Open(options);
  EXPECT_EQ(AskOne(*store, Bound(*store, kQuota), "k").basis, Basis::kStore);
  EXPECT_EQ(told.Count("trouble evicts:"), 1U) << told.all();
  EXPECT_FALSE(store->Stats().away);
}

TEST_F(StoreTrouble, AKeyOfTheWrongTypeIsToldOnceAndServesAgainWhenItIsGone) {
  ASSERT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kStore);
  const std::string name = redis_.Ask({"KEYS", "weir:*"});
  redis_.Ask({"DEL", name});
  redis_.Ask({"LPUSH", name, "not ours"});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kLocal);
    EXPECT_EQ(BasisFor(OnStoreFailure::kAllow), Basis::kOpen);
    EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kClosed);
    // Nobody else is concerned.
    EXPECT_EQ(AskOne(*store_, Bound(*store_, kQuota), "other").basis, Basis::kStore);
  }
  EXPECT_EQ(told_.Count("trouble wrong-type:"), 1U) << told_.all();
  EXPECT_EQ(told_.Count("give weir a Redis or a database of its own"), 1U) << told_.all();
  redis_.Ask({"DEL", name});
  EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kStore);
}

// As docs/reference/redis.md says it.
constexpr const char* kAcl =
    "~weir:* -@all +hello +ping +info +client|setname +eval +evalsha +get +set +incrby +del +pttl "
    "+pexpire +getrange +setrange +type +time +zadd +zrange +zrangebyscore +zrem +zremrangebyscore "
    "+zscore";

// Everything that weir does in Redis.
void UseAll(FleetStore& store) {
  uint64_t scope = 0;
  for (const char* text :
       {"100/day burst 20", "100/day burst 7 queue", "7/13d burst 3", "gap 1s",
        "100/min fixed-window", "100/day calendar", "100/min sliding-window", "100/min sliding-log",
        "100/min sliced-window slices 60", "concurrency 5 lease 60s"}) {
    const auto quota = Quota::Parse(text);
    ASSERT_TRUE(quota) << text;
    const SharedQuota* const bound = *store.Bind(*quota, ++scope);
    SharedReceipt receipt;
    ASSERT_EQ(AskOne(store, bound, "k", {.receipt = &receipt}).basis, Basis::kStore) << text;
    if (quota->algorithm() == Algorithm::kConcurrency) {
      EXPECT_TRUE(store.Renew(receipt, std::chrono::seconds(30)));
    }
    (void)store.GiveBack({&receipt, 1});
    EXPECT_EQ(AskOne(store, bound, "k", {.id = "id"}).basis, Basis::kStore) << text;
    EXPECT_EQ(store.Reset(*bound, "k"), ResetOutcome::kDone) << text;
  }
  const SharedQuota* const quota = Bound(store, "1000/day burst 1000", ++scope);
  SharedAsk ask{.quota = quota, .key = "k", .cost = 10};
  SharedRequest request{.asks = {&ask, 1}};
  store.Reserve(request, 10, std::chrono::seconds(60), "token");
  EXPECT_FALSE(store.RenewReserved("token", std::chrono::seconds(90)));  // no hold
  const SharedSettlement settled = store.Settle("token", 4);
  EXPECT_EQ(settled.outcome, SettleOutcome::kSettled);
  for (const uint64_t failed : store.Stats().troubles) {
    EXPECT_EQ(failed, 0U);
  }
}

TEST(StoreAcl, WhatIsDocumentedIsEnough) {
  const RedisProcess redis({.config = {std::string("user weir on >old ") + kAcl}});
  Told told;
  RedisOptions options = Patient("redis://weir:old@" + redis.address());
  options.on_event = told.hook();
  UseAll(*Open(options));
  EXPECT_EQ(told.Count("trouble"), 0U) << told.all();
}

TEST(StoreAcl, WhatIsDocumentedIsEnoughInACluster) {
  testing::RedisCluster cluster(
      3, 0, {std::string("user weir on >old ") + kAcl + " +cluster|slots +asking"});
  Told told;
  RedisOptions options = Patient("redis+cluster://weir:old@" + cluster.node(0).address());
  options.on_event = told.hook();
  UseAll(*Open(options));
  EXPECT_EQ(told.Count("trouble"), 0U) << told.all();
}

}  // namespace
}  // namespace weir::shared
