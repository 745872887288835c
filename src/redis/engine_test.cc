#include "redis/engine_test.h"

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

constexpr std::string_view kSha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

TEST_F(EngineTest, GreetsWithEverythingItWasTold) {
  Make("redis://alice:secret@h:7/2?name=node-1");
  ASSERT_EQ(host.lines.size(), 1U);
  EXPECT_EQ(line(0).address, "h:7");
  line(0).Open();
  EXPECT_EQ(line(0).Commands(), Strings{"HELLO 3 AUTH alice secret SETNAME node-1"});
  line(0).Say(kHello);
  EXPECT_EQ(line(0).Commands(), (Strings{"SELECT 2", "INFO memory"}));
  EXPECT_FALSE(engine->ready());
  line(0).Say("+OK\r\n" + Info("allkeys-lru", "100"));
  EXPECT_TRUE(engine->ready());
  const NodeStatus node = engine->status().nodes.at(0);
  EXPECT_EQ(node.version, "7.0.0");
  EXPECT_EQ(node.policy, "allkeys-lru");
  EXPECT_TRUE(node.evicts);
  EXPECT_EQ(Troubles(Event::Kind::kWarning), std::vector{Trouble::kEvicts});
  EXPECT_NE(host.events[0].text.find("noeviction"), std::string::npos);
}

TEST_F(EngineTest, FallsBackToTheOldProtocol) {
  Make("redis://:secret@h");
  line(0).Open();
  (void)line(0).Commands();
  line(0).Say("-ERR unknown command `HELLO`\r\n");
  EXPECT_EQ(line(0).Commands(), (Strings{"AUTH secret", "CLIENT SETNAME weir"}));
  line(0).Say("+OK\r\n+OK\r\n");
  EXPECT_EQ(line(0).Commands(), (Strings{"ROLE", "INFO memory"}));
  line(0).Say("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" + Info());
  EXPECT_TRUE(engine->ready());
}

TEST_F(EngineTest, AllCallsOfATurnLeaveInOneWriteAndAnswersGoByPosition) {
  Make("redis://h");
  Greet(line(0));
  const int writes = line(0).writes;
  Probed calls[3];
  Get(calls[0], "a");
  Get(calls[1], "b");
  Eval(calls[2], "c");
  EXPECT_EQ(line(0).writes, writes);  // not before the turn ends
  Turn();
  EXPECT_EQ(line(0).writes, writes + 1);
  EXPECT_EQ(line(0).Commands(),
            (Strings{"GET a", "GET b", "EVALSHA " + std::string(kSha) + " 1 c 7"}));
  line(0).Say("$1\r\nA\r\n$1\r\nB\r\n:3");
  EXPECT_EQ(calls[0].value, "A");
  EXPECT_EQ(calls[1].value, "B");
  EXPECT_EQ(calls[2].ended, 0);
  line(0).Say("3\r\n");
  EXPECT_EQ(calls[2].value, "33");
  EXPECT_EQ(engine->status().nodes[0].in_flight, 0U);
}

TEST_F(EngineTest, WhoAsksAgainWhenAnsweredIsSentWithTheOthersOfThatRead) {
  Make("redis://h?connections=2");
  Greet(line(0));
  Greet(line(1));
  Probed calls[4];
  Probed next[2];
  for (Probed& call : calls) {
    Get(call, "a");
  }
  Turn();
  (void)line(0).Commands();
  const int writes = line(0).writes;
  calls[0].then = [&] { Get(next[0], "b"); };
  calls[2].then = [&] { Get(next[1], "c"); };
  line(0).Say("$1\r\nA\r\n$1\r\nA\r\n");
  EXPECT_EQ(line(0).writes, writes + 1);  // before the turn ends
  EXPECT_EQ(line(0).Commands(), (Strings{"GET b", "GET c"}));
  Turn();
  EXPECT_EQ(line(0).writes, writes + 1);
}

TEST_F(EngineTest, ALateAnswerIsDroppedByItsPosition) {
  Make("redis://h");
  Greet(line(0));
  Probed late;
  Probed next;
  Get(late, "a");
  Advance(milliseconds(9));
  EXPECT_EQ(late.ended, 0);
  Advance(milliseconds(3));
  ASSERT_TRUE(late.failed);
  EXPECT_EQ(late.failed->kind, FailureKind::kTimeout);
  EXPECT_TRUE(late.failed->may_have_run);
  EXPECT_EQ(engine->status().nodes[0].in_flight, 1U);  // its place is kept
  Get(next, "b");
  Turn();
  line(0).Say("$4\r\nlate\r\n");
  EXPECT_EQ(next.ended, 0);
  line(0).Say("$4\r\nnext\r\n");
  EXPECT_EQ(next.value, "next");
  EXPECT_EQ(late.ended, 1);
  EXPECT_EQ(engine->status().nodes[0].late_replies, 1U);
}

