// The shared store on a real Redis that is well: exact over stores and threads, all or nothing,
// ids, holds, reservations, from threads and from fibers.
#include "shared/fleet_store.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/fiber.h"
#include "net/loop.h"
#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using std::chrono::seconds;
using testing::RedisCluster;
using testing::RedisProcess;

constexpr const char* kSlow = "100/day burst 100";  // nothing refills while a test runs

class FleetStoreTest : public ::testing::Test {
 protected:
  RedisProcess redis_{{}};
  std::shared_ptr<FleetStore> store_ = Open(Patient(UrlOf(redis_)));

  std::shared_ptr<FleetStore> Another() { return Open(Patient(UrlOf(redis_))); }
};

// 10,000 requests, three nodes, four threads each.
uint64_t AdmittedByThreeNodes(const RedisOptions& options, const char* quota) {
  std::vector<std::shared_ptr<FleetStore>> nodes;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> admitted{0};
  std::atomic<int> left{10'000};
  for (int n = 0; n < 3; ++n) {
    nodes.push_back(Open(options));
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, store = nodes.back().get()] {
        const SharedQuota* const bound = Bound(*store, quota);
        while (left.fetch_sub(1) > 0) {
          const Decision decision = AskOne(*store, bound, "user");
          EXPECT_TRUE(decision.basis == Basis::kStore || decision.basis == Basis::kCached);
          admitted += decision.allowed() ? 1 : 0;
        }
      });
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return admitted;
}

TEST_F(FleetStoreTest, ThreeNodesAdmitExactlyTheLimit) {
  for (const char* quota : {kSlow, "100/day", "100/day fixed-window", "100/day sliding-log",
                            "100/day sliced-window slices 24", "100/month"}) {
    redis_.Ask({"FLUSHALL"});
    EXPECT_EQ(AdmittedByThreeNodes(Patient(UrlOf(redis_)), quota), 100U) << quota;
  }
}

TEST_F(FleetStoreTest, ThreeNodesAdmitExactlyTheLimitWithoutRememberingDenials) {
  RedisOptions options = Patient(UrlOf(redis_));
  options.denial_memory = {};
  EXPECT_EQ(AdmittedByThreeNodes(options, kSlow), 100U);
}

TEST_F(FleetStoreTest, NodesWithAnotherSecretCountApart) {
  RedisOptions options = Patient(UrlOf(redis_));
  options.fleet_secret = "another";
  const auto other = Open(options);
  EXPECT_EQ(AskOne(*store_, Bound(*store_, kSlow), "user").remaining, 99U);
  EXPECT_EQ(AskOne(*other, Bound(*other, kSlow), "user").remaining, 99U);
}

TEST_F(FleetStoreTest, ScopesAndKeysCountApart) {
  EXPECT_EQ(AskOne(*store_, Bound(*store_, kSlow, 1), "user").remaining, 99U);
  EXPECT_EQ(AskOne(*store_, Bound(*store_, kSlow, 2), "user").remaining, 99U);
  EXPECT_EQ(AskOne(*store_, Bound(*store_, kSlow, 1), "other").remaining, 99U);
  EXPECT_EQ(AskOne(*store_, Bound(*store_, kSlow, 1), "user").remaining, 98U);
}

TEST_F(FleetStoreTest, EqualQuotasAreBoundOnce) {
  EXPECT_EQ(Bound(*store_, kSlow), Bound(*store_, kSlow));
  EXPECT_NE(Bound(*store_, kSlow), Bound(*store_, "100/day burst 99"));
}

TEST_F(FleetStoreTest, AsksThatCannotBeAnsweredAreRefused) {
  const SharedQuota* const quota = Bound(*store_, kSlow);
  EXPECT_EQ(AskOne(*store_, quota, "").problem, Problem::kKeyEmpty);
  EXPECT_EQ(AskOne(*store_, quota, std::string(70000, 'k')).problem, Problem::kKeyTooLong);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = 101}).problem, Problem::kCostAboveBurst);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = -1}).problem, Problem::kCostTooLarge);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = 0}).remaining, 100U);
}

