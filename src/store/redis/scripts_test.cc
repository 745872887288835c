// Named cases of the scripts, in an embedded Lua: what the random traces of tests/conformance do
// not name.
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/redis/charge_call.h"
#include "store/redis/other_calls.h"
#include "testing/lua_host.h"
#include "testing/random.h"

namespace weir::script {
namespace {

using testing::LuaHost;
using testing::ScriptQuestion;
using testing::ScriptReply;

constexpr int64_t kStart = 1'780'000'000'000'000;
constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kPhase = int64_t{1} << 26;  // lua/bucket.lua

class Scripts : public ::testing::Test {
 protected:
  Scripts() { host_.SetTime(now_); }

  static SharedPlan PlanOf(const std::string& quota) {
    return *SharedPlan::Compile(*Quota::Parse(quota));
  }
  static Digest KeyOf(const SharedPlan& plan, std::string_view text = "key") {
    return KeySecret("secret").Of(1, plan.kind(), text);
  }

  void Move(int64_t us) { host_.SetTime(now_ += us); }

  ScriptReply Run(Id id, std::span<const std::string_view> keys,
                  std::span<const std::string_view> arguments) {
    const ScriptQuestion question{
        id, {keys.begin(), keys.end()}, {arguments.begin(), arguments.end()}};
    return host_.Run({&question, 1})[0];
  }

  ScriptReply Run(const SmallCall& call) {
    const std::string_view key = call.key;
    std::vector<std::string_view> texts(call.texts.begin(), call.texts.begin() + call.count);
    return Run(call.script, {&key, 1}, texts);
  }

  Decision Charge(Ask ask, Mark* mark = nullptr, const CallOptions& options = {}) {
    CallOptions around = options;
    around.around_us = now_;
    call_.Encode({&ask, 1}, around);
    const ScriptReply reply = Run(call_.script(), call_.keys(), call_.arguments());
    EXPECT_EQ(reply.error, "");
    Decision decision;
    Mark unused;
    EXPECT_EQ(call_.Decode(reply.integers, {&decision, 1}, {mark != nullptr ? mark : &unused, 1}),
              Reading::kDone);
    return decision;
  }

  Decision Charge(const SharedPlan& plan, uint64_t cost = 1, Mark* mark = nullptr) {
    return Charge({.plan = &plan, .key = KeyOf(plan), .cost = cost}, mark);
  }

  uint32_t GiveBack(const SharedPlan& plan, const Mark& mark) {
    const Paid paid{&plan, KeyOf(plan), mark};
    GiveBackCall call;
    call.Encode({&paid, 1});
    uint32_t units = 0;
    EXPECT_TRUE(
        call.Decode(Run(call.script(), call.keys(), call.arguments()).integers, {&units, 1}));
    return units;
  }

  uint32_t Undo(const SharedPlan& plan, const Mark& mark, const Digest& id, const Claim& claim) {
    const Paid paid{&plan, KeyOf(plan), mark};
    GiveBackCall call;
    call.EncodeUndo({&paid, 1}, {.key = KeyOf(plan), .id = id}, claim, now_);
    uint32_t units = 0;
    EXPECT_TRUE(
        call.Decode(Run(call.script(), call.keys(), call.arguments()).integers, {&units, 1}));
    return units;
  }

  std::string Get(const SharedPlan& plan) {
    return host_.redis().Run({"GET", std::string(KeyName::OfState(KeyOf(plan)).view())}).text;
  }

