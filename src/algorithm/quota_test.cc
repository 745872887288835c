#include "weir/quota.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

Quota MustParse(std::string_view text) {
  Result<Quota> quota = Quota::Parse(text);
  if (!quota) {
    ADD_FAILURE() << quota.error().message;
    return *Quota::MinGap(1s);
  }
  return *quota;
}

void ExpectError(const Result<Quota>& quota, std::string_view fragment) {
  ASSERT_FALSE(quota.ok()) << quota->ToString() << " was accepted; expected: " << fragment;
  EXPECT_EQ(quota.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(quota.error().message.find(fragment), std::string::npos)
      << quota.error().message << "\nexpected: " << fragment;
}

TEST(QuotaParse, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<std::string_view, Result<Quota>>> cases = {
      {"100/min", Quota::SlidingWindow(100, 1min)},
      {"10/30s", Quota::SlidingWindow(10, 30s)},
      {"10 / 30 s", Quota::SlidingWindow(10, 30s)},
      {"10 per 30 seconds", Quota::SlidingWindow(10, 30s)},
      {"10 PER MINUTE", Quota::SlidingWindow(10, 1min)},
      {" \t100/min\r\n", Quota::SlidingWindow(100, 1min)},
      {"5000/h burst 20", Quota::TokenBucket(5000, 1h, 20)},
      {"5k/HR BURST 1_000", Quota::TokenBucket(5000, 1h, 1000)},
      {"100/min token-bucket", Quota::TokenBucket(100, 1min)},
      {"100/min burst 100", Quota::TokenBucket(100, 1min, 100)},
      {"100/min burst 20 leaky-bucket", Quota::LeakyBucket(100, 1min, 20)},
      {"100/min Leaky-Bucket Burst 20", Quota::LeakyBucket(100, 1min, 20)},
      {"100/min sliding-window", Quota::SlidingWindow(100, 1min)},
      {"100/min sliding-log", Quota::SlidingLog(100, 1min)},
      {"500/h sliced-window slices 60", Quota::SlicedWindow(500, 1h, 60)},
      {"500/h Slices 1 Sliced-Window", Quota::SlicedWindow(500, 1h, 1)},
      {"concurrency 20 lease 30s", Quota::Concurrency(20, 30s)},
      {" Concurrency 1 LEASE 5 minutes ", Quota::Concurrency(1, 5min)},
      {"100/min fixed-window", Quota::FixedWindow(100, 1min)},
      {"100/min fixed-window from epoch", Quota::FixedWindow(100, 1min)},
      {"100/min from first-hit fixed-window",
       Quota::FixedWindow(100, 1min, WindowStart::kFirstHit)},
      {"100/min fixed-window from per-key", Quota::FixedWindow(100, 1min, WindowStart::kPerKey)},
      {"1000000/month", Quota::Calendar(1'000'000, CalendarPeriod::kMonth)},
      {"1M/months", Quota::Calendar(1'000'000, CalendarPeriod::kMonth)},
      {"1_000_000/1 month calendar", Quota::Calendar(1'000'000, CalendarPeriod::kMonth)},
      {"7/year in utc", Quota::Calendar(7, CalendarPeriod::kYear)},
      {"7/yr in Asia/Kathmandu", Quota::Calendar(7, CalendarPeriod::kYear, "Asia/Kathmandu")},
      {"100/day", Quota::SlidingWindow(100, 24h)},
      {"100/week", Quota::SlidingWindow(100, 7 * 24h)},
      {"100/day calendar in Europe/Berlin",
       Quota::Calendar(100, CalendarPeriod::kDay, "Europe/Berlin")},
      {"100/1d in Europe/Berlin calendar",
       Quota::Calendar(100, CalendarPeriod::kDay, "Europe/Berlin")},
      {"100/w calendar", Quota::Calendar(100, CalendarPeriod::kWeek)},
      {"gap 2s", Quota::MinGap(2s)},
      {"GAP 1500 ms", Quota::MinGap(1500ms)},
      {"gap day", Quota::MinGap(24h)},
      {"007/s", Quota::SlidingWindow(7, 1s)},
      {"4294967295/us fixed-window", Quota::FixedWindow(4294967295, 1us)},
      {"16383/us", Quota::SlidingWindow(16383, 1us)},
      {"268435455/h", Quota::SlidingWindow(268435455, 1h)},
      {"1/3653d", Quota::SlidingWindow(1, 3653 * 24h)},
      {"1/day burst 36525", Quota::TokenBucket(1, 24h, 36525)},
      {"10/1234567ns", Quota::SlidingWindow(10, 1234567ns)},
  };
  for (const auto& [text, expected] : cases) {
    ASSERT_TRUE(expected.ok()) << text << ": " << expected.error().message;
    const Result<Quota> quota = Quota::Parse(text);
    ASSERT_TRUE(quota.ok()) << quota.error().message;
    EXPECT_EQ(*quota, *expected) << text << " became " << quota->ToString();
  }
}

TEST(QuotaParse, KnowsEveryUnit) {
  const std::vector<std::pair<Duration, std::vector<std::string>>> units = {
      {1us, {"us", "usec", "usecs", "microsecond", "microseconds", "1000ns", "1000 nanoseconds"}},
      {1ms, {"ms", "msec", "msecs", "millisecond", "milliseconds"}},
      {1s, {"s", "sec", "secs", "second", "seconds"}},
      {1min, {"m", "min", "mins", "minute", "minutes", "M", "Min", "60s"}},
      {1h, {"h", "hr", "hrs", "hour", "hours", "HOURS"}},
      {24h, {"d", "day", "days", "1_440min"}},
      {168h, {"w", "week", "weeks", "7d"}},
  };
  for (const auto& [length, names] : units) {
    for (const std::string& name : names) {
      EXPECT_EQ(MustParse("3/" + name).window(), length) << name;
    }
  }
}

TEST(QuotaParse, RefusesWhatItCannotMeanAndSaysWhy) {
  const std::string too_long = "100/min" + std::string(250, ' ');
  const std::string many_nines(200, '9');
  const std::vector<std::pair<std::string, std::string>> cases = {
      // Nothing, or not text.
      {"", "column 1: the text is empty; expected a quota, such as 100/min"},
      {"  \t ", "the text is empty"},
      {std::string("\0", 1), "quota \"\\x00\", column 1: limit: expected a whole number"},
      {std::string("100/min\0", 8), "quota \"100/min\\x00\", column 8: window: expected"},
      {std::string("10\0/min", 7), "limit: \"10\\x00\" is not a number"},
      {"\xff\xfe", "found \"\\xff\\xfe\""},
      {"\n100\n", "column 6: expected \"/\" or \"per\""},
      {too_long, "the text has 257 bytes; the most is 256"},
      {std::string(100000, '1'), "the text has 100000 bytes; the most is 256"},
      // The limit.
      {"0/min", "quota \"0/min\", column 1: limit: 0 is not allowed; the least is 1"},
      {"00/min", "limit: 00 is not allowed; the least is 1"},
      {"-5/min", "quota \"-5/min\", column 1: limit: -5 is not allowed; the least is 1"},
      {"-0/min", "limit: -0 is not allowed; the least is 1"},
      {"--5/min", "limit: \"--5\" is not a number"},
      {"+5/min", "limit: expected a whole number"},
      {"4294967296/s fixed-window", "limit: 4294967296 is not allowed; the most is 4294967295"},
      {"4294967296/s",
       "limit: 4294967296 is too large for a sliding window this short; the "
       "nearest allowed is 16777215"},
      {"4295M/s burst 1", "limit: 4295000000 is not allowed; the most is 4294967295"},
      {"4295M/us burst 1",
       "limit: 4295000000 per 1000 ns is too fast to be met to one part in a "
       "million; the nearest allowed is 4194304000"},
      {"5000000000/s sliding-log", "limit: 5000000000 is not allowed; the most is 65536"},
      {"18446744073709551617/s", "18446744073709551617 is not allowed; the most is 4294967295"},
      {"340282366920938463463374607431768211457/s", "is not allowed; the most is 4294967295"},
      {many_nines + "M/s", many_nines + "M is not allowed; the most is 4294967295"},
      {"-" + many_nines + "/s", "is not allowed; the least is 1"},
      {"1.5/s", "only whole numbers are allowed, and 1.5/s is 3/2s"},
      {"1e6/min", "limit: \"1e6\" is not a number"},
      {"0x10/min", "limit: \"0x10\" is not a number"},
      {"1,000/min", "limit: \"1,000\" is not a number; expected digits, such as 100, 1_000 or 5k"},
      {"1__0/s", "limit: \"1__0\" is not a number"},
      {"1_/s", "limit: \"1_\" is not a number"},
      {"_1/s", "limit: expected a whole number"},
      {"5m/s", "a million is written M"},
      {"5G/s", "limit: \"5G\" is not a number"},
      {"k/s", "limit: expected a whole number"},
      {"many/min", "column 1: limit: expected a whole number, such as 100, or \"gap\""},
      {"/min", "column 1: limit: expected a whole number"},
      {"concurency 5 lease 1s", "did you mean \"concurrency\"?"},
      // Concurrency.
      {"concurrency", "column 12: limit: expected a number, such as 20, found the end"},
      {"concurrency 0 lease 1s", "column 13: limit: 0 is not allowed; the least is 1"},
      {"concurrency 65536 lease 1s", "column 13: limit: 65536 is not allowed; the most is 65535"},
      {"concurrency 5", "column 14: expected \"lease\""},
      {"concurrency 5 30s", "column 15: expected \"lease\" and how long"},
      {"concurrency 5 lease", "lease: expected a duration, such as 30s, found the end"},
      {"concurrency 5 lease 999ns", "column 21: lease: 999ns is not allowed; the least is 1us"},
      {"concurrency 5 lease 367d", "column 21: lease: 367d is not allowed; the most is 366d"},
      {"concurrency 5 lease 1 month", "lease: 1month is not allowed; months and years"},
      {"concurrency 5 lease 1s burst 3", "column 24: expected the end after a lease"},
      {"5/s concurrency", "\"concurrency\" cannot follow a rate"},
      // Between the limit and the window.
      {"10", "column 3: expected \"/\" or \"per\""},
      {"10 min", "column 4: expected \"/\" or \"per\" and a window after the limit"},
      {"10 burst 5", "expected \"/\" or \"per\""},
      {"10//min", "column 4: expected a unit, such as s, min or day, found \"/min\""},
      // The window.
      {"10/", "column 4: expected a unit, such as s, min or day, found the end"},
      {"10 per", "column 7: expected a unit"},
      {"10/30", "column 6: expected a unit"},
      {"1/0s", "quota \"1/0s\", column 3: window: 0s is not allowed; the least is 1us"},
      {"1/-5s", "column 3: window: -5s is not allowed; the least is 1us"},
      {"1/999ns", "window: 999ns is not allowed; the least is 1us"},
      {"1/ns", "window: ns is not allowed; the least is 1us"},
      {"1/3654d", "window: 3654d is not allowed; the most is 3653d"},
      {"1/" + many_nines + "w", "is not allowed; the most is 3653d"},
      {"1/18446744073709551617ns", "is not allowed; the most is 3653d"},
      {"1/1.5h", "window: \"1.5\" is not a number; only whole numbers"},
      {"1/1h30m", "column 5: window: expected one count and one unit, such as 90min"},
      {"1/min/day", "column 6: window: expected one count and one unit"},
      {"1/min,burst 5", "column 6: window: expected one count and one unit"},
      {"10/mn", "column 4: unit: \"mn\" is not known; did you mean \"min\"?"},
      {"10/secnd", "did you mean \"second\"?"},
      {"10/mon", "did you mean \"month\"?"},
      {"10/30 mintues", "column 7: unit: \"mintues\" is not known; did you mean \"minutes\"?"},
      {"5/fortnight", "unit: \"fortnight\" is not known; allowed are ns, us, ms, s, min, h, day"},
      {"5/\xc2\xb5s", "expected a unit, such as s, min or day, found \"\\xc2\\xb5s\""},
      // The burst.
      {"10/s burst", "column 11: burst: expected a number, such as 20, found the end"},
      {"10/s burst 0", "column 12: burst: 0 is not allowed; the least is 1"},
      {"10/s burst -3", "burst: -3 is not allowed; the least is 1"},
      {"10/s burst 4294967296", "burst: 4294967296 is not allowed; the most is 4294967295"},
      {"10/s burst many", "burst: \"many\" is not a number"},
      {"10/s burst 5 burst 6", "column 14: \"burst\" is one too many: column 6 already has"},
      {"1/day burst 36526", "column 13: burst: 36526 is not allowed; the most is 36525"},
      {"3/3653d burst 32", "burst: 32 is not allowed; the most is 29"},
      {"10/s fixed-window burst 5", "column 19: burst: not allowed for fixed-window"},
      {"10/s sliding-window burst 10", "burst: not allowed for sliding-window"},
      // The words.
      {"10/s brust 5", "column 6: \"brust\" is not known here; did you mean \"burst\"?"},
      {"10/s token_bucket", "did you mean \"token-bucket\"?"},
      {"10/s leaky", "did you mean \"leaky-bucket\"?"},
      {"10/s 20", "\"20\" is not known here; allowed are \"burst <n>\""},
      {"10/s leaky-bucket token-bucket", "column 19: \"token-bucket\" is one too many"},
      {"10/s calendar calendar", "is one too many"},
      {"10/s min-gap", "a gap is a quota of its own: gap 2s"},
      {"10/s from epoch", "column 6: from: not allowed for sliding-window"},
      {"10/s slices 4", "column 6: slices: not allowed for sliding-window"},
      {"10/s sliced-window", "column 6: slices: missing"},
      {"10/s sliced-window slices", "slices: expected a number"},
      {"10/s sliced-window slices 0", "slices: 0 is not allowed; the least is 1"},
      {"10/s sliced-window slices 1025", "slices: 1025 is not allowed; the most is 1000"},
      {"10/1024us sliced-window slices 1025", "slices: 1025 is not allowed; the most is 1024"},
      {"10/s sliced-window slices 7",
       "slices: 7 do not divide 1s evenly; the nearest that do are 8"},
      {"10/s sliced-window slices 6", "the nearest that do are 5"},
      {"10/s sliced-window slices 9", "the nearest that do are 8"},
      {"10/s sliced-window slices 1020", "the nearest that do are 1000"},
      // What the store could not keep to: docs/decisions/0038-limits-and-windows.md.
      {"5000000000/day",
       "column 1: limit: 5000000000 is too large for a sliding window this short; "
       "the nearest allowed is 268435455"},
      {"5000000000/month", "limit: 5000000000 is not allowed; the most is 4294967295"},
      {"16777216/s",
       "column 1: limit: 16777216 is too large for a sliding window this short; the "
       "nearest allowed is 16777215, or choose token-bucket or fixed-window"},
      {"524288/ms fixed-window from first-hit",
       "column 1: limit: 524288 is too large for a window this short that begins at the first hit; "
       "the nearest allowed is 524287"},
      {"4000000000/us burst 1",
       "column 1: limit: 4000000000 per 1000 ns is too fast to be met to "
       "one part in a million; the nearest allowed is 4194304000"},
      {"10/7us sliced-window slices 6", "the nearest that do are 5"},
      {"10/10us sliced-window slices 11", "slices: 11 is not allowed; the most is 10"},
      {"65537/s sliding-log", "limit: 65537 is not allowed; the most is 65536"},
      {"10/s sliding-log burst 3", "burst: not allowed for sliding-log"},
      {"10/month sliced-window slices 3", "not allowed with month"},
      {"10/s token-bucket from epoch", "from: not allowed for token-bucket"},
      {"10/s fixed-window from", "from: expected epoch, first-hit or per-key, found the end"},
      {"10/s fixed-window from frist-hit", "did you mean \"first-hit\"? allowed are epoch"},
      {"10/s fixed-window from epoch from epoch", "is one too many"},
      // Calendars.
      {"10/month burst 5", "column 10: \"burst\" is not allowed with month: months and years have"},
      {"10/month burst 10", "months and years have no fixed length"},
      {"10/year token-bucket",
       "months and years have no fixed length, so they are always calendar"},
      {"10/month fixed-window", "\"fixed-window\" is not allowed with month"},
      {"10/month from epoch", "\"from\" is not allowed with month"},
      {"10/3 months", "window: 3months is not allowed; a calendar quota counts in single periods"},
      {"10/0months", "the only count is 1"},
      {"10/2d calendar", "column 4: window: 2d is not allowed for calendar; allowed are day, week"},
      {"10/24h calendar", "window: 24h is not allowed for calendar"},
      {"10/day calendar burst 5", "column 17: \"burst\" is not allowed for calendar"},
      {"10/day in Europe/Berlin",
       "column 8: in: not allowed for sliding-window; a time zone belongs"},
      {"10/day calendar in", "in: expected a time zone, such as Europe/Berlin, found the end"},
      {"10/day calendar in Europe/Berln",
       "column 20: time_zone: \"Europe/Berln\" is not a time zone: there is no such file in"},
      {"10/month in europe/berlin", "did you mean \"Europe/Berlin\"?"},
      {"10/month in ../../etc/passwd", "column 13: time_zone: \"../../etc/passwd\" is not a time"},
      {"10/month in Europe", "it is a folder of zones"},
      // Gaps.
      {"gap", "column 4: gap: expected a duration, such as 2s, found the end"},
      {"gap 0s", "column 5: gap: 0s is not allowed; the least is 1us"},
      {"gap -2s", "gap: -2s is not allowed; the least is 1us"},
      {"gap 3654d", "gap: 3654d is not allowed; the most is 3653d"},
      {"gap 2", "expected a unit"},
      {"gap month", "gap: month is not allowed; months and years have no fixed length"},
      {"gap 2s burst 3", "column 8: expected the end after a gap, found \"burst\""},
      {"gab 2s", "did you mean \"gap\"?"},
  };
  EXPECT_GE(cases.size(), 60u);
  for (const auto& [text, fragment] : cases) {
    const Result<Quota> quota = Quota::Parse(text);
    ExpectError(quota, fragment);
    if (!quota) {
      EXPECT_TRUE(quota.error().message.starts_with("quota \"")) << quota.error().message;
      EXPECT_EQ(quota.error().message.find('\n'), std::string::npos);
    }
  }
}

TEST(QuotaCreate, RefusesValuesOutOfRangeWithTheNearestAllowed) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ExpectError(Quota::Create({}), "limit: 0 is not allowed; the least is 1");
  ExpectError(Quota::SlidingWindow(0, 1s), "limit: 0 is not allowed; the least is 1");
  ExpectError(Quota::SlidingWindow(kLeast, 1s), "is not allowed; the least is 1");
  ExpectError(Quota::SlidingWindow(kMost, 1s), "the nearest allowed is 16777215");
  ExpectError(Quota::FixedWindow(kMost, 1s), "is not allowed; the most is 4294967295");
  ExpectError(Quota::TokenBucket(1, 1s, -1), "burst: -1 is not allowed; the least is 1");
  ExpectError(Quota::TokenBucket(1, 1s, kLeast), "the least is 1");
  ExpectError(Quota::TokenBucket(1000, 1s, 4294967296),
              "burst: 4294967296 is not allowed; the most "
              "is 4294967295");
  ExpectError(Quota::TokenBucket(1, 1s, kMost), "the most is 3155760000 (at 1 per 1s");
  ExpectError(Quota::SlidingWindow(1, 0s), "window: 0s is not allowed; the least is 1us");
  ExpectError(Quota::SlidingWindow(1, 999ns), "window: 999ns is not allowed; the least is 1us");
  ExpectError(Quota::SlidingWindow(1, Duration::min()), "is not allowed; the least is 1us");
  ExpectError(Quota::SlidingWindow(1, Duration::max()), "is not allowed; the most is 3653d");
  EXPECT_TRUE(Quota::SlidingWindow(1, Quota::kMinWindow).ok());
  EXPECT_TRUE(Quota::SlidingWindow(1, Quota::kMaxWindow).ok());
  ExpectError(Quota::SlidingWindow(1, Quota::kMaxWindow + 1ns), "the most is 3653d");
  ExpectError(Quota::MinGap(-2s), "gap: -2s is not allowed; the least is 1us");
  ExpectError(Quota::Calendar(0, CalendarPeriod::kDay), "limit: 0 is not allowed");
  ExpectError(Quota::Calendar(1, CalendarPeriod::kDay, "Nowhere/Land"),
              "time_zone: \"Nowhere/Land\"");
  ExpectError(Quota::Calendar(1, CalendarPeriod::kDay, ""), "time_zone: \"\" is not a time zone");
  // NOLINTBEGIN(clang-analyzer-optin.core.EnumCastOutOfRange): that is what is refused here.
  ExpectError(Quota::Create({.algorithm = static_cast<Algorithm>(9), .limit = 1, .window = 1s}),
              "algorithm: 9 is not allowed; the most is 8");
  ExpectError(Quota::FixedWindow(1, 1s, static_cast<WindowStart>(3)), "start: 3 is not allowed");
  ExpectError(Quota::Calendar(1, static_cast<CalendarPeriod>(4)), "period: 4 is not allowed");
  // NOLINTEND(clang-analyzer-optin.core.EnumCastOutOfRange)
}