TEST_F(FleetStoreTest, ADenialIsRememberedAndAPeekIsNot) {
  const SharedQuota* const quota = Bound(*store_, "1/day burst 1");
  EXPECT_EQ(AskOne(*store_, quota, "k").basis, Basis::kStore);
  EXPECT_EQ(AskOne(*store_, quota, "k").basis, Basis::kStore);  // denied there
  const Decision cached = AskOne(*store_, quota, "k");
  EXPECT_EQ(cached.basis, Basis::kCached);
  EXPECT_FALSE(cached.allowed());
  EXPECT_GT(cached.retry_after, seconds(86000));
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = 0}).basis, Basis::kStore);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.mode = ChargeMode::kDryRun}).basis, Basis::kStore);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.mode = ChargeMode::kCountAlways}).basis, Basis::kStore);
}

TEST_F(FleetStoreTest, AResetEndsADenial) {
  const SharedQuota* const quota = Bound(*store_, "1/day burst 1");
  AskOne(*store_, quota, "k");
  EXPECT_FALSE(AskOne(*store_, quota, "k").allowed());
  EXPECT_EQ(store_->Reset(*quota, "k"), ResetOutcome::kDone);
  EXPECT_EQ(store_->Reset(*quota, "nobody"), ResetOutcome::kUnknown);
  EXPECT_TRUE(AskOne(*store_, quota, "k").allowed());
}

TEST_F(FleetStoreTest, ARaiseEndsADenial) {
  AskOne(*store_, Bound(*store_, "1/day burst 1"), "k");
  EXPECT_FALSE(AskOne(*store_, Bound(*store_, "1/day burst 1"), "k").allowed());
  EXPECT_TRUE(AskOne(*store_, Bound(*store_, "2/day burst 2"), "k").allowed());
}

TEST_F(FleetStoreTest, GivesBackOnce) {
  const SharedQuota* const quota = Bound(*store_, kSlow);
  SharedReceipt receipt;
  AskOne(*store_, quota, "k", {.cost = 10, .receipt = &receipt});
  SharedReceipt copies[] = {receipt};
  EXPECT_GE(store_->GiveBack(copies), 9U);  // whole units: a little of it has drained
  EXPECT_EQ(copies[0].charged, 0U);
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = 0}).remaining, 100U);
}

TEST_F(FleetStoreTest, AnIdIsChargedOnce) {
  const SharedQuota* const quota = Bound(*store_, kSlow);
  const auto other = Another();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(AskOne(*store_, quota, "k", {.cost = 10, .id = "request 1"}).allowed());
    EXPECT_TRUE(
        AskOne(*other, Bound(*other, kSlow), "k", {.cost = 10, .id = "request 1"}).allowed());
  }
  EXPECT_EQ(AskOne(*store_, quota, "k", {.cost = 0}).remaining, 90U);
  EXPECT_EQ(store_->Stats().repeated_ids + other->Stats().repeated_ids, 9U);
}

TEST_F(FleetStoreTest, AnAdmittedIdIsAdmittedAgainAlthoughOthersAreDenied) {
  const SharedQuota* const quota = Bound(*store_, "1/day burst 1");
  EXPECT_TRUE(AskOne(*store_, quota, "k", {.id = "first"}).allowed());
  EXPECT_FALSE(AskOne(*store_, quota, "k").allowed());
  EXPECT_TRUE(AskOne(*store_, quota, "k", {.id = "first"}).allowed());
}

