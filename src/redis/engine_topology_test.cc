#include "redis/engine_test.h"
#include "redis/slots.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

std::string Bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string Range(int first, int last, const std::string& host) {
  return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n*2\r\n" +
         Bulk(host) + ":6379\r\n";
}

// "foo" is in slot 12182, "bar" in 5061.
class ClusterEngineTest : public EngineTest {
 protected:
  // Two masters, a and b, with a half each; both connected.
  void MakeCluster() {
    Make("redis+cluster://a");
    Greet(line(0));
    Advance(milliseconds(1));
    ASSERT_EQ(line(0).Commands(), Strings{"CLUSTER SLOTS"});
    line(0).Say("*2\r\n" + Range(0, 8191, "a") + Range(8192, 16383, "b"));
    Advance(milliseconds(1));
    ASSERT_EQ(host.lines.size(), 2U);
    EXPECT_EQ(line(1).address, "b:6379");
    Greet(line(1));
    EXPECT_TRUE(engine->ready());
  }
};

TEST_F(ClusterEngineTest, LearnsWhoHasWhichSlot) {
  MakeCluster();
  Probed foo;
  Probed bar;
  Get(foo, "foo");
  Get(bar, "bar");
  Turn();
  EXPECT_EQ(line(0).Commands(), Strings{"GET bar"});
  EXPECT_EQ(line(1).Commands(), Strings{"GET foo"});
  EXPECT_EQ(engine->GroupOf("foo"), SlotOf("foo"));
}

TEST_F(ClusterEngineTest, FollowsMovedAndRemembersIt) {
  MakeCluster();
  Probed call;
  Get(call, "foo");
  Turn();
  (void)line(1).Commands();
  line(1).Say("-MOVED 12182 a:6379\r\n");
  Turn();
  EXPECT_EQ(line(0).Commands(), Strings{"GET foo"});
  line(0).Say("$1\r\nF\r\n");
  EXPECT_EQ(call.value, "F");
  Probed again;
  Get(again, "foo");
  Turn();
  EXPECT_EQ(line(0).Commands(), Strings{"GET foo"});
}

// Whatever the last question was.
TEST_F(ClusterEngineTest, ANodeThatSpeaksAgainIsAskedAtOnceAlsoBehindAQuestionOfOurOwn) {
  Make("redis+cluster://a");
  Greet(line(0));
  Advance(milliseconds(1));
  const std::string slots = "*1\r\n" + Range(0, 16383, "a");
  (void)line(0).Commands();
  line(0).Say(slots);
  Advance(milliseconds(40));
  Probed patient;
  Get(patient, "foo", milliseconds(1000));
  Turn();
  line(0).Say("-MOVED 12182 a:6379\r\n");  // it goes again; slots are asked for in a moment
  Advance(milliseconds(22));
  Probed calls[5];
  for (Probed& call : calls) {
    Get(call, "foo");
    Advance(milliseconds(8));
  }
  Advance(milliseconds(10));
  ASSERT_EQ(engine->status().nodes[0].breaker, BreakerState::kOpen);
  ASSERT_EQ(line(0).Commands().back(), "CLUSTER SLOTS");
  for (int i = 0; i < 6; ++i) {
    line(0).Say("$1\r\nA\r\n");
  }
  Turn();
  EXPECT_EQ(line(0).sent, "");
  line(0).Say(slots);
  Turn();
  EXPECT_EQ(line(0).Commands(), Strings{"PING"});
}

TEST_F(ClusterEngineTest, ManyRedirectionsCostOneRefresh) {
  MakeCluster();
  std::vector<std::unique_ptr<Probed>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::make_unique<Probed>());
    Get(*calls.back(), "foo");
  }
  Turn();
  (void)line(1).Commands();
  const uint64_t before = engine->status().refreshes;
  for (int i = 0; i < 50; ++i) {
    line(1).Say("-MOVED 12182 a:6379\r\n");
  }
  Advance(milliseconds(150));
  EXPECT_EQ(engine->status().refreshes, before + 1);
}

