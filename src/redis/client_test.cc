#include "redis/client_test.h"

#include <fstream>

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FaultProxy;
using testing::RedisProcess;

std::string Url(const RedisProcess& redis, const std::string& rest = "") {
  return "redis://" + redis.address() + rest;
}

// Generous where a test is not about deadlines: the machine may be busy.
constexpr Duration kEasy = seconds(5);

TEST_F(ClientTest, AsksASingleServerByTcpAndByUnixSocket) {
  RedisProcess redis({});
  Make(Url(redis));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(Ask({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Ask({"GET", "k"}), "v");
  EXPECT_EQ(redis.Ask({"CLIENT", "LIST"}).find("name=weir") != std::string::npos, true);
  EXPECT_EQ(client->status().nodes[0].policy, "noeviction");
  Make("unix://" + redis.unix_path() + "?db=1");
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(Ask({"GET", "k"}), "(null)");
}

TEST_F(ClientTest, APasswordThatIsWrongIsNamedAndACorrectedOneWorksByItself) {
  RedisProcess redis({.config = {"requirepass first"}});
  Make("redis://:second@" + redis.address());
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kPassword); }));
  EXPECT_TRUE(Ask({"GET", "k"}).starts_with("-disconnected"));
  testing::RedisAdmin admin(redis.port());
  EXPECT_EQ(admin.Ask({"AUTH", "first"}), "OK");
  EXPECT_EQ(admin.Ask({"CONFIG", "SET", "requirepass", "second"}), "OK");
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_TRUE(Recovered());
  EXPECT_EQ(Ask({"GET", "k"}), "(null)");
}

TEST_F(ClientTest, AnAclUserWithoutEvalshaIsNamedAndServedOnceAllowed) {
  RedisProcess redis({.config = {"user alice on >pw ~weir:* +@all -evalsha -eval"}});
  Make("redis://alice:pw@" + redis.address());
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  Tally tally;
  Crowd crowd(context, *client, 1, tally, kEasy);
  EXPECT_TRUE(Until([&] { return tally.failed >= 1; }));
  EXPECT_TRUE(Saw(Trouble::kPermission));
  EXPECT_NE(events.back().text.find("+evalsha"), std::string::npos);
  EXPECT_EQ(redis.Ask({"ACL", "SETUSER", "alice", "+evalsha", "+eval"}), "OK");
  EXPECT_TRUE(Until([&] { return tally.good >= 1; }));
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
}

TEST_F(ClientTest, RedisMayBeAbsentAtFirst) {
  const uint16_t port = testing::FreePort();
  Make("redis://127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kRefused); }));
  EXPECT_TRUE(Ask({"GET", "k"}).starts_with("-disconnected"));
  RedisProcess redis({.config = {}, .port = port});
  EXPECT_TRUE(Until([&] { return client->ready(); }, seconds(2)));
  EXPECT_EQ(Ask({"GET", "k"}), "(null)");
  EXPECT_LT(client->status().nodes[0].connects, 40U);
}

// As in a container that has used up its share of the processor: Redis answered in time. The loop
// looks at its sockets before its timers.
TEST_F(ClientTest, WhatWasAnsweredWhileThisProcessStoodStillIsNotGivenUp) {
  RedisProcess redis({});
  Make(Url(redis));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  One one;
  Submit(one, {"SET", "k", "v"}, milliseconds(50));
  const Timestamp deadline = SystemClock().Now() + milliseconds(50);
  context.restart();
  context.poll();
  while (SystemClock().Now() < deadline + milliseconds(10) || redis.Ask({"GET", "k"}) != "v") {
  }
  ASSERT_TRUE(Until([&] { return one.done; }));
  EXPECT_EQ(one.answer, "OK");
}

TEST_F(ClientTest, ARestartIsSurvivedByItself) {
  RedisProcess redis({});
  Make(Url(redis));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  Tally tally;
  Crowd crowd(context, *client, 32, tally, kEasy);
  ASSERT_TRUE(Until([&] { return tally.good > 100; }));
  redis.Kill();
  ASSERT_TRUE(Until([&] { return tally.failed > 100; }));
  redis.Restart();
  const uint64_t before = tally.good;
  EXPECT_TRUE(Until([&] { return tally.good > before + 100; }));
  EXPECT_EQ(tally.mismatched, 0U);
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  // What was under way once, for each of them: no more is unknown than were in flight.
  EXPECT_LE(tally.may_have_run, 32U);
}

TEST_F(ClientTest, ForgottenScriptsCostNobodyAnAnswer) {
  RedisProcess redis({});
  Make(Url(redis));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  Tally tally;
  Crowd crowd(context, *client, 64, tally, kEasy);
  testing::RedisAdmin admin(redis.port());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(admin.Ask({"SCRIPT", "FLUSH", "SYNC"}), "OK");
    const uint64_t before = tally.good;
    EXPECT_TRUE(Until([&] { return tally.good > before + 200; }));
  }
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  EXPECT_EQ(tally.failed, 0U) << tally.last_text;
  EXPECT_EQ(tally.mismatched, 0U);
  EXPECT_GT(client->status().nodes[0].no_script, 0U);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(redis.Ask({"GET", Crowd::KeyOf(i)}), std::to_string(crowd.books()[i].answered));
  }
}

