#include "apps/weir/terminal.h"

#include <array>
#include <string_view>

#include <gtest/gtest.h>

#include "apps/weir/suggest.h"

namespace weir::app {
namespace {

Surroundings Tty() {
  return {.is_tty = true, .tty_columns = 100, .term = "xterm-256color"};
}

TEST(Terminal, HasColoursOnATerminalAndNoneInAPipe) {
  EXPECT_EQ(Judge(Tty()).colors, Colors::kAnsi);
  Surroundings pipe = Tty();
  pipe.is_tty = false;
  EXPECT_EQ(Judge(pipe).colors, Colors::kNone);
}

TEST(Terminal, HonoursNoColorUnlessItIsEmpty) {
  Surroundings s = Tty();
  s.no_color = "1";
  EXPECT_EQ(Judge(s).colors, Colors::kNone);
  s.no_color = "";
  EXPECT_EQ(Judge(s).colors, Colors::kAnsi);
}

TEST(Terminal, ThatIsDumbOrUnnamedHasNoColours) {
  Surroundings s = Tty();
  s.term = "dumb";
  EXPECT_EQ(Judge(s).colors, Colors::kNone);
  s.term.reset();
  EXPECT_EQ(Judge(s).colors, Colors::kNone);
}

TEST(Terminal, TakesTheCharsetOfTheFirstLocaleThatIsSet) {
  Surroundings s = Tty();
  s.lang = "de_DE.UTF-8";
  EXPECT_EQ(Judge(s).charset, Charset::kUtf8);
  s.lc_ctype = "C";
  EXPECT_EQ(Judge(s).charset, Charset::kAscii);
  s.lc_all = "C.utf8";
  EXPECT_EQ(Judge(s).charset, Charset::kUtf8);
  s.lc_all = "";  // set but empty counts as not set
  EXPECT_EQ(Judge(s).charset, Charset::kAscii);
}

TEST(Terminal, WithoutAnyLocaleIsUtf8OnlyWhereATerminalCanShowIt) {
  Surroundings s = Tty();
  EXPECT_EQ(Judge(s).charset, Charset::kUtf8);
  s.term = "linux";
  EXPECT_EQ(Judge(s).charset, Charset::kAscii);
  s.term = "xterm";
  s.is_tty = false;
  EXPECT_EQ(Judge(s).charset, Charset::kAscii);
}

TEST(Terminal, WidthComesFromTheTerminalThenFromColumnsThenIsEighty) {
  Surroundings s = Tty();
  s.columns = "90";
  EXPECT_EQ(Judge(s).width, 100U);
  s.tty_columns = 0;
  EXPECT_EQ(Judge(s).width, 90U);
  for (const char* bad : {"wide", "", "0", "90x"}) {
    s.columns = bad;
    EXPECT_EQ(Judge(s).width, 80U) << bad;
  }
}

TEST(Paint, LeavesTextAloneWithoutColours) {
  EXPECT_EQ(Paint({.colors = Colors::kNone}, Ink::kBad, "x"), "x");
  EXPECT_EQ(Paint({.colors = Colors::kAnsi}, Ink::kBad, "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(Paint({.colors = Colors::kAnsi}, Ink::kBad, ""), "");
}

constexpr std::array<std::string_view, 4> kNames = {"token-bucket", "fixed-window", "min-gap",
                                                    "poisson"};

TEST(Suggest, FindsTheNameThatWasMeant) {
  EXPECT_EQ(Nearest("poison", kNames), "poisson");
  EXPECT_EQ(Nearest("posison", kNames), "poisson");
  EXPECT_EQ(Nearest("tokenbucket", kNames), "token-bucket");
  EXPECT_EQ(Nearest("fixed", kNames), "fixed-window");
  EXPECT_EQ(Nearest("gap", kNames), "min-gap");
}

TEST(Suggest, DoesNotGuessWildly) {
  EXPECT_FALSE(Nearest("sliding", kNames).has_value());
  EXPECT_FALSE(Nearest("", kNames).has_value());
  EXPECT_FALSE(Nearest("q", kNames).has_value());
}

TEST(Suggest, SaysWhatIsAllowed) {
  EXPECT_EQ(UnknownName("algorithm", "min-gab", kNames),
            "unknown algorithm 'min-gab': did you mean 'min-gap'? Allowed: token-bucket, "
            "fixed-window, min-gap, poisson");
  EXPECT_EQ(UnknownName("algorithm", "zzz", kNames),
            "unknown algorithm 'zzz'. Allowed: token-bucket, fixed-window, min-gap, poisson");
}

}  // namespace
}  // namespace weir::app