// Two asks and one apart, of which the second denies.
void ExpectAllOrNothing(FleetStore& store) {
  const SharedQuota* const wide = Bound(store, kSlow, 1);
  const SharedQuota* const narrow = Bound(store, "2/day burst 2", 2);
  const SharedQuota* const shadow = Bound(store, kSlow, 3);
  int admitted = 0;
  for (int i = 0; i < 20; ++i) {
    SharedAsk asks[] = {{.quota = wide, .key = "a"},
                        {.quota = narrow, .key = "b"},
                        {.quota = shadow, .key = "c", .apart = true}};
    SharedRequest request{.asks = asks};
    store.Decide(request);
    const bool allowed = asks[0].decision.allowed() && asks[1].decision.allowed();
    admitted += allowed ? 1 : 0;
    EXPECT_EQ(asks[0].decision.charged, allowed ? 1U : 0U);
    EXPECT_TRUE(asks[2].decision.allowed());
    EXPECT_EQ(asks[2].decision.charged, 1U);
  }
  EXPECT_EQ(admitted, 2);
  EXPECT_TRUE(Eventually([&] {  // refunds are on their way when the answer is given
    return AskOne(store, wide, "a", {.cost = 0}).remaining == 98;
  }));
  EXPECT_EQ(AskOne(store, narrow, "b", {.cost = 0}).remaining, 0U);
  EXPECT_EQ(AskOne(store, shadow, "c", {.cost = 0}).remaining, 80U);
}

TEST_F(FleetStoreTest, SeveralQuotasAreChargedAllOrNone) {
  ExpectAllOrNothing(*store_);
}

TEST(FleetStoreOnACluster, SeveralSlotsAreChargedAllOrNone) {
  RedisCluster cluster(3);
  RedisOptions options =
      Patient("redis+cluster://127.0.0.1:" + std::to_string(cluster.ports().front()));
  const auto remembering = Open(options);
  ExpectAllOrNothing(*remembering);
  for (const uint16_t port : cluster.ports()) {
    testing::RedisAdmin(port).Ask({"FLUSHALL"});
  }
  options.denial_memory = {};
  const auto asking = Open(options);
  ExpectAllOrNothing(*asking);
  EXPECT_EQ(asking->Stats().refunds_lost, 0U);
}

TEST(FleetStoreOnACluster, AnIdThatWasDeniedIsChargedInFullWhenItIsAdmitted) {
  RedisCluster cluster(3);
  const auto store =
      Open(Patient("redis+cluster://127.0.0.1:" + std::to_string(cluster.ports().front())));
  const SharedQuota* const wide = Bound(*store, kSlow, 1);
  const SharedQuota* const narrow = Bound(*store, "1/day burst 1", 2);
  const auto ask_both = [&] {
    SharedAsk asks[] = {{.quota = wide, .key = "a"}, {.quota = narrow, .key = "b"}};
    SharedRequest request{.asks = asks, .id = "request"};
    store->Decide(request);
    return asks[0].decision.allowed() && asks[1].decision.allowed();
  };
  const auto left = [&] { return AskOne(*store, wide, "a", {.cost = 0}).remaining; };
  EXPECT_TRUE(AskOne(*store, narrow, "b").allowed());
  EXPECT_FALSE(ask_both());
  EXPECT_TRUE(Eventually([&] { return left() == 100U; }));
  EXPECT_EQ(store->Reset(*narrow, "b"), ResetOutcome::kDone);
  EXPECT_TRUE(ask_both());
  EXPECT_EQ(left(), 99U);
  EXPECT_TRUE(ask_both());
  EXPECT_EQ(left(), 99U);
}

TEST_F(FleetStoreTest, HoldsEndByReleaseAndFencesGrow) {
  const SharedQuota* const lock = Bound(*store_, "concurrency 1 lease 60s");
  const auto other = Another();
  const SharedQuota* const same = Bound(*other, "concurrency 1 lease 60s");
  SharedReceipt held;
  ASSERT_TRUE(AskOne(*store_, lock, "k", {.receipt = &held}).allowed());
  const uint64_t fence = held.fence();
  EXPECT_GT(fence, 0U);
  EXPECT_FALSE(AskOne(*other, same, "k").allowed());
  EXPECT_FALSE(AskOne(*other, same, "k").allowed());  // not remembered: it may end any moment
  EXPECT_TRUE(store_->Renew(held, seconds(30)));
  SharedReceipt copy = held;
  EXPECT_EQ(store_->GiveBack({&held, 1}), 1U);
  EXPECT_EQ(store_->GiveBack({&copy, 1}), 0U);
  EXPECT_FALSE(store_->Renew(copy, seconds(30)));
  ASSERT_TRUE(AskOne(*other, same, "k", {.receipt = &held}).allowed());
  EXPECT_GT(held.fence(), fence);
}