TEST(QuotaCreate, RefusesFieldsThatTheAlgorithmDoesNotLookAt) {
  const QuotaSpec sliding{.algorithm = Algorithm::kSlidingWindow, .limit = 5, .window = 1s};
  QuotaSpec spec = sliding;
  spec.burst = 4;
  ExpectError(Quota::Create(spec),
              "burst: 4 is not allowed for sliding-window; the only value is "
              "its limit, 5");
  spec = sliding;
  spec.start = WindowStart::kFirstHit;
  ExpectError(Quota::Create(spec), "start: first-hit is not allowed for sliding-window");
  spec = sliding;
  spec.period = CalendarPeriod::kDay;
  ExpectError(Quota::Create(spec), "period: day is not allowed for sliding-window");
  spec = sliding;
  spec.time_zone = "Europe/Berlin";
  ExpectError(Quota::Create(spec),
              "time_zone: \"Europe/Berlin\" is not allowed for sliding-window");
  spec = {.algorithm = Algorithm::kCalendar, .limit = 5, .window = 1h};
  ExpectError(Quota::Create(spec), "window: 1h is not allowed for calendar");
  spec = {.algorithm = Algorithm::kMinGap, .limit = 2, .window = 1h};
  ExpectError(Quota::Create(spec), "limit: 2 is not allowed for min-gap; the only value is 1");
  spec = {.algorithm = Algorithm::kMinGap, .limit = 1, .window = 1h, .burst = 2};
  ExpectError(Quota::Create(spec), "burst: 2 is not allowed for min-gap");
}

