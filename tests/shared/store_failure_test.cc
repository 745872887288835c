// The shared store on a Redis that is not well: killed, stopped, restarted empty, locked by a
// password, full; what is decided then, what is told, and how it recovers.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "testing/fault_proxy.h"
#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RedisProcess;

constexpr const char* kSlow = "100/day burst 100";

RedisOptions Hasty(const std::string& url) {
  RedisOptions options = Patient(url);
  options.timeout = milliseconds(2000);  // a busy machine must not look like a silent store
  return options;
}

// A Redis that is gone for good.
std::shared_ptr<FleetStore> WithoutRedis(uint32_t nodes = 1) {
  RedisOptions options = Hasty("redis://127.0.0.1:" + std::to_string(testing::FreePort()));
  options.start_wait = {};
  options.nodes = nodes;
  return Open(options);
}

TEST(StoreFailure, StartsWithoutRedisAndDecidesByPolicy) {
  const auto store = WithoutRedis(4);
  const SharedQuota* const quota = Bound(*store, kSlow);
  StoreTrouble trouble = StoreTrouble::kNone;
  const Decision local = AskOne(*store, quota, "k", {.trouble = &trouble});
  EXPECT_EQ(local.basis, Basis::kLocal);
  EXPECT_TRUE(local.allowed());
  EXPECT_EQ(local.limit, 25U);
  EXPECT_EQ(local.remaining, 24U);
  EXPECT_NE(trouble, StoreTrouble::kNone);

  const Decision open = AskOne(*store, quota, "k", {.on_failure = OnStoreFailure::kAllow});
  EXPECT_EQ(open.basis, Basis::kOpen);
  EXPECT_TRUE(open.allowed());
  EXPECT_EQ(open.limit, 0U);  // nobody counted: nothing is claimed
  EXPECT_EQ(open.remaining, 0U);
  EXPECT_EQ(open.charged, 0U);

  const Decision closed = AskOne(*store, quota, "k", {.on_failure = OnStoreFailure::kDeny});
  EXPECT_EQ(closed.basis, Basis::kClosed);
  EXPECT_EQ(closed.outcome, Outcome::kDenied);
  EXPECT_EQ(closed.problem, Problem::kNone);
  EXPECT_GT(closed.retry_after, Duration::zero());

  const SharedStoreStats stats = store->Stats();
  EXPECT_EQ(stats.admitted[static_cast<size_t>(Basis::kLocal)], 1U);
  EXPECT_EQ(stats.admitted[static_cast<size_t>(Basis::kOpen)], 1U);
  EXPECT_EQ(stats.decisions[static_cast<size_t>(Basis::kClosed)], 1U);
}

TEST(StoreFailure, FourNodesWithoutRedisAdmitTheLimitTogether) {
  uint64_t admitted = 0;
  for (int node = 0; node < 4; ++node) {
    const auto store = WithoutRedis(4);
    const SharedQuota* const quota = Bound(*store, kSlow);
    for (int i = 0; i < 200; ++i) {
      admitted += AskOne(*store, quota, "k").allowed() ? 1 : 0;
    }
  }
  EXPECT_EQ(admitted, 100U);
}

TEST(StoreFailure, LocalDecisionsAreAllOrNothing) {
  const auto store = WithoutRedis();
  const SharedQuota* const wide = Bound(*store, kSlow, 1);
  const SharedQuota* const narrow = Bound(*store, "2/day burst 2", 2);
  for (int i = 0; i < 10; ++i) {
    SharedAsk asks[] = {{.quota = wide, .key = "a"}, {.quota = narrow, .key = "b"}};
    SharedRequest request{.asks = asks};
    store->Decide(request);
  }
  EXPECT_EQ(AskOne(*store, wide, "a", {.cost = 0}).remaining, 98U);
}

