#include "apps/weir/top/view.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace weir::top {
namespace {

using std::chrono::seconds;

Snapshot At(seconds when, uint64_t allowed, uint64_t denied) {
  Snapshot snapshot;
  snapshot.at = Timestamp(when);
  snapshot.version = "0.1.0";
  snapshot.connections = 12;
  snapshot.slots = 1000;
  snapshot.live_slots = 100;
  snapshot.rules.push_back({.rule = "idle", .allowed = 1'000'000});
  snapshot.rules.push_back({.rule = "busy", .allowed = allowed, .denied = denied});
  snapshot.rules.back().keys.push_back(
      {.key = "bob\x1b[2J", .count = 100, .denied = 25, .error = 3});
  return snapshot;
}

ViewOptions Wide() {
  ViewOptions options;
  options.address = "127.0.0.1:8081";
  return options;
}

TEST(View, ShowsRatesOfTheTimeBetweenTheBusiestFirst) {
  const std::string view = View(At(seconds(1), 1000, 0), At(seconds(3), 4000, 1000), Wide());
  EXPECT_NE(view.find("weir 0.1.0 at 127.0.0.1:8081"), std::string::npos) << view;
  EXPECT_NE(view.find("2,000/s decisions, 25.0 % denied, 12 connections, table 10.0 % full"),
            std::string::npos)
      << view;
  EXPECT_NE(view.find("2,000          500       25.0 %        5,000"), std::string::npos) << view;
  EXPECT_LT(view.find(" busy"), view.find(" idle")) << view;
  EXPECT_NE(view.find("<= 100"), std::string::npos) << view;
}

TEST(View, ShowsTotalsWhileThereIsNothingToCompareWith) {
  const std::string view = View(std::nullopt, At(seconds(1), 4000, 1000), Wide());
  EXPECT_NE(view.find("1,005,000 decisions, 0.1 % denied"), std::string::npos) << view;
  EXPECT_EQ(view.find("/s"), std::string::npos) << view;
}

TEST(View, CountsFromNothingAfterTheServerStartedAnew) {
  const std::string view = View(At(seconds(1), 9000, 0), At(seconds(2), 30, 0), Wide());
  EXPECT_NE(view.find(" 30/s decisions"), std::string::npos) << view;
}

TEST(View, TellsOfKeysThatGoOn) {
  Snapshot snapshot = At(seconds(1), 1, 0);
  snapshot.rules.back().keys.push_back({.key = "abc", .cut = true, .count = 7});
  snapshot.rules.back().keys.push_back({.key = "xyz", .count = 6});
  const std::string view = View(std::nullopt, snapshot, Wide());
  EXPECT_NE(view.find("abc... "), std::string::npos) << view;
  EXPECT_EQ(view.find("xyz..."), std::string::npos) << view;
}

TEST(View, NeverShowsWhatATerminalWouldObey) {
  const std::string view = View(std::nullopt, At(seconds(1), 1, 0), Wide());
  EXPECT_EQ(view.find('\x1b'), std::string::npos);
  EXPECT_NE(view.find("bob?[2J"), std::string::npos) << view;
}

TEST(View, FitsTheTerminal) {
  ViewOptions options = Wide();
  options.problem = std::string(300, 'x');
  for (const size_t width : {20, 40, 60, 80, 200}) {
    options.terminal.width = width;
    options.lines_max = 6;
    std::istringstream lines(View(std::nullopt, At(seconds(1), 1, 0), options));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(line.size(), std::max<size_t>(width, 40)) << line;
    }
    EXPECT_EQ(count, 6U);
  }
}

TEST(View, SaysWhatIsWrong) {
  Snapshot now = At(seconds(1), 1, 0);
  now.rules_up_to_date = false;
  ViewOptions options = Wide();
  options.problem = "cannot connect to 127.0.0.1:8081: Connection refused";
  const std::string view = View(std::nullopt, now, options);
  EXPECT_NE(view.find("Connection refused"), std::string::npos) << view;
  EXPECT_NE(view.find("the rule files have changed and were not taken"), std::string::npos) << view;
}

TEST(Printable, CutsWhatIsTooLong) {
  EXPECT_EQ(Printable("abcdef", 4), "abc~");
  EXPECT_EQ(Printable("abcd", 4), "abcd");
  EXPECT_EQ(Printable("a\tb", 4), "a?b");
}

}  // namespace
}  // namespace weir::top