TEST(QuotaCreate, FillsInWhatDefaultsStandFor) {
  EXPECT_EQ(Quota::TokenBucket(7, 1s)->burst(), 7u);
  EXPECT_EQ(Quota::LeakyBucket(7, 1s, 3)->burst(), 3u);
  EXPECT_EQ(Quota::SlidingWindow(7, 1s)->burst(), 7u);
  EXPECT_EQ(Quota::FixedWindow(7, 1s)->burst(), 7u);
  EXPECT_EQ(Quota::Calendar(7, CalendarPeriod::kDay)->burst(), 7u);
  const Result<Quota> gap = Quota::Create({.algorithm = Algorithm::kMinGap, .window = 2s});
  ASSERT_TRUE(gap.ok());
  EXPECT_EQ(gap->limit(), 1u);
  EXPECT_EQ(gap->burst(), 1u);
  EXPECT_EQ(gap->window(), 2s);
}

TEST(QuotaCreate, TheHorizonIsExact) {
  // burst * window / limit is exactly a hundred years, and one nanosecond of window too much.
  EXPECT_TRUE(Quota::TokenBucket(1, 24h, 36525).ok());
  ExpectError(Quota::TokenBucket(1, 24h + 1ns, 36525),
              "burst: 36525 is not allowed; the most is 36524");
  EXPECT_TRUE(Quota::TokenBucket(Quota::kMaxLimit, Quota::kMaxWindow, Quota::kMaxLimit).ok());
  EXPECT_TRUE(Quota::LeakyBucket(1, 1us, Quota::kMaxLimit).ok());
}