TEST(StoreFailure, HoldsWithoutRedisAreSharesAndALockIsNobodys) {
  const auto store = WithoutRedis(2);
  const SharedQuota* const slots = Bound(*store, "concurrency 5 lease 60s", 1);
  SharedReceipt held;
  EXPECT_TRUE(AskOne(*store, slots, "k", {.receipt = &held}).allowed());
  EXPECT_EQ(held.fence(), 0U);
  EXPECT_TRUE(AskOne(*store, slots, "k").allowed());
  EXPECT_FALSE(AskOne(*store, slots, "k").allowed());
  EXPECT_TRUE(store->Renew(held, seconds(60)));
  EXPECT_EQ(store->GiveBack({&held, 1}), 1U);
  EXPECT_TRUE(AskOne(*store, slots, "k").allowed());
  const SharedQuota* const lock = Bound(*store, "concurrency 1 lease 60s", 2);
  EXPECT_EQ(AskOne(*store, lock, "k").basis, Basis::kClosed);
  EXPECT_FALSE(AskOne(*store, lock, "k").allowed());
}

TEST(StoreFailure, AnIdThatIsAskedAgainIsChargedOnceWithoutTheStoreToo) {
  RedisProcess redis({});
  const auto store = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kSlow);
  ASSERT_EQ(AskOne(*store, quota, "k").remaining, 99U);
  redis.Kill();
  ASSERT_TRUE(
      Eventually([&] { return AskOne(*store, quota, "k", {.cost = 0}).basis == Basis::kLocal; }));
  const Decision first = AskOne(*store, quota, "k", {.cost = 10, .id = "one"});
  EXPECT_EQ(first.basis, Basis::kLocal);
  EXPECT_EQ(first.remaining, 89U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(AskOne(*store, quota, "k", {.cost = 10, .id = "one"}).remaining, 89U);
  }
  EXPECT_EQ(AskOne(*store, quota, "k", {.cost = 10, .id = "another"}).remaining, 79U);
  redis.Restart();  // empty
  ASSERT_TRUE(
      Eventually([&] { return AskOne(*store, quota, "k", {.cost = 0}).basis == Basis::kStore; }));
  EXPECT_EQ(AskOne(*store, quota, "k", {.cost = 10, .id = "one"}).remaining, 89U);
  EXPECT_TRUE(Eventually([&] { return AskOne(*store, quota, "k", {.cost = 0}).remaining == 80U; }));
}

TEST(StoreFailure, ReservationsWithoutRedisAreSettledHere) {
  const auto store = WithoutRedis();
  const SharedQuota* const quota = Bound(*store, kSlow);
  SharedAsk ask{.quota = quota, .key = "k", .cost = 50};
  SharedRequest request{.asks = {&ask, 1}};
  store->Reserve(request, 50, seconds(60), "token");
  ASSERT_TRUE(ask.decision.allowed());
  const SharedSettlement settled = store->Settle("token", 20);
  EXPECT_EQ(settled.outcome, SettleOutcome::kSettled);
  EXPECT_EQ(settled.given_back, 30U);
  EXPECT_EQ(AskOne(*store, quota, "k", {.cost = 0}).remaining, 80U);
  EXPECT_EQ(store->Settle("token", 20).outcome, SettleOutcome::kAlreadySettled);
  EXPECT_NE(store->Settle("another", 20).trouble, StoreTrouble::kNone);
}

TEST(StoreFailure, GoesOnWhereTheStoreWasAndTellsItWhatItMissed) {
  RedisProcess redis({.config = {"appendonly yes", "appendfsync always"}});
  RedisOptions options = Hasty(UrlOf(redis));
  options.nodes = 2;
  Told told;
  options.on_event = told.hook();
  const auto store = Open(options);
  const SharedQuota* const quota = Bound(*store, kSlow);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(AskOne(*store, quota, "k").basis, Basis::kStore);
  }
  redis.Kill();
  // A question on its way while the connection ends may have been counted: not this test's matter.
  ASSERT_TRUE(Eventually([&] { return store->Stats().away; }));
  uint64_t admitted = 0;
  for (int i = 0; i < 100; ++i) {
    const Decision decision = AskOne(*store, quota, "k");
    EXPECT_EQ(decision.basis, Basis::kLocal);
    admitted += decision.allowed() ? 1 : 0;
  }
  EXPECT_EQ(admitted, 20U);  // half of the 40 that were left
  EXPECT_TRUE(store->Stats().away);
  redis.Restart();
  // Nobody asks for the key: the store is told by itself.
  EXPECT_TRUE(Eventually([&] { return store->Stats().repaid_units == 20; }));
  EXPECT_TRUE(Eventually([&] { return !store->Stats().away; }));
  const Decision again = AskOne(*store, quota, "k", {.cost = 0});
  EXPECT_EQ(again.basis, Basis::kStore);
  EXPECT_GE(told.Count("trouble"), 1U) << told.all();
  EXPECT_LE(told.Count("trouble"), 3U) << told.all();  // once for each change, not for each request
}

