#include "redis/failure.h"

#include <gtest/gtest.h>

#include "redis/script.h"

namespace weir::redis {
namespace {

TEST(FailureTest, KnowsErrorsByTheirFirstWord) {
  EXPECT_EQ(ServerErrorOf("NOSCRIPT No matching script. Please use EVAL."), ServerError::kNoScript);
  EXPECT_EQ(ServerErrorOf("OOM command not allowed when used memory > 'maxmemory'."),
            ServerError::kOutOfMemory);
  EXPECT_EQ(ServerErrorOf("WRONGPASS invalid username-password pair"), ServerError::kNoAuth);
  EXPECT_EQ(ServerErrorOf("ASKING is not an error of its own"), ServerError::kOther);
  EXPECT_EQ(ServerErrorOf(""), ServerError::kOther);
}

TEST(FailureTest, KnowsWhatAScriptMet) {
  EXPECT_EQ(ServerErrorOf("ERR Error running script: -OOM command not allowed"),
            ServerError::kOutOfMemory);
  EXPECT_EQ(ServerErrorOf("ERR The user executing the script can't run this command or subcommand"),
            ServerError::kNoPermission);
}

TEST(FailureTest, OnlyRefusalsProveThatNothingRan) {
  EXPECT_TRUE(ProvesNothingRan(ServerError::kNoScript));
  EXPECT_TRUE(ProvesNothingRan(ServerError::kTryAgain));
  EXPECT_TRUE(ProvesNothingRan(ServerError::kReadOnly));
  EXPECT_FALSE(ProvesNothingRan(ServerError::kOther));
  EXPECT_FALSE(ProvesNothingRan(ServerError::kWrongType));
}

TEST(FailureTest, AScriptHasTheDigestThatRedisGivesIt) {
  const Script script("one", "return 1");
  EXPECT_EQ(script.sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

}  // namespace
}  // namespace weir::redis