TEST(QuotaToString, IsShortAndCanonical) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"100 per 60 seconds", "100/min"},
      {"100/7d", "100/week"},
      {"100/14d", "100/2w"},
      {"100/90s", "100/90s"},
      {"100/120s", "100/2min"},
      {"5k/h burst 20", "5000/h burst 20"},
      {"100/s token-bucket", "100/s token-bucket"},
      {"100/s leaky-bucket burst 5", "100/s burst 5 leaky-bucket"},
      {"100/s fixed-window from per-key", "100/s fixed-window from per-key"},
      {"1M/month in UTC", "1000000/month"},
      {"5/day calendar in Europe/Berlin", "5/day calendar in Europe/Berlin"},
      {"gap 60s", "gap 1min"},
      {"1/1001us", "1/1001us"},
      {"1/1000ns", "1/us"},
      {"1/1000us", "1/ms"},
      {"1/1000ms", "1/s"},
      {"1/60min", "1/h"},
      {"1/24h", "1/day"},
  };
  for (const auto& [text, canonical] : cases) {
    EXPECT_EQ(MustParse(text).ToString(), canonical);
  }
}

TEST(QuotaToString, NamesEveryAlgorithm) {
  EXPECT_EQ(ToString(Algorithm::kTokenBucket), "token-bucket");
  EXPECT_EQ(ToString(Algorithm::kLeakyBucket), "leaky-bucket");
  EXPECT_EQ(ToString(Algorithm::kFixedWindow), "fixed-window");
  EXPECT_EQ(ToString(Algorithm::kSlidingWindow), "sliding-window");
  EXPECT_EQ(ToString(Algorithm::kSlidingLog), "sliding-log");
  EXPECT_EQ(ToString(Algorithm::kSlicedWindow), "sliced-window");
  EXPECT_EQ(ToString(Algorithm::kConcurrency), "concurrency");
  EXPECT_EQ(ToString(Algorithm::kMinGap), "min-gap");
  EXPECT_EQ(ToString(Algorithm::kCalendar), "calendar");
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a caller's cast.
  EXPECT_EQ(ToString(static_cast<Algorithm>(77)), "unknown");
}

TEST(Quota, IsEqualOnlyIfEveryFieldIs) {
  const Quota quota = *Quota::TokenBucket(10, 1s, 5);
  EXPECT_EQ(quota, *Quota::TokenBucket(10, 1s, 5));
  EXPECT_FALSE(quota == *Quota::TokenBucket(11, 1s, 5));
  EXPECT_FALSE(quota == *Quota::TokenBucket(10, 2s, 5));
  EXPECT_FALSE(quota == *Quota::TokenBucket(10, 1s, 6));
  EXPECT_FALSE(quota == *Quota::LeakyBucket(10, 1s, 5));
  EXPECT_FALSE(*Quota::FixedWindow(1, 1s) == *Quota::FixedWindow(1, 1s, WindowStart::kPerKey));
  EXPECT_FALSE(*Quota::Calendar(1, CalendarPeriod::kDay) ==
               *Quota::Calendar(1, CalendarPeriod::kWeek));
  EXPECT_FALSE(*Quota::Calendar(1, CalendarPeriod::kDay) ==
               *Quota::Calendar(1, CalendarPeriod::kDay, "Europe/Berlin"));
}

}  // namespace
}  // namespace weir