TEST(StoreFailure, TheFirstQuestionAfterAnOutageBringsWhatIsOwed) {
  RedisProcess redis({});
  const auto store = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kSlow);
  AskOne(*store, quota, "k");
  redis.Kill();
  const auto asked_there = [&](Decision& decision) {
    decision = AskOne(*store, quota, "k", {.cost = 0});
    return decision.basis == Basis::kStore;
  };
  Decision decision;
  ASSERT_TRUE(Eventually([&] { return !asked_there(decision); }));
  EXPECT_EQ(AskOne(*store, quota, "k", {.cost = 40}).basis, Basis::kLocal);
  redis.Restart();  // empty
  EXPECT_TRUE(Eventually([&] { return asked_there(decision); }));
  EXPECT_EQ(decision.remaining, 60U);
}

TEST(StoreFailure, ASilentStoreCostsADeadlineAndThenNothing) {
  RedisProcess redis({});
  RedisOptions options = Hasty(UrlOf(redis));
  options.timeout = milliseconds(20);
  const auto store = Open(options);
  const SharedQuota* const quota = Bound(*store, kSlow);
  ASSERT_TRUE(Eventually([&] { return AskOne(*store, quota, "k").basis == Basis::kStore; }));
  redis.Pause();
  uint64_t timeouts = 0;
  for (int i = 0; i < 2000; ++i) {
    StoreTrouble trouble = StoreTrouble::kNone;
    EXPECT_EQ(AskOne(*store, quota, "k", {.trouble = &trouble}).basis, Basis::kLocal);
    timeouts += trouble == StoreTrouble::kTimeout ? 1 : 0;
  }
  EXPECT_LE(timeouts, 20U);  // the breaker is open after five
  EXPECT_GT(store->Stats().troubles[static_cast<size_t>(StoreTrouble::kBreakerOpen)], 1900U);
  redis.Continue();
  EXPECT_TRUE(Eventually([&] { return AskOne(*store, quota, "k").basis == Basis::kStore; }));
}

// Who returns first does not get what the others have admitted and not told yet.
TEST(StoreFailure, AfterASilenceANodeGoesOnWithItsShareUntilTheOthersMustBeBack) {
  RedisProcess redis({});
  RedisOptions options = Hasty(UrlOf(redis));
  options.timeout = milliseconds(100);
  options.nodes = 2;
  const auto store = Open(options);
  const SharedQuota* const quota = Bound(*store, kSlow);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(AskOne(*store, quota, "k").basis, Basis::kStore);
  }
  redis.Pause();
  uint32_t admitted = 0;
  for (int i = 0; i < 100; ++i) {
    admitted += AskOne(*store, quota, "k").allowed() ? 1 : 0;
  }
  EXPECT_EQ(admitted, 20U);  // half of the 40 that were left
  redis.Continue();
  Decision returned;
  ASSERT_TRUE(Eventually([&] {
    returned = AskOne(*store, quota, "k", {.cost = 0});
    return returned.basis == Basis::kStore;
  }));
  EXPECT_GE(returned.remaining, 20U);  // the other half, which nobody has asked for
  EXPECT_FALSE(AskOne(*store, quota, "k").allowed());
  EXPECT_EQ(AskOne(*store, quota, "k").basis, Basis::kLocal);
  EXPECT_EQ(AskOne(*store, quota, "stranger").basis, Basis::kStore);
  // Then it is exact again.
  EXPECT_TRUE(Eventually([&] { return AskOne(*store, quota, "k").allowed(); }));
  EXPECT_EQ(AskOne(*store, quota, "k").basis, Basis::kStore);
}

