// A Redis that is there and of no use: each rule does what it says, a line names cause and fix, and
// it ends by itself.
#include <algorithm>
#include <functional>
#include <memory>

#include "tests/chaos/load.h"
#include "tests/chaos/rig.h"
#include "tests/chaos/row.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

using shared::FleetStore;

constexpr const char* kQuota = "1000/min burst 1000";
constexpr const char* kUser = "weir";

struct Misfortune {
  std::string name;
  std::function<void()> begin;
  std::function<void()> end;
  std::vector<std::string> causes;  // one of them is named
  std::string fix;                  // a part of the line
};

struct Asked {
  bool by_policy = false;  // each of the three did what it says, for keys of every master
  bool by_store = false;
};

Asked AskThreePolicies(FleetStore& store, const std::vector<std::string>& keys) {
  const SharedQuota* const quota = shared::Bound(store, kQuota);
  Asked asked{.by_policy = true, .by_store = true};
  for (const std::string& key : keys) {
    for (const auto& [policy, basis] : {std::pair(OnStoreFailure::kLocal, Basis::kLocal),
                                        std::pair(OnStoreFailure::kAllow, Basis::kOpen),
                                        std::pair(OnStoreFailure::kDeny, Basis::kClosed)}) {
      const Decision decision = shared::AskOne(store, quota, key, {.on_failure = policy});
      asked.by_policy = asked.by_policy && decision.basis == basis &&
                        decision.allowed() == (policy != OnStoreFailure::kDeny);
      asked.by_store = asked.by_store && decision.basis == Basis::kStore;
    }
  }
  return asked;
}

void Suffer(Report& report, Rig& rig, const std::string& user_and_password,
            const Misfortune& misfortune) {
  report.Progress(misfortune.name);
  RedisOptions options = rig.options();
  options.url.insert(options.url.find("://") + 3, user_and_password);
  options.timeout = std::chrono::milliseconds(200);
  shared::Told told;
  options.on_event = told.hook();
  const auto store = rig.Open(options);
  const SharedQuota* const quota = shared::Bound(*store, kQuota);
  std::vector<std::string> keys;
  for (size_t master = 0; master < kMasters; ++master) {
    keys.push_back(KeysOfMaster(*quota, 1, master).front());
  }
  misfortune.begin();
  const bool began = shared::Eventually([&] { return AskThreePolicies(*store, keys).by_policy; });
  uint64_t by_policy = 0;
  constexpr uint64_t kTimes = 20;
  for (uint64_t i = 0; i < kTimes; ++i) {
    by_policy += AskThreePolicies(*store, keys).by_policy ? 1 : 0;
    WaitFor(20 * kMs);
  }
  report.Expect(misfortune.name + ": the named policy",
                Text(by_policy * 9) + " of " + Text(kTimes * 9) + " as local, allow, deny say",
                began && by_policy == kTimes);
  const bool named =
      std::any_of(misfortune.causes.begin(), misfortune.causes.end(),
                  [&](const auto& cause) { return told.Count("trouble " + cause + ":") > 0; });
  const std::string all = told.all();
  const size_t fix = all.find(misfortune.fix);
  std::string line = "none";
  if (fix != std::string::npos) {
    const size_t line_begin = all.rfind('\n', fix) + 1;
    line = all.substr(line_begin, all.find('\n', fix) - line_begin);
  }
  report.Expect(misfortune.name + ": a line that names cause and fix", "`" + line + "`",
                named && fix != std::string::npos);
  misfortune.end();
  const int64_t ended = NowNs();
  const bool back = shared::Eventually([&] { return AskThreePolicies(*store, keys).by_store; });
  report.Expect(misfortune.name + ": recovery by itself",
                back ? "after " + Ms(NowNs() - ended) + ", " + Text(told.Count("trouble ")) +
                           " lines of trouble in all"
                     : "not within a minute",
                back);
}

}  // namespace

void Policies(Report& report, Probe&) {
  Rig rig;
  Suffer(report, rig, "",
         {.name = "restarted empty",
          .begin =
              [&] {
                for (size_t i = 0; i < rig.cluster().size(); ++i) {
                  rig.redis(i).Kill();
                }
              },
          .end =
              [&] {
                for (size_t i = 0; i < rig.cluster().size(); ++i) {
                  rig.redis(i).Restart();
                }
              },
          .causes = {"lost", "refused"},
          .fix = "see that Redis's log"});
  if (!shared::Eventually([&] { return rig.IsWell(); })) {
    report.Expect("the Cluster comes together again", "not within a minute", false);
    return;
  }
  const std::string user = std::string(kUser) + ":old@";
  rig.AskAll({"ACL", "SETUSER", kUser, "on", ">old", "~*", "&*", "+@all"});
  Suffer(report, rig, user,
         {.name = "password changed",
          .begin =
              [&] {
                rig.AskAll({"ACL", "SETUSER", kUser, "resetpass", ">new"});
                rig.AskAll({"CLIENT", "KILL", "USER", kUser});
              },
          .end = [&] { rig.AskAll({"ACL", "SETUSER", kUser, "resetpass", ">old"}); },
          .causes = {"password"},
          .fix = "check user:password@"});
  Suffer(report, rig, user,
         {.name = "ACL without EVALSHA",
          .begin = [&] { rig.AskAll({"ACL", "SETUSER", kUser, "-evalsha"}); },
          .end = [&] { rig.AskAll({"ACL", "SETUSER", kUser, "+evalsha"}); },
          .causes = {"permission"},
          .fix = "+evalsha"});
  Suffer(report, rig, user,
         {.name = "maxmemory hit",
          .begin = [&] { rig.AskAll({"CONFIG", "SET", "maxmemory", "1"}); },
          .end = [&] { rig.AskAll({"CONFIG", "SET", "maxmemory", "0"}); },
          .causes = {"out-of-memory"},
          .fix = "raise maxmemory"});
}

}  // namespace weir::chaos
