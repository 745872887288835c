#include "apps/weir/simulate/trace.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/weir/simulate/options.h"
#include "apps/weir/simulate/tour.h"
#include "testing/vectors.h"

namespace weir::simulate {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

Result<Workload> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, "dir/x.txt", minutes(1));
}

Workload MustRead(const std::string& text) {
  auto workload = Read(text);
  EXPECT_TRUE(workload.ok()) << workload.error().message;
  return workload.ok() ? *std::move(workload) : Workload{};
}

void ExpectRefused(const std::string& text, const std::string& where, const std::string& what) {
  const auto workload = Read(text);
  ASSERT_FALSE(workload.ok()) << text;
  EXPECT_EQ(workload.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(workload.error().message.rfind(where, 0), 0U) << workload.error().message;
  EXPECT_NE(workload.error().message.find(what), std::string::npos) << workload.error().message;
}

// "seconds key cost", one request a line, as it was understood.
std::string Understood(const Workload& workload) {
  std::string out;
  for (const Request& request : workload.requests) {
    out += std::to_string(request.at / milliseconds(1)) + " " + workload.keys[request.key] + " " +
           std::to_string(request.cost) + "\n";
  }
  return out;
}

TEST(ReadTrace, TakesTimeKeyAndCost) {
  EXPECT_EQ(Understood(MustRead("0 alice 1\n0.25 bob 12\n1.5 alice 3\n")),
            "0 alice 1\n250 bob 12\n1500 alice 3\n");
}

TEST(ReadTrace, KeyAndCostMayBeLeftOut) {
  EXPECT_EQ(Understood(MustRead("1\n2 bob\n3 - -\n")), "1000 all 1\n2000 bob 1\n3000 - 1\n");
}

TEST(ReadTrace, SkipsCommentsAndBlankLinesAndTakesWindowsLineEnds) {
  EXPECT_EQ(Understood(MustRead("# a comment\r\n\r\n  1.0   a \r\n#\n2 b 7")),
            "1000 a 1\n2000 b 7\n");
}

TEST(ReadTrace, TakesCommasTabsAndQuotes) {
  EXPECT_EQ(Understood(MustRead("1,a,2\n2, \"b c\" ,3\n")), "1000 a 2\n2000 b c 3\n");
  EXPECT_EQ(Understood(MustRead("1\ta b\t2\n")), "1000 a b 2\n");
}

TEST(ReadTrace, AHeadingNamesColumnsInAnyOrder) {
  EXPECT_EQ(Understood(MustRead("cost,path,client,seconds\n5,/x,a,1\n6,/y,b,2\n")),
            "1000 a 5\n2000 b 6\n");
  EXPECT_EQ(Understood(MustRead("t_ms\tclient\tmethod\n0\ta\tGET\n1500.5\tb\tGET\n")),
            "0 a 1\n1500 b 1\n");
}

TEST(ReadTrace, TimeIsExactToTheNanosecond) {
  const Workload workload = MustRead("0.000000001\n0.1234567899\n");
  EXPECT_EQ(workload.requests[0].at, Duration(1));
  EXPECT_EQ(workload.requests[1].at, Duration(123'456'789));
}

TEST(ReadTrace, WindowsTurnWhereTheyDidWhenItWasRecorded) {
  // 1,700,000,000 is 20 s into its minute.
  const Workload workload = MustRead("1700000000 a\n1700000041 a\n");
  EXPECT_EQ(workload.requests[0].at, seconds(20));
  EXPECT_EQ(workload.requests[1].at, seconds(61));
  EXPECT_EQ(WholeWindows(workload, minutes(1)), minutes(2));
}

TEST(ReadTrace, NamesTheLineAndWhatWasExpected) {
  ExpectRefused("0 a\n\nx b\n", "dir/x.txt:3: ", "the time is 'x'; expected seconds");
  ExpectRefused("0 a\n-1 b\n", "dir/x.txt:2: ", "the time is '-1'");
  ExpectRefused("1e9 a\n", "dir/x.txt:1: ", "the time is '1e9'");
  ExpectRefused("1.2.3 a\n", "dir/x.txt:1: ", "the time is '1.2.3'");
  ExpectRefused("2026-11-16T00:00:00Z a\n", "dir/x.txt:1: ", "expected seconds");
  ExpectRefused("99999999999 a\n", "dir/x.txt:1: ", "expected seconds");
  ExpectRefused("t_ms,key\nx,a\n", "dir/x.txt:2: ", "expected milliseconds");
  ExpectRefused("1 a -1\n", "dir/x.txt:1: ", "the cost is '-1'; expected a whole number from 0");
  ExpectRefused("1 a 1.5\n", "dir/x.txt:1: ", "the cost is '1.5'");
  ExpectRefused("1 a 4294967296\n", "dir/x.txt:1: ", "the cost is '4294967296'");
  ExpectRefused("1,,2\n", "dir/x.txt:1: ", "the key is empty");
  ExpectRefused("1,\"a,b\",2\n", "dir/x.txt:1: ", "a separator inside quotes");
  ExpectRefused(std::string("1 a\0b 2\n", 8), "dir/x.txt:1: ", "NUL");
  ExpectRefused("when,who\n1,a\n", "dir/x.txt:1: ", "nor a heading with a column called time");
  ExpectRefused("<html>\n", "dir/x.txt:1: ", "the time is '<html>'");
}

TEST(ReadTrace, SortsLinesThatAreLateAndSaysHowMany) {
  const Workload workload = MustRead("2 a\n1 b\n3 c\n2 d\n2 e\n1 f\n");
  EXPECT_EQ(Understood(workload), "1000 b 1\n1000 f 1\n2000 a 1\n2000 d 1\n2000 e 1\n3000 c 1\n");
  EXPECT_EQ(workload.line, "recorded, 6 keys, 4 late and sorted");
}

TEST(ReadTrace, ACostOfZeroIsLeftOutAndCounted) {
  const Workload workload = MustRead("1 a 0\n2 a 3\n3 a 00\n");
  EXPECT_EQ(Understood(workload), "2000 a 3\n");
  EXPECT_EQ(workload.line, "recorded, 1 key, 2 of cost 0 left out");
  ExpectRefused("1 a 0\n", "dir/x.txt: ", "holds no requests that cost anything");
}

TEST(ReadTrace, RefusesAFileWithoutRequests) {
  ExpectRefused("", "dir/x.txt: ", "holds no requests");
  ExpectRefused("# nothing\n", "dir/x.txt: ", "holds no requests");
  ExpectRefused("time,key\n", "dir/x.txt: ", "holds no requests");
}

TEST(ReadTrace, RefusesALineWithoutEnd) {
  ExpectRefused(std::string(kMaxTraceLine + 1, '1'), "dir/x.txt:1: ", "more than 65536 bytes");
}

TEST(ReadTrace, ShowsNoControlCharacterOfTheFile) {
  const auto workload = Read("\x1b[31m\x07 a\n");
  ASSERT_FALSE(workload.ok());
  EXPECT_EQ(workload.error().message.find('\x1b'), std::string::npos);
  EXPECT_EQ(workload.error().message.find('\x07'), std::string::npos);
}

TEST(ReadTrace, ReportsProgressOnLongFiles) {
  std::string text;
  for (uint64_t i = 0; i < kProgressLines; ++i) text += "1\n";
  std::istringstream in(text);
  std::vector<uint64_t> reports;
  const auto workload =
      ReadTrace(in, "x", minutes(1), [&](uint64_t lines) { reports.push_back(lines); });
  EXPECT_TRUE(workload.ok());
  EXPECT_EQ(reports, std::vector<uint64_t>{kProgressLines});
}

TEST(LoadTrace, SaysWhyAFileCannotBeRead) {
  for (const char* path : {"no/such/file", "."}) {
    const auto workload = LoadTrace(path, minutes(1));
    ASSERT_FALSE(workload.ok()) << path;
    EXPECT_EQ(workload.error().message.rfind("--trace: cannot read '", 0), 0U)
        << workload.error().message;
  }
}

// Of any trace: every line but the heading is a request or was left out for its cost, times do not
// fall, and a tour through it ends with all of its requests answered.
void ExpectUsable(const testing::OutsideFile& file) {
  SCOPED_TRACE(file.name);
  const auto workload = LoadTrace(file.path, minutes(1));
  ASSERT_TRUE(workload.ok()) << workload.error().message;
  const std::string text = file.Read();
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const bool all = workload->line.find("left out") == std::string::npos;
  EXPECT_LE(workload->requests.size(), lines);
  EXPECT_TRUE(!all || workload->requests.size() + 1 == lines) << lines;
  EXPECT_TRUE(std::is_sorted(workload->requests.begin(), workload->requests.end(),
                             [](const Request& a, const Request& b) { return a.at < b.at; }));
  auto plan = MakePlan(
      {.algorithms = {"token-bucket", "sliding-log"}, .trace = file.path, .limit = "60/min"});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto tour = RunTour(*std::move(plan));
  ASSERT_TRUE(tour.ok()) << tour.error().message;
  ASSERT_EQ(tour->stages.size(), 1U);
  EXPECT_EQ(tour->stages[0].offered, workload->requests.size());
  EXPECT_EQ(tour->stages[0].keys, workload->keys.size());
  EXPECT_LE(tour->stages[0].scores[1].worst_window, 60U) << "a log is exact over any window";
}

TEST(LoadTrace, ReadsTrafficThatOthersRecorded) {
  const auto files = testing::OutsideFiles("traces");
  if (files.empty()) {
    testing::SayNoOutsideData("traces");
  }
  for (const testing::OutsideFile& file : files) {
    ExpectUsable(file);
  }
}

TEST(ReadTrace, TakesHowLongARequestWasAtWork) {
  const auto services = [](const std::string& text) {
    std::vector<int64_t> out;
    for (const Request& request : MustRead(text).requests) out.push_back(request.service.count());
    return out;
  };
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(services("time,service\n0,1.5\n1,-\n2,0\n"), (Numbers{1'500'000'000, 0, 1}))
      << "0 is not known, and a request that took no time took some";
  EXPECT_EQ(services("latency_ms t_ms key\n0.25 0 a\n3 5 b\n"), (Numbers{250'000, 3'000'000}));
  EXPECT_EQ(services("0 a 1 7\n"), (Numbers{0})) << "only where a heading says so";
  ExpectRefused("time,duration\n0,soon\n", "dir/x.txt:2:", "expected seconds up to 366 days");
  ExpectRefused("time,duration\n0,31622401\n", "dir/x.txt:2:", "366 days");
  ExpectRefused("time,duration_ms\n0,-1\n", "dir/x.txt:2:", "expected milliseconds");
}

}  // namespace
}  // namespace weir::simulate