TEST(StoreFailure, AWrongPasswordIsToldAndRecoveredFrom) {
  RedisProcess redis({.config = {"requirepass right"}, .wait_for_ping = false});
  RedisOptions options = Hasty("redis://:wrong@" + redis.address());
  options.start_wait = milliseconds(50);
  Told told;
  options.on_event = told.hook();
  const auto store = Open(options);
  const SharedQuota* const quota = Bound(*store, kSlow);
  EXPECT_EQ(AskOne(*store, quota, "k").basis, Basis::kLocal);
  EXPECT_TRUE(Eventually([&] { return told.Count("trouble password") >= 1; })) << told.all();
  EXPECT_EQ(told.Count("wrong"), 0U) << told.all();  // not the password itself
  testing::RedisAdmin admin(redis.port());
  admin.Ask({"AUTH", "right"});
  admin.Ask({"CONFIG", "SET", "requirepass", "wrong"});
  EXPECT_TRUE(Eventually([&] { return AskOne(*store, quota, "k").basis == Basis::kStore; }));
}

TEST(StoreFailure, AFullStoreIsAwayAndNotADenial) {
  RedisProcess redis({});
  const auto store = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kSlow);
  ASSERT_EQ(AskOne(*store, quota, "k").basis, Basis::kStore);
  redis.Ask({"CONFIG", "SET", "maxmemory", "1"});
  StoreTrouble trouble = StoreTrouble::kNone;
  const Decision decision = AskOne(*store, quota, "k", {.trouble = &trouble});
  EXPECT_EQ(decision.basis, Basis::kLocal);
  EXPECT_TRUE(decision.allowed());
  EXPECT_EQ(trouble, StoreTrouble::kOutOfMemory);
  redis.Ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(Eventually([&] { return AskOne(*store, quota, "k").basis == Basis::kStore; }));
}

TEST(StoreFailure, AKeyOfTheWrongTypeIsPolicyAndNotACrash) {
  RedisProcess redis({});
  const auto store = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kSlow);
  ASSERT_EQ(AskOne(*store, quota, "k").basis, Basis::kStore);
  const std::string name = redis.Ask({"KEYS", "weir:*"});
  redis.Ask({"DEL", name});
  redis.Ask({"LPUSH", name, "not ours"});
  StoreTrouble trouble = StoreTrouble::kNone;
  EXPECT_EQ(AskOne(*store, quota, "k", {.trouble = &trouble}).basis, Basis::kLocal);
  EXPECT_EQ(trouble, StoreTrouble::kWrongType);
}

TEST(StoreFailure, AStoreThatEvictsIsRefusedUnlessAllowed) {
  RedisProcess redis({.config = {"maxmemory 100mb", "maxmemory-policy allkeys-lru"}});
  RedisOptions options = Patient(UrlOf(redis));
  const auto refused = FleetStore::Create(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("allkeys-lru"), std::string::npos);
  EXPECT_NE(refused.error().message.find("noeviction"), std::string::npos);
  options.allow_eviction = true;
  EXPECT_TRUE(FleetStore::Create(options));
}