TEST_F(FleetStoreTest, AReservationIsSettledOnceByAnyNode) {
  const SharedQuota* const tokens = Bound(*store_, "1000/day burst 1000", 1);
  const SharedQuota* const twice = Bound(*store_, "4000/day burst 4000", 2);
  const SharedQuota* const slots = Bound(*store_, "concurrency 5 lease 60s", 3);
  SharedAsk asks[] = {{.quota = tokens, .key = "t", .cost = 400},
                      {.quota = twice, .key = "t", .cost = 800},
                      {.quota = slots, .key = "t"}};
  SharedRequest request{.asks = asks};
  store_->Reserve(request, 400, seconds(60), "token-1");
  for (const SharedAsk& ask : asks) {
    ASSERT_TRUE(ask.decision.allowed());
  }
  const auto other = Another();
  const SharedSettlement settled = other->Settle("token-1", 100);
  EXPECT_EQ(settled.outcome, SettleOutcome::kSettled);
  EXPECT_EQ(settled.given_back, 600U);
  EXPECT_EQ(AskOne(*store_, tokens, "t", {.cost = 0}).remaining, 900U);
  EXPECT_EQ(AskOne(*store_, twice, "t", {.cost = 0}).remaining, 3800U);
  EXPECT_EQ(AskOne(*store_, slots, "t", {.cost = 0}).remaining, 5U);
  const SharedSettlement again = store_->Settle("token-1", 300);
  EXPECT_EQ(again.outcome, SettleOutcome::kAlreadySettled);
  EXPECT_EQ(again.actual, 100U);
  EXPECT_EQ(store_->Settle("no such token", 1).outcome, SettleOutcome::kGone);
}

TEST_F(FleetStoreTest, AReservationThatCameToMoreIsChargedForIt) {
  const SharedQuota* const tokens = Bound(*store_, "1000/day burst 1000");
  SharedAsk ask{.quota = tokens, .key = "t", .cost = 400};
  SharedRequest request{.asks = {&ask, 1}};
  store_->Reserve(request, 400, seconds(60), "token-2");
  EXPECT_EQ(store_->Settle("token-2", 700).outcome, SettleOutcome::kSettled);
  EXPECT_TRUE(
      Eventually([&] { return AskOne(*store_, tokens, "t", {.cost = 0}).remaining == 300; }));
}

TEST_F(FleetStoreTest, TheBoundIsToldInFigures) {
  const auto text = [&](const char* quota, OnStoreFailure on_failure) {
    return store_->Bound(*shared::Bound(*store_, quota), on_failure);
  };
  const std::string bucket = text("600/min burst 50", OnStoreFailure::kLocal);
  EXPECT_NE(bucket.find("at most 50 and 21 for each 2 s"), std::string::npos) << bucket;
  EXPECT_NE(bucket.find("at most 128 requests of this one"), std::string::npos) << bucket;
  EXPECT_NE(bucket.find("more than the quota, 50"), std::string::npos) << bucket;
  const std::string window = text("600/min fixed-window", OnStoreFailure::kDeny);
  EXPECT_NE(window.find("had not got: at most 600;"), std::string::npos) << window;
}

TEST_F(FleetStoreTest, HoldsUnderATokenAreRenewed) {
  const SharedQuota* const slots = Bound(*store_, "concurrency 5 lease 60s");
  SharedAsk ask{.quota = slots, .key = "t"};
  SharedRequest request{.asks = {&ask, 1}};
  store_->Reserve(request, 1, seconds(60), "token-3");
  EXPECT_TRUE(store_->RenewReserved("token-3", seconds(90)));
  EXPECT_FALSE(store_->RenewReserved("no such token", seconds(90)));
  EXPECT_EQ(store_->Settle("token-3", 0).outcome, SettleOutcome::kSettled);
  EXPECT_FALSE(store_->RenewReserved("token-3", seconds(90)));
}