TEST_F(EngineTest, ACallThatGoesTakesNoAnswer) {
  Make("redis://h");
  Greet(line(0));
  Probed stays;
  {
    Probed gone;
    Get(gone, "a");
    Get(stays, "b");
    Turn();
  }
  line(0).Say("$1\r\nA\r\n$1\r\nB\r\n");
  EXPECT_EQ(stays.value, "B");
}

TEST_F(EngineTest, ACallHasItsOwnDeadlineIfItWantsOne) {
  Make("redis://h");
  Greet(line(0));
  Probed quick;
  Probed slow;
  Get(quick, "a", milliseconds(2));
  Get(slow, "b", milliseconds(500));
  Advance(milliseconds(4));
  EXPECT_TRUE(quick.failed);
  Advance(milliseconds(480));
  EXPECT_EQ(slow.ended, 0);
  Advance(milliseconds(20));
  EXPECT_TRUE(slow.failed);
}

TEST_F(EngineTest, AnUnknownScriptIsSentWithItsTextAlsoInsideAPipeline) {
  Make("redis://h");
  Greet(line(0));
  Probed calls[3];
  Eval(calls[0], "a");
  Get(calls[1], "b");
  Eval(calls[2], "c");
  Turn();
  (void)line(0).Commands();
  line(0).Say("-NOSCRIPT No matching script.\r\n$1\r\nB\r\n-NOSCRIPT No matching script.\r\n");
  Turn();
  EXPECT_EQ(line(0).Commands(), (Strings{"EVAL return 1 1 a 7", "EVAL return 1 1 c 7"}));
  line(0).Say(":1\r\n:2\r\n");
  EXPECT_EQ(calls[0].value, "1");
  EXPECT_EQ(calls[1].value, "B");
  EXPECT_EQ(calls[2].value, "2");
  EXPECT_EQ(engine->status().nodes[0].no_script, 2U);
}

TEST_F(EngineTest, PastTheLimitACallFailsAtOnceButNotInsideSubmit) {
  Make("redis://h?in-flight=2");
  Greet(line(0));
  Probed calls[3];
  for (Probed& call : calls) {
    Get(call, "k");
  }
  EXPECT_EQ(calls[2].ended, 0);
  EXPECT_TRUE(calls[2].pending());
  Turn();
  ASSERT_TRUE(calls[2].failed);
  EXPECT_EQ(calls[2].failed->kind, FailureKind::kOverloaded);
  EXPECT_FALSE(calls[2].failed->may_have_run);
  EXPECT_EQ(line(0).Commands().size(), 2U);
}