TEST_F(ClientTest, AStoppedRedisCostsADeadlineAndThenNothing) {
  RedisProcess redis({});
  Make(Url(redis, "?timeout=100ms"));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  Tally tally;
  Crowd crowd(context, *client, 16, tally);
  ASSERT_TRUE(Until([&] { return tally.good > 100; }));
  redis.Pause();
  ASSERT_TRUE(
      Until([&] { return tally.by_kind[static_cast<size_t>(FailureKind::kBreakerOpen)] > 100; }));
  EXPECT_EQ(client->status().nodes[0].breaker, BreakerState::kOpen);
  EXPECT_LE(tally.by_kind[static_cast<size_t>(FailureKind::kTimeout)], 32U);
  redis.Continue();
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  EXPECT_TRUE(Until([&] { return client->ready(); }));  // a probe finds it well
  EXPECT_EQ(Ask({"PING"}), "PONG");
  EXPECT_EQ(tally.mismatched, 0U);
}

TEST_F(ClientTest, LateAndLostAnswersAreNeverTakenForOthers) {
  RedisProcess redis({});
  FaultProxy proxy({.upstream = redis.address()});
  // The breaker has its own tests; here it would keep the crowd from the faults.
  Options options = *Options::Parse("redis://127.0.0.1:" + std::to_string(proxy.port()) +
                                    "?timeout=20ms&connections=4");
  options.breaker.consecutive_failures = 1'000'000;
  options.breaker.calls_min = 1'000'000;
  Make(options);
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  proxy.Set({.delay_share = 0.01,
             .delay_min_ms = 20,
             .delay_max_ms = 60,
             .drop_share = 0.002,
             .reorder_share = 0.02,
             .reorder_max_ms = 5});
  Tally tally;
  Crowd crowd(context, *client, 32, tally);
  ASSERT_TRUE(Until([&] {
    const testing::FaultCounts counts = proxy.counts();
    return tally.good > 5000 && counts.dropped > 5 && counts.delayed > 20 && counts.reordered > 5;
  }));
  proxy.Set({});
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  EXPECT_EQ(tally.mismatched, 0U);
  EXPECT_GT(client->status().nodes[0].late_replies, 0U);
  ASSERT_TRUE(Until([&] { return Ask({"PING"}) == "PONG"; }));
  for (size_t i = 0; i < 32; ++i) {
    // Never more than one charge a call: what was answered, and some of what was not.
    const Crowd::Books& books = crowd.books()[i];
    const std::string stored = redis.Ask({"GET", Crowd::KeyOf(i)});
    const uint64_t charged = stored == "(null)" ? 0 : std::stoull(stored);
    EXPECT_GE(charged, books.answered);
    EXPECT_LE(charged, books.answered + books.unknown);
  }
}

TEST_F(ClientTest, AHalfOpenConnectionIsGivenUpAndReplaced) {
  RedisProcess redis({});
  FaultProxy proxy({.upstream = redis.address()});
  Make("redis://127.0.0.1:" + std::to_string(proxy.port()) + "?timeout=50ms&connect-timeout=300ms");
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  proxy.Set({.half_open = true});
  EXPECT_TRUE(Ask({"GET", "k"}).starts_with("-"));
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kSilent); }));
  proxy.Set({});
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(Ask({"GET", "k"}), "(null)");
}

TEST_F(ClientTest, AFullMemoryIsNamedAndEndsByItself) {
  RedisProcess redis({.config = {"maxmemory 1"}});
  Make(Url(redis));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_TRUE(Ask({"SET", "k", "v"}).starts_with("-server OOM"));
  EXPECT_TRUE(Saw(Trouble::kOutOfMemory));
  EXPECT_EQ(redis.Ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_TRUE(Until([&] { return Ask({"SET", "k", "v"}) == "OK" && Recovered(); }));
}

TEST_F(ClientTest, AnEvictingPolicyIsReported) {
  RedisProcess redis({.config = {"maxmemory 100mb", "maxmemory-policy allkeys-lru"}});
  Make(Url(redis));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_TRUE(client->status().nodes[0].evicts);
  EXPECT_TRUE(Saw(Trouble::kEvicts));
}

TEST_F(ClientTest, AReplicaIsNamed) {
  RedisProcess master({});
  RedisProcess replica({.config = {"replicaof 127.0.0.1 " + std::to_string(master.port())}});
  Make(Url(replica));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_TRUE(Ask({"SET", "k", "v"}).starts_with("-server READONLY"));
  EXPECT_TRUE(Saw(Trouble::kReadOnly));
}

TEST_F(ClientTest, AListOfInstancesSharesTheKeys) {
  RedisProcess first({});
  RedisProcess second({});
  Make("redis+list://" + first.address() + "," + second.address());
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Ask({"SET", "k" + std::to_string(i), "v"}), "OK");
  }
  const int in_first = std::stoi(first.Ask({"DBSIZE"}));
  EXPECT_GT(in_first, 5);
  EXPECT_EQ(in_first + std::stoi(second.Ask({"DBSIZE"})), 50);
}

TEST_F(ClientTest, NamesAreResolvedAndUnknownOnesNamed) {
  RedisProcess redis({});
  Make("redis://localhost:" + std::to_string(redis.port()));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  Make("redis://no-such-host.invalid");
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kUnresolved); }));
}

}  // namespace
}  // namespace weir::redis