// Replies are lost after the store has done its work. With ids everything that was admitted is
// charged once, whoever decided, and nothing else is.
void ExpectChargesOfWhatWasAdmitted(OnStoreFailure on_failure) {
  constexpr uint32_t kBurst = 2000;
  constexpr const char* kQuota = "2000/365d burst 2000";
  RedisProcess redis({});
  testing::FaultProxy proxy({.upstream = redis.address()});
  const auto store = Open(Hasty("redis://127.0.0.1:" + std::to_string(proxy.port())));
  const auto direct = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kQuota);
  const SharedQuota* const same = Bound(*direct, kQuota);
  uint32_t admitted = 0;
  for (int i = 0; i < 200; ++i) {
    proxy.Set({.drop_share = 0.05});
    const Decision decision = AskOne(
        *store, quota, "k", {.on_failure = on_failure, .id = "request " + std::to_string(i)});
    admitted += decision.allowed() ? 1 : 0;
    proxy.Set({});
    ASSERT_TRUE(
        Eventually([&] { return AskOne(*store, quota, "k", {.cost = 0}).basis == Basis::kStore; }));
  }
  EXPECT_GT(proxy.counts().dropped, 0U);
  const auto left = [&] { return AskOne(*direct, same, "k", {.cost = 0}).remaining; };
  EXPECT_TRUE(Eventually([&] { return left() == kBurst - admitted; }))
      << left() << " left, " << admitted << " admitted, " << proxy.counts().dropped << " lost";
}

TEST(StoreFailure, WithIdsLostRepliesChargeWhatWasAdmittedHere) {
  ExpectChargesOfWhatWasAdmitted(OnStoreFailure::kLocal);
}

TEST(StoreFailure, WithIdsLostRepliesChargeNothingThatWasRefused) {
  ExpectChargesOfWhatWasAdmitted(OnStoreFailure::kDeny);
}

// The reply is lost, the client is refused and asks again elsewhere: whether that comes before or
// after the first charge is undone, what was admitted is charged once.
TEST(StoreFailure, AnIdThatIsAskedAgainIsChargedAlthoughItsFirstChargeIsUndone) {
  constexpr uint32_t kIds = 20;
  RedisProcess redis({});
  testing::FaultProxy proxy({.upstream = redis.address()});
  const auto store = Open(Hasty("redis://127.0.0.1:" + std::to_string(proxy.port())));
  const auto direct = Open(Hasty(UrlOf(redis)));
  const SharedQuota* const quota = Bound(*store, kSlow);
  const SharedQuota* const same = Bound(*direct, kSlow);
  const auto ask_in_vain = [&](const char* key, const std::string& id) {
    ASSERT_TRUE(Eventually(
        [&] { return AskOne(*store, quota, "probe", {.cost = 0}).basis == Basis::kStore; }));
    proxy.Set({.drop_share = 1});
    const AskOptions options{.on_failure = OnStoreFailure::kDeny, .id = id};
    EXPECT_EQ(AskOne(*store, quota, key, options).basis, Basis::kClosed);
  };
  const auto left = [&](const char* key) {
    return AskOne(*direct, same, key, {.cost = 0}).remaining;
  };
  for (uint32_t i = 0; i < kIds; ++i) {
    const std::string id = "request " + std::to_string(i);
    ask_in_vain("k", id);
    EXPECT_TRUE(AskOne(*direct, same, "k", {.id = id}).allowed());
    proxy.Set({});
  }
  ask_in_vain("given up", "the last");
  EXPECT_EQ(left("given up"), 99U);
  proxy.Set({});
  ASSERT_TRUE(Eventually([&] { return left("given up") == 100U; }));  // and with it all before it
  EXPECT_EQ(left("k"), 100U - kIds);
  EXPECT_TRUE(AskOne(*direct, same, "given up", {.id = "the last"}).allowed());
  EXPECT_EQ(left("given up"), 99U);
}

TEST(StoreFailure, OptionsThatAreNotAllowedAreNamed) {
  const auto error = [](RedisOptions options) {
    options.start_wait = {};
    const auto made = FleetStore::Create(options);
    return made ? std::string() : made.error().message;
  };
  EXPECT_NE(error({.url = "http://localhost"}), "");
  EXPECT_NE(error({.nodes = 0}).find("nodes"), std::string::npos);
  EXPECT_NE(error({.memory_bytes = 10}).find("memory"), std::string::npos);
  EXPECT_NE(error({.denial_memory = seconds(-1)}).find("denial_memory"), std::string::npos);
  EXPECT_NE(error({.id_memory = {}}).find("id_memory"), std::string::npos);
}

}  // namespace
}  // namespace weir::shared