TEST_F(ClusterEngineTest, AskGoesElsewhereOnceWithAskingOnTheSameWrite) {
  MakeCluster();
  Probed call;
  Get(call, "foo");
  Turn();
  (void)line(1).Commands();
  const int writes = line(0).writes;
  line(1).Say("-ASK 12182 a:6379\r\n");
  Turn();
  EXPECT_EQ(line(0).writes, writes + 1);
  EXPECT_EQ(line(0).Commands(), (Strings{"ASKING", "GET foo"}));
  line(0).Say("+OK\r\n$1\r\nF\r\n");
  EXPECT_EQ(call.value, "F");
  Probed next;
  Get(next, "foo");
  Turn();
  EXPECT_EQ(line(1).Commands(), Strings{"GET foo"});  // its owner is still the same
}

TEST_F(ClusterEngineTest, TriesAgainThreeTimesAndNoMore) {
  MakeCluster();
  Probed call;
  Get(call, "foo", milliseconds(100));
  Turn();
  int sent = 0;
  for (int ms = 0; ms < 50; ++ms) {
    for (const std::string& command : line(1).Commands()) {
      EXPECT_EQ(command, "GET foo");
      ++sent;
      line(1).Say("-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    }
    Advance(milliseconds(1));
  }
  EXPECT_EQ(sent, 4);
  EXPECT_EQ(call.failed->server, ServerError::kTryAgain);
  EXPECT_FALSE(call.failed->may_have_run);
}

TEST_F(ClusterEngineTest, ARetryThatSucceedsIsOneAnswer) {
  MakeCluster();
  Probed call;
  Get(call, "foo");
  Turn();
  (void)line(1).Commands();
  line(1).Say("-TRYAGAIN later\r\n");
  Advance(milliseconds(3));
  EXPECT_EQ(line(1).Commands(), Strings{"GET foo"});
  line(1).Say("$1\r\nF\r\n");
  EXPECT_EQ(call.value, "F");
  EXPECT_EQ(call.ended, 1);
}

TEST_F(ClusterEngineTest, AnEndlessCircleOfRedirectionsEnds) {
  MakeCluster();
  Probed call;
  Get(call, "foo", milliseconds(500));
  Turn();
  int sent = 0;
  for (int i = 0; i < 20; ++i) {
    for (size_t node = 0; node < 2; ++node) {
      for (const std::string& command : line(node).Commands()) {
        if (command == "GET foo") {
          ++sent;
          line(node).Say(node == 0 ? "-MOVED 12182 b:6379\r\n" : "-MOVED 12182 a:6379\r\n");
        } else {
          line(node).Say("-ERR busy\r\n");
        }
      }
    }
    Advance(milliseconds(1));
  }
  EXPECT_EQ(sent, 6 + 3);  // from one to the next, then three times again after a pause
  EXPECT_EQ(call.failed->server, ServerError::kMoved);
  EXPECT_FALSE(call.failed->may_have_run);
}

TEST_F(ClusterEngineTest, AMasterThatDiesIsReplacedByWhatTheOthersSay) {
  MakeCluster();
  line(1).End();
  Probed lost;
  Get(lost, "foo");
  Turn();
  EXPECT_EQ(lost.failed->kind, FailureKind::kDisconnected);
  Advance(milliseconds(110));
  ASSERT_EQ(line(0).Commands(), Strings{"CLUSTER SLOTS"});
  line(0).Say("*2\r\n" + Range(0, 8191, "a") + Range(8192, 16383, "c"));
  Advance(milliseconds(1));
  ASSERT_EQ(last().address, "c:6379");
  Greet(last());
  EXPECT_TRUE(engine->ready());
  Probed call;
  Get(call, "foo");
  Turn();
  EXPECT_EQ(last().Commands(), Strings{"GET foo"});
  const Status status = engine->status();
  EXPECT_EQ(status.nodes.size(), 2U);
}

TEST_F(ClusterEngineTest, ASlotThatNobodyHasFailsAtOnce) {
  Make("redis+cluster://a");
  Greet(line(0));
  Advance(milliseconds(1));
  line(0).Say("*1\r\n" + Range(0, 8191, "a"));
  Probed call;
  Get(call, "foo");
  Turn();
  EXPECT_EQ(call.failed->kind, FailureKind::kNoNode);
  EXPECT_FALSE(engine->ready());
}

TEST_F(ClusterEngineTest, WhatIsNoClusterIsNamed) {
  Make("redis+cluster://a");
  Greet(line(0));
  Advance(milliseconds(1));
  line(0).Say("-ERR This instance has cluster support disabled\r\n");
  EXPECT_EQ(Troubles(), std::vector{Trouble::kNoCluster});
}

TEST_F(EngineTest, WhyTheSlotsAreNotToldIsNamedByKind) {
  Make("redis+cluster://a");
  Greet(line(0));
  Advance(milliseconds(1));
  line(0).Say("-LOADING Redis is loading the dataset in memory\r\n");
  EXPECT_EQ(Troubles(), std::vector{Trouble::kLoading});
  Advance(milliseconds(600));
  line(0).Say("-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n");
  EXPECT_EQ(Troubles(), (std::vector{Trouble::kLoading, Trouble::kPermission}));
}

TEST_F(ClusterEngineTest, ARedirectionToNobodyIsTriedAgainWhenTheSlotsAreKnown) {
  MakeCluster();
  Advance(milliseconds(200));
  Probed call;
  Get(call, "foo");
  Turn();
  (void)line(1).Commands();
  line(1).Say("-MOVED 12182 ?:6379\r\n");
  Advance(milliseconds(2));
  EXPECT_EQ(call.ended, 0);
  EXPECT_EQ(engine->status().nodes.size(), 2U);  // none that is called ?
  const std::vector<std::string> asked = line(0).Commands();
  const std::vector<std::string> again = line(1).Commands();
  EXPECT_EQ(std::count(asked.begin(), asked.end(), "CLUSTER SLOTS") +
                std::count(again.begin(), again.end(), "CLUSTER SLOTS"),
            1);
  EXPECT_EQ(std::count(again.begin(), again.end(), "GET foo"), 1);
}

TEST_F(ClusterEngineTest, ARedirectionIsNoWayAroundTheLimitOfCallsInFlight) {
  MakeCluster();
  std::vector<std::unique_ptr<Probed>> calls;
  const auto fill = [&](std::string_view key) {
    for (int i = 0; i < 128; ++i) {
      calls.push_back(std::make_unique<Probed>());
      Get(*calls.back(), key);
    }
  };
  fill("foo");
  fill("bar");
  Turn();
  EXPECT_EQ(line(0).Commands().size(), 128U);
  line(1).Say("-ASK 12182 a:6379\r\n");
  Turn();
  ASSERT_TRUE(calls.front()->failed);
  EXPECT_EQ(calls.front()->failed->kind, FailureKind::kOverloaded);
  EXPECT_FALSE(calls.front()->failed->may_have_run);
  EXPECT_EQ(line(0).Commands().size(), 0U);
}

// Back before it is connected: its connecting goes on, and calls wait for it.
TEST_F(ClusterEngineTest, ANodeThatReturnsWhileItConnectsIsNotGivenUp) {
  MakeCluster();
  const auto tell = [&](const std::string& slots) {
    Advance(milliseconds(200));
    Probed call;
    Get(call, "bar");
    Turn();
    (void)line(0).Commands();
    line(0).Say("-MOVED 5061 a:6379\r\n");
    Advance(milliseconds(2));
    for (Line* const asked : {&line(0), &line(1)}) {
      for (const std::string& command : asked->Commands()) {
        asked->Say(command == "CLUSTER SLOTS" ? slots : "$1\r\nA\r\n");
      }
    }
    Advance(Duration(0));
  };
  tell("*3\r\n" + Range(0, 8191, "a") + Range(8192, 12000, "b") + Range(12001, 16383, "c"));
  ASSERT_EQ(host.lines.size(), 3U);
  EXPECT_EQ(line(2).address, "c:6379");
  line(2).Open();  // and is being greeted
  const std::string without = "*2\r\n" + Range(0, 8191, "a") + Range(8192, 16383, "b");
  tell(without);
  tell("*3\r\n" + Range(0, 8191, "a") + Range(8192, 12000, "b") + Range(12001, 16383, "c"));
  Probed call;
  Get(call, "foo", std::chrono::seconds(1));
  Turn();
  EXPECT_EQ(call.ended, 0);
  ASSERT_EQ(host.lines.size(), 3U);
  line(2).Say(kHello);
  line(2).Say(Info());
  Turn();
  EXPECT_EQ(line(2).Commands().back(), "GET foo");
}

TEST_F(EngineTest, AClusterAskedAsASingleServerIsNamed) {
  Make("redis://a");
  Greet(line(0));
  Probed call;
  Get(call, "foo");
  Turn();
  line(0).Say("-MOVED 12182 b:6379\r\n");
  EXPECT_EQ(call.failed->server, ServerError::kMoved);
  EXPECT_EQ(Troubles(), std::vector{Trouble::kIsCluster});
}

class SentinelEngineTest : public EngineTest {
 protected:
  void GreetSentinel(Line& line) {
    line.Open();
    ASSERT_EQ(line.Commands().size(), 1U);
    line.Say(kHello);
    Turn();
    ASSERT_EQ(line.Commands(), Strings{"SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"});
  }
  void Answer(Line& line, const std::string& host_name) {
    line.Say("*2\r\n" + Bulk(host_name) + Bulk("6379"));
    Turn();
  }
};

TEST_F(SentinelEngineTest, FindsTheMasterAndFollowsASwitch) {
  Make("redis+sentinel://s1,s2,s3/mymaster");
  ASSERT_EQ(host.lines.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    GreetSentinel(line(i));
    Answer(line(i), "m1");
    EXPECT_EQ(line(i).Commands(), Strings{"SUBSCRIBE +switch-master"});
    line(i).Say(">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
  }
  Advance(milliseconds(1));
  ASSERT_EQ(host.lines.size(), 4U);
  EXPECT_EQ(line(3).address, "m1:6379");
  Greet(line(3));
  EXPECT_TRUE(engine->ready());
  line(0).Say(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n" + Bulk("other m1 6379 m9 6379"));
  EXPECT_EQ(host.lines.size(), 4U);
  line(0).Say(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n" +
              Bulk("mymaster m1 6379 m2 6379"));
  Advance(milliseconds(1));
  ASSERT_EQ(host.lines.size(), 5U);
  EXPECT_EQ(line(4).address, "m2:6379");
  EXPECT_EQ(line(3).user, nullptr);  // the old one has nothing to do any more
  Greet(line(4));
  Probed call;
  Get(call, "foo");
  Turn();
  EXPECT_EQ(line(4).Commands(), Strings{"GET foo"});
  EXPECT_EQ(engine->status().topology_changes, 2U);
}

TEST_F(SentinelEngineTest, TheMajorityOfSentinelsDecides) {
  Make("redis+sentinel://s1,s2,s3/mymaster");
  for (size_t i = 0; i < 3; ++i) {
    GreetSentinel(line(i));
  }
  Answer(line(0), "old");
  Answer(line(1), "new");
  EXPECT_EQ(engine->status().topology_changes, 1U);  // at odds: whom we have
  Answer(line(2), "new");
  EXPECT_EQ(engine->status().topology_changes, 2U);
  Advance(milliseconds(1));
  EXPECT_EQ(last().address, "new:6379");
}

TEST_F(SentinelEngineTest, AReplicaIsNotTakenForTheMaster) {
  Make("redis+sentinel://s1/mymaster");
  GreetSentinel(line(0));
  Answer(line(0), "m1");
  Advance(milliseconds(1));
  line(1).Open();
  line(1).Say("%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n");
  line(1).Say(Info());
  EXPECT_EQ(line(1).user, nullptr);
  EXPECT_FALSE(engine->ready());
  EXPECT_EQ(Troubles(), std::vector{Trouble::kReadOnly});
  Probed call;
  Get(call, "k");
  Turn();
  EXPECT_EQ(call.failed->kind, FailureKind::kDisconnected);  // at once
}

TEST_F(SentinelEngineTest, AnUnknownNameIsNamed) {
  Make("redis+sentinel://s1/mymaster");
  GreetSentinel(line(0));
  line(0).Say("_\r\n");
  EXPECT_EQ(Troubles(), std::vector{Trouble::kNoMaster});
  Probed call;
  Get(call, "k");
  Turn();
  EXPECT_EQ(call.failed->kind, FailureKind::kNoNode);
}

}  // namespace
}  // namespace weir::redis
