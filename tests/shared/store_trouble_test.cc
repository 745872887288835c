// The shared store on a Redis that begins to refuse while it is used: what is decided by each
// policy, which line is told, and that it ends by itself.
#include <chrono>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/shared/store_testing.h"

namespace weir::shared {
namespace {

using testing::RedisProcess;

constexpr const char* kQuota = "1000/day burst 1000";

class StoreTrouble : public ::testing::Test {
 protected:
  RedisProcess redis_{{.config = {"user weir on >old ~* &* +@all"}}};
  Told told_;
  std::shared_ptr<FleetStore> store_ = MakeStore();

  std::shared_ptr<FleetStore> MakeStore() {
    RedisOptions options = Patient("redis://weir:old@" + redis_.address());
    options.on_event = told_.hook();
    return Open(options);
  }

  Basis BasisFor(OnStoreFailure policy) {
    return AskOne(*store_, Bound(*store_, kQuota), "k", {.on_failure = policy}).basis;
  }

  // Each policy does what it says, `cause` and `fix` are told once, and it is over after `end`.
  void ExpectToSuffer(const std::function<void()>& begin, const std::string& cause,
                      const std::string& fix, const std::function<void()>& end) {
    ASSERT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kStore);
    begin();
    EXPECT_TRUE(Eventually([&] { return BasisFor(OnStoreFailure::kLocal) == Basis::kLocal; }));
    EXPECT_TRUE(Eventually([&] { return told_.Count("trouble " + cause + ":") == 1; }))
        << told_.all();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kLocal);
      EXPECT_EQ(BasisFor(OnStoreFailure::kAllow), Basis::kOpen);
      EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kClosed);
    }
    EXPECT_EQ(told_.Count("trouble " + cause + ":"), 1U) << told_.all();
    EXPECT_GE(told_.Count(fix), 1U) << told_.all();
    EXPECT_EQ(told_.Count("old"), 0U) << told_.all();  // the password
    EXPECT_TRUE(store_->Stats().away);
    end();
    EXPECT_TRUE(Eventually([&] { return BasisFor(OnStoreFailure::kDeny) == Basis::kStore; }));
    EXPECT_TRUE(Eventually([&] {
      (void)BasisFor(OnStoreFailure::kLocal);  // some are over when a question is answered
      return !store_->Stats().away && told_.Count("well again") >= 1;
    })) << told_.all();
  }
};

TEST_F(StoreTrouble, APasswordThatIsChanged) {
  ExpectToSuffer(
      [&] {
        redis_.Ask({"ACL", "SETUSER", "weir", "resetpass", ">new"});
        redis_.Ask({"CLIENT", "KILL", "USER", "weir"});
      },
      "password", "check user:password@",
      [&] { redis_.Ask({"ACL", "SETUSER", "weir", "resetpass", ">old"}); });
}

TEST_F(StoreTrouble, AnAclThatTakesEvalshaAway) {
  ExpectToSuffer([&] { redis_.Ask({"ACL", "SETUSER", "weir", "-evalsha"}); }, "permission",
                 "+evalsha", [&] { redis_.Ask({"ACL", "SETUSER", "weir", "+evalsha"}); });
}

TEST_F(StoreTrouble, AMemoryThatIsFull) {
  ExpectToSuffer([&] { redis_.Ask({"CONFIG", "SET", "maxmemory", "1"}); }, "out-of-memory",
                 "raise maxmemory", [&] { redis_.Ask({"CONFIG", "SET", "maxmemory", "0"}); });
}

TEST_F(StoreTrouble, AKeyOfTheWrongTypeIsToldOnceAndServesAgainWhenItIsGone) {
  ASSERT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kStore);
  const std::string name = redis_.Ask({"KEYS", "weir:*"});
  redis_.Ask({"DEL", name});
  redis_.Ask({"LPUSH", name, "not ours"});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(BasisFor(OnStoreFailure::kLocal), Basis::kLocal);
    EXPECT_EQ(BasisFor(OnStoreFailure::kAllow), Basis::kOpen);
    EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kClosed);
    // Nobody else is concerned.
    EXPECT_EQ(AskOne(*store_, Bound(*store_, kQuota), "other").basis, Basis::kStore);
  }
  EXPECT_EQ(told_.Count("trouble wrong-type:"), 1U) << told_.all();
  EXPECT_EQ(told_.Count("give weir a Redis or a database of its own"), 1U) << told_.all();
  redis_.Ask({"DEL", name});
  EXPECT_EQ(BasisFor(OnStoreFailure::kDeny), Basis::kStore);
}

}  // namespace
}  // namespace weir::shared