TEST_F(EngineTest, ACallThatIsTooLargeIsRefused) {
  Make("redis://h");
  Greet(line(0));
  Probed call;
  Get(call, std::string(100'000, 'x'));
  Turn();
  EXPECT_EQ(call.failed->kind, FailureKind::kTooLarge);
}

TEST_F(EngineTest, CallsWaitForTheFirstConnectionAndFailAtOnceAfterIt) {
  Make("redis://h");
  Probed early;
  Get(early, "a");
  Turn();
  EXPECT_EQ(early.ended, 0);
  line(0).End(Trouble::kRefused);
  EXPECT_EQ(early.failed->kind, FailureKind::kDisconnected);
  EXPECT_FALSE(early.failed->may_have_run);
  Probed next;
  Get(next, "b");
  Turn();
  EXPECT_EQ(next.failed->kind, FailureKind::kDisconnected);
  EXPECT_EQ(Troubles(), std::vector{Trouble::kRefused});
  Advance(milliseconds(130));
  ASSERT_EQ(host.lines.size(), 2U);  // it tries again by itself
  Greet(last());
  EXPECT_TRUE(engine->ready());
  EXPECT_EQ(host.events.back().kind, Event::Kind::kRecovered);
  Probed good;
  Get(good, "c");
  Turn();
  last().Say("$1\r\nC\r\n");
  EXPECT_EQ(good.value, "C");
}

TEST_F(EngineTest, TriesAtMostTenTimesASecondAndComesBackWithinOne) {
  Make("redis://h");
  Timestamp last_try = clock.Now();
  Duration longest(0);
  const Timestamp begin = clock.Now();
  size_t seen = 0;
  while (clock.Now() < begin + seconds(60)) {
    if (host.lines.size() != seen) {
      seen = host.lines.size();
      longest = std::max(longest, clock.Now() - last_try);
      last_try = clock.Now();
      last().End(Trouble::kRefused);
    }
    Advance(milliseconds(1));
  }
  EXPECT_LT(longest, milliseconds(1000));
  EXPECT_LT(seen, 100U);
  EXPECT_EQ(Troubles(), std::vector{Trouble::kRefused});  // told once
}

TEST_F(EngineTest, WhatWasUnderWayWhenTheConnectionEndedMayHaveRun) {
  Make("redis://h");
  Greet(line(0));
  Probed call;
  Get(call, "a");
  Turn();
  line(0).End();
  EXPECT_EQ(call.failed->kind, FailureKind::kDisconnected);
  EXPECT_TRUE(call.failed->may_have_run);
  EXPECT_EQ(line(0).user, nullptr);
}

TEST_F(EngineTest, ASilentServerOpensTheBreakerAndProbesCloseIt) {
  Make("redis://h");
  Greet(line(0));
  FallSilent();
  EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kOpen);
  Probed refused;
  Get(refused, "k");
  Turn();
  EXPECT_EQ(refused.failed->kind, FailureKind::kBreakerOpen);
  Advance(milliseconds(1000));  // nothing was heard: the connection is given up
  EXPECT_EQ(line(0).user, nullptr);
  Advance(milliseconds(130));
  ASSERT_EQ(host.lines.size(), 2U);
  Greet(line(1));
  EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kOpen);
  Advance(milliseconds(8500));
  Probed still;
  Get(still, "k");
  Turn();
  EXPECT_EQ(still.failed->kind, FailureKind::kBreakerOpen);
  for (int probes = 0; probes < 3; ++probes) {
    for (int ms = 0; ms < 3000 && line(1).sent.empty(); ++ms) {
      Advance(milliseconds(1));
    }
    ASSERT_EQ(line(1).Commands(), Strings{"PING"});  // one at a time
    line(1).Say("+PONG\r\n");
  }
  EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kClosed);
  EXPECT_EQ(engine->status().nodes[0].breaker_transitions, 2U);
  // Others may leave it alone for a while yet.
  EXPECT_TRUE(engine->IsSettling("k"));
  Advance(std::chrono::seconds(3));
  EXPECT_FALSE(engine->IsSettling("k"));
  Probed good;
  Get(good, "k");
  Turn();
  line(1).Say("$1\r\nA\r\n");
  EXPECT_EQ(good.value, "A");
}

TEST_F(EngineTest, ManyCallsThatAreLateTogetherAreNoSilence) {
  Make("redis://h");
  Greet(line(0));
  Probed calls[100];
  for (Probed& call : calls) {
    Get(call, "k");
  }
  Advance(milliseconds(12));
  for (Probed& call : calls) {
    ASSERT_TRUE(call.failed);
    EXPECT_EQ(call.failed->kind, FailureKind::kTimeout);
    line(0).Say("$1\r\nA\r\n");  // late
  }
  EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kClosed);
  Probed good;
  Get(good, "k");
  Turn();
  line(0).Say("$1\r\nB\r\n");
  EXPECT_EQ(good.value, "B");
}

// A call each 25 ms; of five, `late` are answered 20 ms after they were asked.
class LateAnswers : public EngineTest, public ::testing::WithParamInterface<int> {
 protected:
  bool OpensWithin(Duration time) {
    const Timestamp end = clock.Now() + time;
    for (int i = 0; clock.Now() < end; ++i) {
      Probed call;
      Get(call, "k");
      Advance(milliseconds(i % 5 < GetParam() ? 20 : 1));
      line(0).Say("$1\r\nA\r\n");
      EXPECT_EQ(call.ended, 1);
      if (engine->status().nodes[0].breaker != BreakerState::kClosed) {
        return true;
      }
      Advance(milliseconds(i % 5 < GetParam() ? 5 : 24));
    }
    return false;
  }
};

class MostAnswersAreLate : public LateAnswers {};
INSTANTIATE_TEST_SUITE_P(OfFive, MostAnswersAreLate, ::testing::Values(3, 4, 5));
TEST_P(MostAnswersAreLate, OpensTheBreakerWithinASecond) {
  Make("redis://h");
  Greet(line(0));
  EXPECT_TRUE(OpensWithin(milliseconds(1000)));
}

