#include "apps/weir/simulate/plot.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "apps/weir/text.h"

namespace weir::simulate {

using app::Columns;
using app::FormatDuration;
using app::FormatPercent;
using app::FormatRatio;
using app::PadLeft;
using app::PadRight;
using app::ParseDuration;
using app::ParseMilli;
using app::Wrap;
namespace {

using app::Charset;
using app::Colors;
using app::Ink;
using app::Terminal;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Terminal kPlain{80, Colors::kNone, Charset::kUtf8};
constexpr Terminal kAscii{80, Colors::kNone, Charset::kAscii};
constexpr Terminal kColor{80, Colors::kAnsi, Charset::kUtf8};

using Values = std::vector<uint64_t>;

TEST(Sparkline, GrowsWithTheValueAndShowsEvenTheSmallest) {
  EXPECT_EQ(Sparkline(kPlain, Ink::kGood, Values{0, 1, 50, 100, 100}, 100), " ▁▄██");
  EXPECT_EQ(Sparkline(kAscii, Ink::kGood, Values{0, 1, 50, 100, 100}, 100), " .=@@");
}

TEST(Sparkline, OfSilenceIsBlank) {
  EXPECT_EQ(Sparkline(kPlain, Ink::kGood, Values{0, 0, 0}, 0), "   ");
}

TEST(Sparkline, PaintsARunOnce) {
  EXPECT_EQ(Sparkline(kColor, Ink::kGood, Values{8, 8, 0, 8}, 8),
            "\x1b[32m██\x1b[0m \x1b[32m█\x1b[0m");
}

TEST(StackedBars, ShowAdmittedBelowAndDeniedAbove) {
  // All admitted, all denied, half and half, nothing.
  const Values offered = {16, 16, 16, 0};
  const Values admitted = {16, 0, 8, 0};
  EXPECT_EQ(StackedBars(kPlain, admitted, offered, 16, 2),
            (std::vector<std::string>{"▇░░ ", "█░█ "}));
  EXPECT_EQ(StackedBars(kAscii, admitted, offered, 16, 2),
            (std::vector<std::string>{"#:: ", "#:# "}));
}

TEST(StackedBars, GiveDeniedItsOwnHeightInColour) {
  // Denied all: fifteen steps of muted colour. Half: the lower cell is full of what was admitted.
  EXPECT_EQ(StackedBars(kColor, Values{0, 8}, Values{16, 16}, 16, 2),
            (std::vector<std::string>{"\x1b[38;5;131m▇▇\x1b[0m",
                                      "\x1b[38;5;131m█\x1b[0m\x1b[32m█\x1b[0m"}));
  // A cell with both: green on the muted colour.
  EXPECT_EQ(StackedBars(kColor, Values{4}, Values{16}, 16, 2)[1], "\x1b[32;48;5;131m▄\x1b[0m");
}

TEST(StackedBars, NeverTouchThePictureAbove) {
  const auto bars = StackedBars(kPlain, Values{1000}, Values{1000}, 1000, 2);
  EXPECT_EQ(bars[0], "▇");
}

TEST(Gauge, IsHalfFullAtTheLimitAndFullAtTwiceTheLimit) {
  EXPECT_EQ(Gauge(kPlain, 0, 100, 5), "─────┃─────");
  EXPECT_EQ(Gauge(kPlain, 60, 100, 5), "━━━──┃─────");
  EXPECT_EQ(Gauge(kPlain, 100, 100, 5), "━━━━━┃─────");
  EXPECT_EQ(Gauge(kPlain, 200, 100, 5), "━━━━━┃━━━━━");
  EXPECT_EQ(Gauge(kAscii, 500, 100, 5), "=====|=====");
}

TEST(Gauge, ShowsASingleUnitBeyondTheLimit) {
  EXPECT_EQ(Gauge(kPlain, 1001, 1000, 5), "━━━━━┃━────");
}

TEST(Axis, MarksEveryWindowWhereItBegins) {
  EXPECT_EQ(Axis(kAscii, minutes(4), minutes(1), 32), "'0      '1 min  '2 min  '3 min  ");
}

TEST(Axis, LabelsFewerWindowsWhereThereIsNoRoom) {
  EXPECT_EQ(Axis(kAscii, minutes(8), minutes(1), 16), "'0        '5 min");
  EXPECT_EQ(Axis(kAscii, minutes(100), minutes(1), 40), "'0      '20 min '40 min '60 min '80 min ");
  EXPECT_EQ(Axis(kAscii, seconds(150), minutes(1), 3), "'0 ");
}

TEST(PlotColumns, DivideEvenlyAmongWholeWindows) {
  EXPECT_EQ(PlotColumns(33, minutes(4), minutes(1)), 32U);
  EXPECT_EQ(PlotColumns(33, minutes(40), minutes(1)), 33U);
  EXPECT_EQ(PlotColumns(33, seconds(150), minutes(1)), 33U);
}

TEST(Text, DurationsUseTheLargestUnitThatDividesThem) {
  EXPECT_EQ(FormatDuration(Duration(0)), "0");
  EXPECT_EQ(FormatDuration(minutes(1)), "1 min");
  EXPECT_EQ(FormatDuration(seconds(90)), "90 s");
  EXPECT_EQ(FormatDuration(std::chrono::milliseconds(600)), "600 ms");
  EXPECT_EQ(FormatDuration(std::chrono::hours(48)), "2 d");
  EXPECT_EQ(FormatDuration(Duration(1500)), "1500 ns");
  EXPECT_EQ(FormatDuration(minutes(60), minutes(1)), "60 min");
}

TEST(Text, DurationsAreReadWithAUnitAndNotWithout) {
  EXPECT_EQ(*ParseDuration("90s"), seconds(90));
  EXPECT_EQ(*ParseDuration("5 min"), minutes(5));
  EXPECT_EQ(*ParseDuration("2m"), minutes(2));
  for (const char* bad : {"", "90", "s", "-1s", "0s", "1.5s", "1 fortnight", "9999999999999d"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(Text, ARatioIsNeverRoundedOntoAWholeNumber) {
  EXPECT_EQ(FormatRatio(200, 100), "2.00x");
  EXPECT_EQ(FormatRatio(1999, 1000), "1.99x");
  EXPECT_EQ(FormatRatio(1001, 1000), "1.01x");
  EXPECT_EQ(FormatRatio(119, 100), "1.19x");
  EXPECT_EQ(FormatRatio(1, 1000), "0.01x");
  EXPECT_EQ(FormatRatio(0, 1000), "0.00x");
}

TEST(Text, ZeroPercentMeansNone) {
  EXPECT_EQ(FormatPercent(0, 10), "0 %");
  EXPECT_EQ(FormatPercent(1, 100'000), "< 0.1 %");
  EXPECT_EQ(FormatPercent(1, 3), "33.3 %");
  EXPECT_EQ(FormatPercent(3, 3), "100.0 %");
}

TEST(Text, ThousandthsAreReadExactly) {
  EXPECT_EQ(*ParseMilli("1.5"), 1500);
  EXPECT_EQ(*ParseMilli("2"), 2000);
  EXPECT_EQ(*ParseMilli("0.025"), 25);
  for (const char* bad : {"", ".", "1.", ".5", "1.2345", "-1", "1e3", "x"}) {
    EXPECT_FALSE(ParseMilli(bad).ok()) << bad;
  }
}

TEST(Text, WrapBreaksBetweenWordsAndLosesNone) {
  EXPECT_EQ(Wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(Wrap("", 7), (std::vector<std::string>{""}));
  EXPECT_EQ(Wrap("unbreakable x", 4), (std::vector<std::string>{"unbreakable", "x"}));
}

TEST(Text, ColumnsCountCharactersAndNotBytes) {
  EXPECT_EQ(Columns("▁━a"), 3U);
  EXPECT_EQ(PadRight("▁", 3), "▁  ");
  EXPECT_EQ(PadLeft("━", 3), "  ━");
}

}  // namespace
}  // namespace weir::simulate
