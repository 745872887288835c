#include "server/fresh_key_warnings.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using Names = std::vector<std::string>;

TEST(FreshKeyWarnings, TellOnceForEachRuleAndLoad) {
  FreshKeyWarnings warnings;
  std::vector<RuleCounts> counts(2);
  counts[0].rule = "a";
  counts[1].rule = "b";
  EXPECT_EQ(warnings.New(1, counts), Names());
  counts[1].meets_fresh_keys = true;
  EXPECT_EQ(warnings.New(1, counts), Names{"b"});
  EXPECT_EQ(warnings.New(1, counts), Names());
  counts[0].meets_fresh_keys = true;
  EXPECT_EQ(warnings.New(1, counts), Names{"a"});
  EXPECT_EQ(warnings.New(2, counts), (Names{"a", "b"}));
  EXPECT_EQ(warnings.New(2, counts), Names());
}

}  // namespace
}  // namespace weir::server
