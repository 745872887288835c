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
  const auto proves = [](std::string_view text) {
    return ProvesNothingRan(ServerErrorOf(text), text);
  };
  EXPECT_TRUE(proves("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_TRUE(proves("TRYAGAIN Multiple keys request during rehashing of slot"));
  EXPECT_TRUE(proves("READONLY You can't write against a read only replica."));
  EXPECT_FALSE(
      proves("ERR value is not an integer or out of range script: ee29, on @user_script:1."));
  EXPECT_FALSE(proves("WRONGTYPE Operation against a key holding the wrong kind of value"));
  // A script that has written is not stopped for want of memory.
  EXPECT_TRUE(proves("OOM command not allowed when used memory > 'maxmemory'."));
  EXPECT_TRUE(
      proves("OOM command not allowed when used memory > 'maxmemory'. script: 7a1d, on "
             "@user_script:1."));
  // The ACL may stop it anywhere.
  EXPECT_TRUE(proves("NOPERM this user has no permissions to run the 'evalsha' command"));
  EXPECT_FALSE(
      proves("NOPERM ACL failure in script: User weir has no permissions to run the 'set' "
             "command script: ee29, on @user_script:1."));
  EXPECT_FALSE(
      proves("ERR The user executing the script can't run this command or subcommand "
             "script: ee29, on @user_script:1."));
}

TEST(FailureTest, AScriptHasTheDigestThatRedisGivesIt) {
  const Script script("one", "return 1");
  EXPECT_EQ(script.sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

}  // namespace
}  // namespace weir::redis