class FewAnswersAreLate : public LateAnswers {};
INSTANTIATE_TEST_SUITE_P(OfFive, FewAnswersAreLate, ::testing::Values(0, 1, 2));
TEST_P(FewAnswersAreLate, LeavesTheBreakerClosed) {
  Make("redis://h");
  Greet(line(0));
  EXPECT_FALSE(OpensWithin(std::chrono::seconds(20)));
}

// A machine that stood still for longer than a moment.
TEST_F(EngineTest, ANodeThatSpeaksAgainIsAskedAtOnceTheFirstTime) {
  Make("redis://h");
  Greet(line(0));
  for (int round = 0; round < 2; ++round) {
    FallSilent();
    ASSERT_EQ(engine->status().nodes[0].breaker, BreakerState::kOpen);
    for (size_t i = line(0).Commands().size(); i > 0; --i) {
      EXPECT_EQ(line(0).sent, "") << "it has not answered everything";
      line(0).Say("$1\r\nA\r\n");
      Turn();
    }
    if (round == 1) {
      EXPECT_EQ(line(0).sent, "");  // again, so soon: it is left alone
      return;
    }
    for (int probes = 0; probes < 3; ++probes) {
      ASSERT_EQ(line(0).Commands(), Strings{"PING"});
      line(0).Say("+PONG\r\n");
      Advance(milliseconds(25));
    }
    EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kClosed);
  }
}

TEST_F(EngineTest, AProbeWithoutAnswerKeepsItOpen) {
  Make("redis://h");
  Greet(line(0));
  FallSilent();
  for (size_t i = line(0).Commands().size(); i > 0; --i) {
    line(0).Say("$1\r\nA\r\n");
  }
  Turn();
  EXPECT_EQ(line(0).Commands(), Strings{"PING"});
  Advance(milliseconds(100));
  EXPECT_EQ(engine->status().nodes[0].breaker, BreakerState::kOpen);
  EXPECT_EQ(engine->status().nodes[0].breaker_transitions, 1U);
}

TEST_F(EngineTest, ErrorsAreToldByKindOnceAndWhenTheyEnd) {
  Make("redis://h");
  Greet(line(0));
  const auto ask = [&](std::string_view answer) {
    Probed call;
    Get(call, "k");
    Turn();
    line(0).Say(answer);
    EXPECT_EQ(call.ended, 1);
    return call.failed ? call.failed->server : ServerError::kNone;
  };
  EXPECT_EQ(ask("-LOADING Redis is loading the dataset in memory\r\n"), ServerError::kLoading);
  EXPECT_EQ(ask("-LOADING Redis is loading the dataset in memory\r\n"), ServerError::kLoading);
  EXPECT_EQ(ask("$1\r\nA\r\n"), ServerError::kNone);
  EXPECT_EQ(host.events.back().kind, Event::Kind::kTrouble);  // one answer proves nothing
  Advance(seconds(1));
  EXPECT_EQ(ask("$1\r\nA\r\n"), ServerError::kNone);
  EXPECT_EQ(host.events.back().kind, Event::Kind::kRecovered);
  EXPECT_EQ(ask("-NOPERM this user has no permissions to run the 'evalsha' command\r\n"),
            ServerError::kNoPermission);
  EXPECT_EQ(ask("$1\r\nA\r\n"), ServerError::kNone);
  EXPECT_EQ(host.events.back().kind, Event::Kind::kTrouble);  // one answer proves nothing
  Advance(seconds(1));
  EXPECT_EQ(ask("$1\r\nA\r\n"), ServerError::kNone);
  EXPECT_EQ(host.events.back().kind, Event::Kind::kRecovered);
  EXPECT_EQ(ask("-OOM command not allowed when used memory > 'maxmemory'.\r\n"),
            ServerError::kOutOfMemory);
  EXPECT_EQ(Troubles(),
            (std::vector{Trouble::kLoading, Trouble::kPermission, Trouble::kOutOfMemory}));
  size_t recovered = 0;
  for (const Event& event : host.events) {
    recovered += event.kind == Event::Kind::kRecovered ? 1 : 0;
    EXPECT_EQ(event.text.find('\n'), std::string::npos);
  }
  EXPECT_EQ(recovered, 2U);
}

