#include "shared/event_log.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::shared {
namespace {

using redis::Event;
using redis::Trouble;

class EventLogTest : public ::testing::Test {
 protected:
  std::vector<std::string> told_;
  EventLog log_{[this](const RedisEvent& event) { told_.emplace_back(event.text); }};
  int loops_[3] = {};

  // All of them notice it, each in its own words.
  void NoteOnEachLoop(Event::Kind kind, Trouble trouble, const std::string& text) {
    for (const int& loop : loops_) {
      log_.Note(&loop, {.kind = kind,
                        .trouble = trouble,
                        .node = "a:6379",
                        .text = text + std::to_string(&loop - loops_)});
    }
  }
};

TEST_F(EventLogTest, ATroubleIsToldByTheFirstAndItsEndByTheLast) {
  NoteOnEachLoop(Event::Kind::kTrouble, Trouble::kLost, "lost ");
  EXPECT_TRUE(log_.away());
  NoteOnEachLoop(Event::Kind::kRecovered, Trouble::kLost, "well ");
  EXPECT_FALSE(log_.away());
  EXPECT_EQ(told_, (std::vector<std::string>{"lost 0", "well 2"}));
}

TEST_F(EventLogTest, ABreakerIsToldOnceHoweverLongEachPauseIs) {
  for (int i = 0; i < 2; ++i) {
    NoteOnEachLoop(Event::Kind::kOpened, Trouble::kNone, "open ");
    NoteOnEachLoop(Event::Kind::kClosed, Trouble::kNone, "closed ");
  }
  EXPECT_EQ(told_, (std::vector<std::string>{"open 0", "closed 2", "open 0", "closed 2"}));
  EXPECT_EQ(log_.changes(), 4U);
}

TEST_F(EventLogTest, AWarningIsToldOnceAndNobodyIsAway) {
  NoteOnEachLoop(Event::Kind::kWarning, Trouble::kEvicts, "evicts ");
  NoteOnEachLoop(Event::Kind::kWarning, Trouble::kEvicts, "evicts ");
  EXPECT_FALSE(log_.away());
  NoteOnEachLoop(Event::Kind::kWarning, Trouble::kWrongType, "type ");
  EXPECT_EQ(told_, (std::vector<std::string>{"evicts 0", "type 0"}));
  EXPECT_EQ(log_.changes(), 0U);
}

TEST_F(EventLogTest, ALoopThatEndsTakesWhatItSawAlong) {
  log_.Note(&loops_[0],
            {.kind = Event::Kind::kTrouble, .trouble = Trouble::kLost, .node = "a", .text = "it"});
  log_.Note(&loops_[0],
            {.kind = Event::Kind::kOpened, .trouble = Trouble::kLost, .node = "a", .text = "it"});
  log_.Forget(&loops_[0]);
  EXPECT_FALSE(log_.away());
  log_.Note(&loops_[1], {.kind = Event::Kind::kOpened, .node = "a", .text = "open again"});
  EXPECT_EQ(told_.back(), "open again");
}

}  // namespace
}  // namespace weir::shared