  LuaHost host_;
  ChargeCall call_;
  int64_t now_ = kStart;
};

TEST_F(Scripts, TheUsualBucketIsAnInteger) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  EXPECT_TRUE(Charge(plan).allowed());
  constexpr int64_t kEvenPhase = 2'700'000'000'000'000;
  EXPECT_EQ(Get(plan), std::to_string(kStart + 100'000 + kEvenPhase) + "501");
  Move(kPhase);
  EXPECT_TRUE(Charge(plan).allowed());
  EXPECT_EQ(Get(plan), std::to_string(kStart + kPhase + 100'000 + 2 * kEvenPhase) + "501");
}

TEST_F(Scripts, ABucketOfMoreThanAPhaseIsAnIntegerWithoutOne) {
  const SharedPlan plan = PlanOf("100/h burst 100");
  EXPECT_TRUE(Charge(plan).allowed());
  EXPECT_EQ(Get(plan), std::to_string(kStart + 36 * kSecond) + "636");
}

// The key's end is set once a phase, by whichever quota comes first.
TEST_F(Scripts, AStateInItsPhaseOutlivesEveryChargeOfIt) {
  const SharedPlan small = PlanOf("1/s burst 5");
  const SharedPlan large = PlanOf("1/s burst 66");
  const std::string name(KeyName::OfState(KeyOf(small)).view());
  testing::Random random(20261116);
  size_t admitted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Move(static_cast<int64_t>(random.Scaled(1, 100 * kSecond)));
    if (random.OneIn(50)) {
      Move(-static_cast<int64_t>(random.Scaled(1, 300 * kSecond)));
    }
    const SharedPlan& plan = random.OneIn(2) ? small : large;
    const Decision decision = Charge(plan, random.Between(1, plan.law().burst));
    admitted += decision.allowed() ? 1 : 0;
    const int64_t left_ms = host_.redis().Run({"PTTL", name}).integer;
    ASSERT_GE(left_ms * 1'000'000, decision.reset_after.count() + 998'000'000) << "step " << i;
    ASSERT_LE(left_ms, 2 * kPhase / 1000 + 300'000) << "step " << i;
  }
  EXPECT_GT(admitted, 5'000U);
}

TEST_F(Scripts, AKeyWithoutAnEndGetsOneInTheNextPhase) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  EXPECT_TRUE(Charge(plan).allowed());
  host_.redis().Run({"PERSIST", std::string(KeyName::OfState(KeyOf(plan)).view())});
  Move(kPhase);
  EXPECT_TRUE(Charge(plan).allowed());
  EXPECT_EQ(host_.redis().CountWithoutTtl(), 0U);
}

TEST_F(Scripts, AShortReplySaysTheSame) {
  const SharedPlan plan = PlanOf("10/s burst 3");
  const Ask one{.plan = &plan, .key = KeyOf(plan, "one")};
  const Ask other{.plan = &plan, .key = KeyOf(plan, "other")};
  testing::Random random(20261117);
  for (int i = 0; i < 1000; ++i) {
    Move(static_cast<int64_t>(random.Scaled(1, kSecond)));
    Mark mark;
    const Decision expected = Charge(one, &mark);
    EXPECT_EQ(mark.charged, expected.charged);
    const Decision got = Charge(other, &mark, {.marks = false});
    EXPECT_EQ(mark.charged, 0U);
    EXPECT_EQ(got.outcome, expected.outcome) << i;
    EXPECT_EQ(got.charged, expected.charged) << i;
    EXPECT_EQ(got.remaining, expected.remaining) << i;
    EXPECT_EQ(got.retry_after, expected.retry_after) << i;
    EXPECT_EQ(got.reset_after, expected.reset_after) << i;
  }
}

TEST_F(Scripts, ARateThatNoMicrosecondDividesIsExact) {
  const SharedPlan plan = PlanOf("3/s burst 3");
  EXPECT_EQ(plan.law().subdivision, 3U);
  EXPECT_TRUE(Charge(plan, 3).allowed());
  Move(333'333);
  EXPECT_FALSE(Charge(plan).allowed());
  Move(1);
  EXPECT_TRUE(Charge(plan).allowed());
  // Three intervals are a second, not three microseconds more.
  Move(2 * kSecond - 333'334);
  EXPECT_EQ(Charge(plan, 0).reset_after, Duration::zero());
}

TEST_F(Scripts, AnIdIsChargedOnceAndAnsweredAlike) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  const Digest id = KeySecret("secret").OfName("request 1");
  const Ask ask{.plan = &plan, .key = KeyOf(plan), .cost = 5};
  const Decision first = Charge(ask, nullptr, {.id = &id});
  EXPECT_FALSE(call_.repeated());
  Move(kSecond / 100);
  const Decision again = Charge(ask, nullptr, {.id = &id});
  EXPECT_TRUE(call_.repeated());
  EXPECT_EQ(again.remaining, first.remaining);
  EXPECT_EQ(again.charged, 5U);
  EXPECT_EQ(Charge(plan, 0).remaining, 15U);
  // Another id is another charge; a forgotten one is too.
  const Digest other = KeySecret("secret").OfName("request 2");
  Charge(ask, nullptr, {.id = &other});
  EXPECT_FALSE(call_.repeated());
  Move(61 * kSecond);
  Charge(ask, nullptr, {.id = &id});
  EXPECT_FALSE(call_.repeated());
}

TEST_F(Scripts, WhatIsUndoneIsChargedAnew) {
  for (const char* const text : {"10/s burst 20", "20/min fixed-window", "20/min sliding-log"}) {
    const SharedPlan plan = PlanOf(text);
    const Digest id = KeySecret("secret").OfName(text);
    const Ask ask{.plan = &plan, .key = KeyOf(plan), .cost = 5};
    Mark mark;
    Charge(ask, &mark, {.id = &id, .claim = Claim(1)});
    EXPECT_EQ(Undo(plan, mark, id, Claim(2)), 0U) << text;  // not its own
    EXPECT_EQ(Undo(plan, mark, id, Claim(1)), 5U) << text;
    EXPECT_EQ(Undo(plan, mark, id, Claim(1)), 0U) << text;
    EXPECT_EQ(Charge(plan, 0).remaining, 20U) << text;
    Charge(ask, nullptr, {.id = &id, .claim = Claim(3)});
    EXPECT_FALSE(call_.repeated()) << text;
    EXPECT_EQ(Charge(plan, 0).remaining, 15U) << text;
  }
}

TEST_F(Scripts, WhatOthersWereToldIsNotUndone) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  const Digest id = KeySecret("secret").OfName("request");
  const Ask ask{.plan = &plan, .key = KeyOf(plan), .cost = 5};
  Mark mark;
  Charge(ask, &mark, {.id = &id, .claim = Claim(1)});
  Charge(ask, nullptr, {.id = &id, .claim = Claim(1)});
  EXPECT_TRUE(call_.repeated());
  Charge(ask, nullptr, {.id = &id, .claim = Claim(2), .tells_nobody = true});
  EXPECT_TRUE(call_.repeated());
  Charge(ask, nullptr, {.id = &id, .claim = Claim(2)});
  EXPECT_TRUE(call_.repeated());
  EXPECT_EQ(Undo(plan, mark, id, Claim(1)), 0U);
  EXPECT_EQ(Undo(plan, mark, id, Claim(2)), 0U);
  EXPECT_EQ(Charge(ask, nullptr, {.id = &id, .claim = Claim(1)}).charged, 5U);
  EXPECT_TRUE(call_.repeated());
  EXPECT_EQ(Charge(plan, 0).remaining, 15U);
  Move(61 * kSecond);  // the record kept its time
  Charge(ask, nullptr, {.id = &id});
  EXPECT_FALSE(call_.repeated());
}

TEST_F(Scripts, WhatIsAskedForTheRecordsSakeMayBeUndone) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  const Digest id = KeySecret("secret").OfName("request");
  const Ask ask{.plan = &plan, .key = KeyOf(plan), .cost = 5};
  Mark mark;
  Charge(ask, &mark, {.id = &id, .claim = Claim(1), .tells_nobody = true});
  EXPECT_EQ(Undo(plan, mark, id, Claim(1)), 5U);
  Charge(ask, &mark, {.id = &id, .claim = Claim(1)});
  Charge(ask, nullptr, {.id = &id, .claim = Claim(2), .tells_nobody = true});
  EXPECT_EQ(Undo(plan, mark, id, Claim(1)), 5U);
}

TEST_F(Scripts, WhatWasDeniedUnderAnIdMayBeAdmittedLater) {
  const SharedPlan plan = PlanOf("1/s burst 1");
  const Digest id = KeySecret("secret").OfName("request");
  const Ask ask{.plan = &plan, .key = KeyOf(plan)};
  EXPECT_TRUE(Charge(plan).allowed());
  EXPECT_FALSE(Charge(ask, nullptr, {.id = &id}).allowed());
  Move(kSecond);
  EXPECT_TRUE(Charge(ask, nullptr, {.id = &id}).allowed());
}

TEST_F(Scripts, ARaiseNeverDenies) {
  const SharedPlan slow = PlanOf("10/min burst 10");
  const SharedPlan fast = PlanOf("700/min burst 10");  // an interval of no whole microseconds
  EXPECT_TRUE(Charge(slow, 9).allowed());
  const Decision raised = Charge(fast);
  EXPECT_TRUE(raised.allowed());
  EXPECT_EQ(raised.remaining, 0U);
  // And back: as many units are owed as before.
  EXPECT_FALSE(Charge(slow).allowed());
  EXPECT_EQ(Charge(slow, 0).remaining, 0U);
}

TEST_F(Scripts, NodesWithOldAndNewRulesShareOneBucket) {
  const SharedPlan slow = PlanOf("10/s burst 10");
  const SharedPlan fast = PlanOf("20/s burst 10");
  uint64_t admitted = 0;
  for (int i = 0; i < 10'000; ++i) {  // ten seconds, a request every millisecond on each
    Move(1000);
    admitted += Charge(slow).charged;
    admitted += Charge(fast).charged;
  }
  EXPECT_LE(admitted, 20U * 10 + 10);
  EXPECT_GE(admitted, 10U * 10);
}

TEST_F(Scripts, AWindowKeepsItsCountUnderAnotherLimit) {
  const SharedPlan low = PlanOf("10/min fixed-window");
  const SharedPlan high = PlanOf("20/min fixed-window");
  const SharedPlan hour = PlanOf("100/h fixed-window");
  EXPECT_TRUE(Charge(low, 10).allowed());
  EXPECT_EQ(Charge(high, 0).remaining, 10U);
  EXPECT_TRUE(Charge(high, 5).allowed());
  EXPECT_FALSE(Charge(low).allowed());
  // Other windows: the share that is in use, 15 of 20.
  EXPECT_EQ(Charge(hour, 0).remaining, 25U);
}

TEST_F(Scripts, AClockSetBackLocksNobodyOut) {
  const std::vector<std::string> quotas = {"10/s burst 10",
                                           "3/s burst 10",
                                           "gap 1s",
                                           "10/min fixed-window",
                                           "10/min",
                                           "10/min sliding-log",
                                           "10/min sliced-window slices 6",
                                           "concurrency 10 lease 60s",
                                           "10/s burst 10 queue"};
  for (const std::string& text : quotas) {
    for (const int64_t back : {kSecond, 3600 * kSecond, 10 * 365 * 86'400 * kSecond}) {
      const SharedPlan plan = PlanOf(text);
      const Digest key = KeyOf(plan, std::to_string(back));
      const Ask ask{.plan = &plan, .key = key, .mode = ChargeMode::kUpTo};
      Ask all = ask;
      all.cost = plan.law().burst;
      const int64_t before = now_;
      EXPECT_TRUE(Charge(all).allowed());
      const int64_t horizon = Charge(ask).reset_after.count() / 1000;
      Move(-back);
      const Decision denied = Charge(ask);
      EXPECT_FALSE(denied.allowed()) << text;
      const int64_t wait = denied.retry_after.count() / 1000;
      EXPECT_LE(wait, horizon + std::min(back, 2 * horizon)) << text << " back " << back;
      // And that it is written down: it passes.
      Move(wait);
      EXPECT_TRUE(Charge(ask).allowed()) << text << " back " << back;
      Move(before - now_ + 200 * 86'400 * kSecond);
    }
  }
}

TEST_F(Scripts, AKeyWithoutAnEndGetsOne) {
  for (const char* const text :
       {"1/h burst 1", "gap 1h", "1/h fixed-window", "1/h", "1/h sliding-log",
        "1/h sliced-window slices 60", "concurrency 1 lease 1h"}) {
    const SharedPlan plan = PlanOf(text);
    const std::string name(KeyName::OfState(KeyOf(plan)).view());
    EXPECT_TRUE(Charge(plan).allowed());
    host_.redis().Run({"PERSIST", name});
    EXPECT_EQ(host_.redis().CountWithoutTtl(), 1U);
    EXPECT_FALSE(Charge(plan).allowed());
    EXPECT_EQ(host_.redis().CountWithoutTtl(), 0U) << text;
  }
}

TEST_F(Scripts, AStateLivesUntilItIsFresh) {
  for (const char* const text : {"5000/day burst 5000", "gap 3h", "10/day fixed-window", "10/h",
                                 "10/h sliding-log", "10/h sliced-window slices 4", "10/month"}) {
    const SharedPlan plan = PlanOf(text);
    const Decision decision = Charge(plan, plan.counts_units() ? plan.law().burst : 1);
    EXPECT_TRUE(decision.allowed()) << text;
    const std::string name(KeyName::OfState(KeyOf(plan)).view());
    EXPECT_GE(host_.redis().Run({"PTTL", name}).integer * 1'000'000, decision.reset_after.count())
        << text;
    Move(400 * 86'400 * kSecond);  // the next one begins anew
  }
}

TEST_F(Scripts, GivesBackWhatIsOwedAndNoMore) {
  const SharedPlan plan = PlanOf("1/s burst 2");
  Mark first;
  Mark second;
  EXPECT_TRUE(Charge(plan, 1, &first).allowed());
  EXPECT_TRUE(Charge(plan, 1, &second).allowed());
  EXPECT_EQ(GiveBack(plan, first), 1U);
  EXPECT_TRUE(Charge(plan).allowed());
  Move(kSecond + kSecond / 2);
  // What it paid for has been used by now, since the first one's time became its own.
  EXPECT_EQ(GiveBack(plan, second), 0U);
}

TEST_F(Scripts, HoldsHaveGrowingFencesAndEndOnce) {
  const SharedPlan plan = PlanOf("concurrency 1 lease 10s");
  Mark first;
  EXPECT_TRUE(Charge(plan, 1, &first).allowed());
  EXPECT_FALSE(Charge(plan).allowed());
  EXPECT_EQ(GiveBack(plan, first), 1U);
  EXPECT_EQ(GiveBack(plan, first), 0U);
  EXPECT_EQ(host_.redis().CountWithoutTtl(), 0U);
  Move(-5 * kSecond);  // a fence grows even if the clock does not
  Mark second;
  EXPECT_TRUE(Charge(plan, 1, &second).allowed());
  EXPECT_GT(second.words[0], first.words[0]);
  // Reset ends it, and the next fence is larger still.
  EXPECT_EQ(Run(ResetCall(KeyOf(plan))).integers, std::vector<int64_t>{1});
  Mark third;
  EXPECT_TRUE(Charge(plan, 1, &third).allowed());
  EXPECT_GT(third.words[0], second.words[0]);
}

TEST_F(Scripts, ALeaseIsRenewedWhileItLasts) {
  const SharedPlan plan = PlanOf("concurrency 1 lease 10s");
  Mark mark;
  EXPECT_TRUE(Charge(plan, 1, &mark).allowed());
  Move(9 * kSecond);
  const Paid hold{&plan, KeyOf(plan), mark};
  EXPECT_EQ(Run(RenewCall(hold, 10 * kSecond)).integers[0], 1);
  Move(9 * kSecond);
  EXPECT_FALSE(Charge(plan).allowed());
  Move(kSecond);
  EXPECT_EQ(Run(RenewCall(hold, 10 * kSecond)).integers[0], 0);
  EXPECT_TRUE(Charge(plan).allowed());
}

TEST_F(Scripts, AReservationIsSettledOnceAndToldAgain) {
  const Digest token = KeySecret("secret").OfName("token");
  const std::string name(KeyName::OfReservation(token).view());
  EXPECT_EQ(ReadSettled(Run(SettleCall(token, 7)).text).reading, SettleReading::kGone);
  host_.redis().Run({"SET", name, OpenRecord("receipts"), "PX", "60000", "NX"});
  const std::string kept = Run(KeepCall(token, 90'000)).text;
  EXPECT_EQ(ReadSettled(kept).record, "receipts");
  const std::string open = Run(SettleCall(token, 7)).text;
  EXPECT_EQ(ReadSettled(open).reading, SettleReading::kOpen);
  EXPECT_EQ(ReadSettled(open).record, "receipts");
  EXPECT_EQ(ReadSettled(open).lasts_ms, 90'000U);
  Move(30 * kSecond);
  const std::string again = Run(SettleCall(token, 9)).text;
  const SettledRecord before = ReadSettled(again);
  EXPECT_EQ(before.reading, SettleReading::kSettledBefore);
  EXPECT_EQ(before.actual, 7U);
  EXPECT_EQ(before.record, "receipts");
  EXPECT_EQ(before.lasts_ms, 60'000U);
  Move(61 * kSecond);
  EXPECT_EQ(ReadSettled(Run(SettleCall(token, 9)).text).reading, SettleReading::kGone);
}

TEST_F(Scripts, ACopyOfAReservationCountsOnlyIfTheStoreHasNone) {
  const UnsureRecord copy{.record = "copy", .lasts_ms = 60'000};
  const Digest token = KeySecret("secret").OfName("token");
  const std::string name(KeyName::OfReservation(token).view());
  const std::string settled = Run(SettleCall(token, 7, &copy)).text;
  EXPECT_EQ(ReadSettled(settled).reading, SettleReading::kOpen);
  EXPECT_EQ(ReadSettled(settled).record, "copy");
  // The one that was on its way comes too late.
  host_.redis().Run({"SET", name, OpenRecord("receipts"), "PX", "60000", "NX"});
  const std::string again = Run(SettleCall(token, 9)).text;
  EXPECT_EQ(ReadSettled(again).reading, SettleReading::kSettledBefore);
  EXPECT_EQ(ReadSettled(again).record, "copy");

  const Digest other = KeySecret("secret").OfName("other");
  host_.redis().Run({"SET", std::string(KeyName::OfReservation(other).view()),
                     OpenRecord("receipts"), "PX", "60000", "NX"});
  const std::string there = Run(SettleCall(other, 7, &copy)).text;
  EXPECT_EQ(ReadSettled(there).record, "receipts");
}

TEST_F(Scripts, WhatIsGivenBackUnderAnIdIsGivenBackOnce) {
  const SharedPlan plan = PlanOf("10/day");
  Mark mark;
  EXPECT_TRUE(Charge(plan, 6, &mark).allowed());
  const Digest id = KeySecret("secret").OfName("id");
  for (int i = 0; i < 3; ++i) {
    GiveBackCall call;
    Paid paid{&plan, KeyOf(plan), mark};
    paid.mark.charged = 2;
    call.EncodeOnce({&paid, 1}, {.key = paid.key, .id = id}, 60'000);
    uint32_t units = 0;
    const ScriptReply reply = Run(call.script(), call.keys(), call.arguments());
    ASSERT_TRUE(call.Decode(reply.integers, {&units, 1}));
    EXPECT_EQ(units, 2U);
  }
  EXPECT_EQ(Charge(plan, 0).remaining, 6U);
}

TEST_F(Scripts, ACalendarPeriodIsTheStoresNotTheCallers) {
  const SharedPlan plan = PlanOf("10/day calendar");
  const Ask ask{.plan = &plan, .key = KeyOf(plan)};
  call_.Encode({&ask, 1}, {.around_us = now_ + 40 * 86'400 * kSecond});  // a wrong clock
  Decision decision;
  ScriptReply reply = Run(call_.script(), call_.keys(), call_.arguments());
  EXPECT_EQ(call_.Decode(reply.integers, {&decision, 1}), Reading::kAgain);
  call_.Encode({&ask, 1});
  reply = Run(call_.script(), call_.keys(), call_.arguments());
  EXPECT_EQ(call_.Decode(reply.integers, {&decision, 1}), Reading::kDone);
  EXPECT_EQ(decision.remaining, 9U);
}

TEST_F(Scripts, AStrangersStateIsAnErrorAndNotTouched) {
  const SharedPlan plan = PlanOf("10/min fixed-window");
  const std::string name(KeyName::OfState(KeyOf(plan)).view());
  host_.redis().Run({"SET", name, "\x7fsomething newer", "PX", "1000"});
  const Ask ask{.plan = &plan, .key = KeyOf(plan)};
  call_.Encode({&ask, 1});
  const ScriptReply reply = Run(call_.script(), call_.keys(), call_.arguments());
  EXPECT_TRUE(reply.error.starts_with("WEIRSTATE")) << reply.error;
  EXPECT_EQ(Get(plan), "\x7fsomething newer");
}

TEST_F(Scripts, WhatIsNoReplyIsToldApart) {
  const SharedPlan plan = PlanOf("10/s burst 20");
  const Ask ask{.plan = &plan, .key = KeyOf(plan)};
  call_.Encode({&ask, 1});
  Decision decision;
  const auto read = [&](std::vector<int64_t> reply) { return call_.Decode(reply, {&decision, 1}); };
  EXPECT_EQ(read({}), Reading::kBad);
  EXPECT_EQ(read({1}), Reading::kBad);
  EXPECT_EQ(read({1, kStart}), Reading::kBad);
  EXPECT_EQ(read({1, kStart, kStart, 0}), Reading::kBad);
  EXPECT_EQ(read({7, kStart, kStart, 0, 0}), Reading::kBad);
  // A denial of what the law admits.
  EXPECT_EQ(read({0, kStart, kStart, 0, 0}), Reading::kBad);
  EXPECT_EQ(read({1, kStart, kStart, 0, 0}), Reading::kDone);
  call_.Encode({&ask, 1}, {.marks = false});
  EXPECT_EQ(read({}), Reading::kBad);
  EXPECT_EQ(read({-1}), Reading::kBad);  // a denial of what the law admits
  EXPECT_EQ(read({2'000'000}), Reading::kBad);
  EXPECT_EQ(read({int64_t{1} << 60}), Reading::kBad);
  EXPECT_EQ(read({std::numeric_limits<int64_t>::min()}), Reading::kBad);
  EXPECT_EQ(read({1'900'000}), Reading::kDone);
  EXPECT_EQ(read({-1 - 1'900'001}), Reading::kDone);
}

}  // namespace
}  // namespace weir::script
