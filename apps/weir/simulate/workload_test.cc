#include "apps/weir/simulate/workload.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace weir::simulate {
namespace {

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

TEST(MakeWorkload, TheLoadInUnitsIsThatOfTheRateWhateverTheCost) {
  for (const CostRange range : {CostRange{1, 1}, CostRange{5, 5}, CostRange{1, 9}}) {
    const Workload workload = MakeWorkload(Traffic::kSteady, {.limit = 1000}, range);
    uint64_t units = 0;
    for (const Request& request : workload.requests) units += request.cost;
    // 1.5 times 1000 in each of four windows; chance moves the mean of 1-9 a little.
    EXPECT_NEAR(static_cast<double>(units), 6000, 300) << range.most;
  }
}

}  // namespace
}  // namespace weir::simulate