TEST_F(FleetStoreTest, FibersOfALoopAskWithoutHoldingItUp) {
  constexpr int kFibers = 100;  // at once; more than 128 would not all be sent
  const SharedQuota* const quota = Bound(*store_, "40/day burst 40");
  std::atomic<int> admitted{0};
  std::atomic<int> ended{0};
  net::Loop loop;
  std::unique_ptr<net::Fibers> fibers;
  loop.Start("test", -1);
  loop.Run([&] {
    fibers = std::make_unique<net::Fibers>(loop.context());
    ASSERT_TRUE(store_->Attach(loop.context()));
    // Its client is not connected yet: those who come too early would be decided locally.
  });
  ASSERT_TRUE(Eventually([&] {
    Decision decision;
    std::promise<void> done;
    loop.Post([&] {
      fibers->Start([&] {
        decision = AskOne(*store_, quota, "probe", {.cost = 0});
        done.set_value();
      });
    });
    done.get_future().wait();
    return decision.basis == Basis::kStore;
  }));
  loop.Run([&] {
    for (int i = 0; i < kFibers; ++i) {
      fibers->Start([&] {
        admitted += AskOne(*store_, quota, "user").allowed() ? 1 : 0;
        ++ended;
      });
    }
    EXPECT_LT(ended.load(), kFibers);  // they wait, and the loop is here
  });
  ASSERT_TRUE(Eventually([&] { return ended == kFibers; }));
  EXPECT_EQ(admitted.load(), 40);
  loop.Run([&] {
    store_->Detach();
    fibers.reset();
  });
  loop.Stop();
  EXPECT_GE(store_->Stats().decisions[static_cast<size_t>(Basis::kStore)], 100U);
}

TEST_F(FleetStoreTest, ALimiterAsksAndAnswersLater) {
  std::shared_ptr<SharedStore> store = *RedisStore::Create(Patient(UrlOf(redis_)));
  auto limiter = *RedisLimiter::Create(*Quota::Parse("3/day burst 3"), store, "api");
  EXPECT_TRUE(limiter.Check("k").allowed());
  std::promise<Decision> answered;
  limiter.CheckThen("k", 2, [&](const Decision& decision) { answered.set_value(decision); });
  EXPECT_EQ(answered.get_future().get().remaining, 0U);
  EXPECT_FALSE(limiter.Check("k").allowed());
  EXPECT_FALSE(RedisLimiter::Create(*Quota::Parse("3/day"), nullptr, "api"));
}

// A denial that is remembered is told inside the question.
TEST_F(FleetStoreTest, WhoAsksAgainFromWithinDoesNotPileUp) {
  const std::shared_ptr<SharedStore> store(store_.get(), [](SharedStore*) {});
  auto limiter = *RedisLimiter::Create(*Quota::Parse("1/day burst 1"), store, "again");
  EXPECT_TRUE(limiter.Check("k").allowed());
  EXPECT_FALSE(limiter.Check("k").allowed());
  std::promise<int> answered;
  int left = 200'000;
  std::function<void(const Decision&)> again = [&](const Decision&) {
    if (--left == 0) {
      answered.set_value(left);
    } else {
      limiter.CheckThen("k", 1, again);
    }
  };
  limiter.CheckThen("k", 1, again);
  EXPECT_EQ(answered.get_future().get(), 0);
}

TEST_F(FleetStoreTest, TellsOfItsNodes) {
  AskOne(*store_, Bound(*store_, kSlow), "k");
  EXPECT_TRUE(Eventually([&] {
    const auto nodes = store_->Nodes();
    return nodes.size() == 1 && nodes[0].ready && nodes[0].replies > 0;
  }));
  const SharedStoreStats stats = store_->Stats();
  EXPECT_FALSE(stats.away);
  EXPECT_EQ(stats.admitted[static_cast<size_t>(Basis::kStore)], 1U);
}

}  // namespace
}  // namespace weir::shared
