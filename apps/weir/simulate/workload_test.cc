#include "apps/weir/simulate/workload.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/quota.h"

namespace weir::simulate {
namespace {

using std::chrono::milliseconds;

TEST(ParseCost, TakesANumberOrARange) {
  EXPECT_EQ(ParseCost("5")->least, 5U);
  EXPECT_EQ(ParseCost("5")->most, 5U);
  EXPECT_EQ(ParseCost("1-10")->least, 1U);
  EXPECT_EQ(ParseCost("1-10")->most, 10U);
  EXPECT_EQ(ParseCost("1-4294967295")->most, 4294967295U);
}

TEST(ParseCost, RefusesTheRestAndSaysWhatIsAllowed) {
  for (const char* text : {"", "0", "0-5", "10-1", "-", "1-", "-1", "1-2-3", "x", "1.5", " 1",
                           "4294967296", "1-4294967296", "99999999999999999999"}) {
    const auto cost = ParseCost(text);
    ASSERT_FALSE(cost.ok()) << text;
    EXPECT_NE(cost.error().message.find("as in 1-10"), std::string::npos);
  }
}

TEST(DrawCosts, ReachesBothEndsAndStaysBetween) {
  std::vector<Request> requests(1000);
  DrawCosts(requests, {3, 6}, 1);
  auto [least, most] =
      std::minmax_element(requests.begin(), requests.end(),
                          [](const Request& a, const Request& b) { return a.cost < b.cost; });
  EXPECT_EQ(least->cost, 3U);
  EXPECT_EQ(most->cost, 6U);
}

TEST(ParseService, TakesATimeOrARange) {
  EXPECT_EQ(ParseService("200ms")->least, milliseconds(200));
  EXPECT_EQ(ParseService("200ms")->most, milliseconds(200));
  EXPECT_EQ(ParseService("50ms-2s")->least, milliseconds(50));
  EXPECT_EQ(ParseService("50ms-2s")->most, milliseconds(2000));
  EXPECT_EQ(ParseService("1ns-366d")->most, Quota::kMaxLease);
}

TEST(ParseService, RefusesTheRestAndSaysWhatIsAllowed) {
  for (const char* text :
       {"", "5", "0s", "0s-5s", "2s-1s", "-", "1s-", "-1s", "1s-2s-3s", "soon", "367d"}) {
    const auto service = ParseService(text);
    ASSERT_FALSE(service.ok()) << text;
    EXPECT_NE(service.error().message.find("as in 50ms-2s"), std::string::npos);
  }
}

TEST(DrawServices, ReachesBothEndsAndLeavesWhatIsKnown) {
  std::vector<Request> requests(1000);
  requests[7].service = milliseconds(5);
  DrawServices(requests, {Duration(3), Duration(6)}, 1);
  EXPECT_EQ(requests[7].service, milliseconds(5));
  requests[7].service = Duration(3);
  const auto shorter = [](const Request& a, const Request& b) { return a.service < b.service; };
  const auto [least, most] = std::minmax_element(requests.begin(), requests.end(), shorter);
  EXPECT_EQ(least->service, Duration(3));
  EXPECT_EQ(most->service, Duration(6));
}

TEST(UsualService, FitsEveryWindowAndLease) {
  for (const Duration window :
       {Quota::kMinWindow, Duration(milliseconds(60'000)), Quota::kMaxWindow}) {
    const ServiceRange range = UsualService(window);
    EXPECT_GT(range.least, Duration::zero());
    EXPECT_LE(range.least, range.most);
    EXPECT_LE(range.most, Quota::kMaxLease);
  }
}

TEST(MakeWorkload, TheLoadInUnitsIsThatOfTheRateWhateverTheCost) {
  for (const CostRange range : {CostRange{1, 1}, CostRange{5, 5}, CostRange{1, 9}}) {
    const Workload workload = MakeWorkload(Traffic::kSteady, {.limit = 1000}, range, {});
    uint64_t units = 0;
    for (const Request& request : workload.requests) units += request.cost;
    // 1.5 times 1000 in each of four windows; chance moves the mean of 1-9 a little.
    EXPECT_NEAR(static_cast<double>(units), 6000, 300) << range.most;
  }
}

}  // namespace
}  // namespace weir::simulate