// The node serves others meanwhile: no trouble of its own, and nothing that ends.
TEST_F(EngineTest, WhatConcernsSomeKeysOnlyIsToldOnceByKind) {
  Make("redis://h");
  Greet(line(0));
  const std::pair<std::string, Trouble> cases[] = {
      {"WRONGTYPE Operation against a key holding the wrong kind of value", Trouble::kWrongType},
      {"WEIRSTATE the key holds a state that this version of weir does not know",
       Trouble::kUnknownState},
      {"ERR syntax error script: 7a1d, on @user_script:52.", Trouble::kError}};
  std::vector<Trouble> expected;
  for (const auto& [text, trouble] : cases) {
    for (int i = 0; i < 20; ++i) {
      Probed call;
      Get(call, "k");
      Turn();
      line(0).Say("-" + text + "\r\n");
      EXPECT_EQ(call.ended, 1);
    }
    expected.push_back(trouble);
    EXPECT_EQ(Troubles(Event::Kind::kWarning), expected);
    EXPECT_NE(host.events.back().text.find(text), std::string::npos);
  }
  EXPECT_EQ(host.events.size(), 3U);
  EXPECT_EQ(engine->status().nodes[0].trouble, Trouble::kNone);
}

TEST_F(EngineTest, APolicyThatCannotBeReadIsTold) {
  Make("redis://h");
  line(0).Open();
  line(0).Say(kHello);
  line(0).Say("-NOPERM this user has no permissions to run the 'info' command\r\n");
  EXPECT_EQ(Troubles(Event::Kind::kWarning), std::vector{Trouble::kPolicyUnknown});
  EXPECT_TRUE(engine->ready());
}

TEST_F(EngineTest, AWrongPasswordIsNamedAndTriedAgain) {
  Make("redis://:wrong@h");
  line(0).Open();
  line(0).Say("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(Troubles(), std::vector{Trouble::kPassword});
  EXPECT_EQ(host.events[0].text.find("wrong@"), std::string::npos);
  Advance(milliseconds(1000));
  EXPECT_GE(host.lines.size(), 2U);
}

TEST_F(EngineTest, WhatIsNotRedisIsNamed) {
  Make("redis://h");
  line(0).Open();
  line(0).Say("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(Troubles(), std::vector{Trouble::kNotRedis});
  Make("redis://h");
  last().Open();
  last().Say(std::string_view("\x15\x03\x01\x00\x02\x02\x46\r\n", 9));
  EXPECT_EQ(Troubles().back(), Trouble::kPlainToTls);
}

TEST_F(EngineTest, ARunawayReplyEndsTheConnectionNotTheProgram) {
  Make("redis://h");
  Greet(line(0));
  line(0).Say(":1\r\n");  // to no question
  EXPECT_EQ(Troubles(), std::vector{Trouble::kNotRedis});
  EXPECT_EQ(line(0).user, nullptr);
}

TEST_F(EngineTest, SeveralConnectionsShareTheCalls) {
  Make("redis://h?connections=2");
  ASSERT_EQ(host.lines.size(), 2U);
  Greet(line(0));
  Greet(line(1));
  Probed calls[4];
  for (Probed& call : calls) {
    Get(call, "k");
  }
  Turn();
  EXPECT_EQ(line(0).Commands().size(), 2U);
  EXPECT_EQ(line(1).Commands().size(), 2U);
  line(0).End();  // the other goes on
  line(1).Say("$1\r\nA\r\n$1\r\nB\r\n");
  EXPECT_EQ(calls[1].value + calls[3].value, "AB");
  EXPECT_TRUE(engine->ready());
}

TEST_F(EngineTest, EveryCallIsToldWhenTheClientEnds) {
  Make("redis://h");
  Greet(line(0));
  Probed call;
  Get(call, "k");
  Turn();
  engine.reset();
  EXPECT_EQ(call.failed->kind, FailureKind::kStopped);
  EXPECT_FALSE(call.pending());
}

TEST_F(EngineTest, AListSharesKeysByTheirSlots) {
  Make("redis+list://a,b,c");
  ASSERT_EQ(host.lines.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    Greet(line(i));
  }
  std::vector<std::unique_ptr<Probed>> calls;
  for (int i = 0; i < 60; ++i) {
    calls.push_back(std::make_unique<Probed>());
    Get(*calls.back(), "key" + std::to_string(i));
  }
  Turn();
  size_t sent = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto commands = line(i).Commands();
    EXPECT_GT(commands.size(), 5U);
    sent += commands.size();
    for (const std::string& command : commands) {
      EXPECT_EQ(engine->GroupOf(command.substr(4)), i);
    }
  }
  EXPECT_EQ(sent, 60U);
}

}  // namespace
}  // namespace weir::redis
