// The command lines of `weir rules` and `weir explain`.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/weir/command_testing.h"

namespace weir::app {
namespace {

Answer Call(const std::vector<std::string>& arguments) {
  return CallCommand({RegisterRules, RegisterExplain}, arguments);
}

TEST(RulesCommand, ChecksAFileAndTellsWhatItMeans) {
  const Answer answer = Call({"rules", "check", "examples/rules/first.yaml"});
  EXPECT_EQ(answer.status, kSuccess);
  EXPECT_NE(answer.out.find("per-ip: everything, per ip"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("at most 70 in any min; exact"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("ok: 5 rules"), std::string::npos);
  EXPECT_EQ(answer.err, "") << "an example has no warnings";
  const std::string odd =
      File("odd.yaml", "rules:\n  - {name: a, limit: 5/min, per: ip, durable: true}\n");
  const Answer warned = Call({"rules", "check", odd});
  EXPECT_NE(warned.err.find("warning: rule \"a\""), std::string::npos) << warned.err;
}

TEST(RulesCommand, RefusesAFileWithEveryMistakeInIt) {
  const std::string bad = File("bad.yaml", "rules:\n  - name: a\n    per: ip\n    limt: 5/min\n");
  const Answer text = Call({"rules", "check", bad});
  EXPECT_EQ(text.status, kFailure);
  EXPECT_NE(text.err.find("bad.yaml:4:5: error: rule \"a\""), std::string::npos) << text.err;
  const Answer json = Call({"rules", "check", bad, "--json"});
  EXPECT_EQ(json.status, kFailure);
  const auto read = nlohmann::json::parse(json.out);
  EXPECT_FALSE(read["ok"].get<bool>());
  EXPECT_EQ(read["issues"][1]["line"], 4);
  EXPECT_EQ(read["issues"][1]["column"], 5);
}

TEST(RulesCommand, TellsOfWhatHasExpired) {
  const Answer answer = Call({"rules", "check",
                              File("old.yaml",
                                   "rules: [{name: a, per: ip, limit: 1/s, expires: 2020-01-31}, "
                                   "{name: b, per: user, limit: 1/s, expires: 2120-01-31}]")});
  EXPECT_EQ(answer.status, kSuccess);
  EXPECT_NE(answer.err.find("warning: rule \"a\": it can never match: it has expired"),
            std::string::npos)
      << answer.err;
  EXPECT_EQ(answer.err.find("\"b\""), std::string::npos) << answer.err;
}

TEST(RulesCommand, ComparesWithWhatRuns) {
  const std::string live = File("live.yaml", "rules: [{name: a, per: ip, limit: 1000/min}]");
  const std::string next = File("next.yaml",
                                "rules: [{name: a, per: ip, limit: 10/min}, "
                                "{name: b, when: {path: /x}, per: user, limit: 1/s}]");
  const Answer check = Call({"rules", "check", next, "--against", live});
  EXPECT_EQ(check.status, kSuccess);
  EXPECT_NE(check.err.find("1000/min shrinks to 10/min"), std::string::npos) << check.err;
  const Answer diff = Call({"rules", "diff", live, next});
  EXPECT_NE(diff.out.find("a: 1000/min -> 10/min (lowered)"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find("b: added: 1/s on path /x, per user"), std::string::npos) << diff.out;
  EXPECT_EQ(Call({"rules", "diff", live, live}).out, "nothing changes\n");
  EXPECT_EQ(nlohmann::json::parse(Call({"rules", "diff", live, next, "--json"}).out)[0]["kind"],
            "lowered");
}

TEST(RulesCommand, PrintsTheSchema) {
  EXPECT_EQ(nlohmann::json::parse(Call({"rules", "schema"}).out)["title"], "weir rules");
}

TEST(ExplainCommand, TellsOfEveryRule) {
  const std::vector<std::string> request = {
      "explain", "-r", "examples/rules/first.yaml", "ip=192.0.2.1", "method=GET", "path=/x"};
  const Answer text = Call(request);
  EXPECT_EQ(text.status, kSuccess) << text.err;
  EXPECT_NE(text.out.find("allowed by per-ip"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("login: not matched: method is \"GET\", not POST"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("plan: missing attribute: it counts by user, which is absent"),
            std::string::npos)
      << text.out;
  std::vector<std::string> as_json = request;
  as_json.push_back("--json");
  const auto read = nlohmann::json::parse(Call(as_json).out);
  EXPECT_EQ(read["rules"].size(), 5U);
  EXPECT_EQ(read["rules"][0]["key"], "192.0.2.1");
  EXPECT_EQ(read["rules"][0]["quotas"][0]["limit"], 20);
}

TEST(ExplainCommand, RefusesWhatIsNoAttribute) {
  const Answer answer = Call({"explain", "-r", "examples/rules/first.yaml", "ip"});
  EXPECT_EQ(answer.status, kUsage);
  EXPECT_NE(answer.err.find("expected name=value"), std::string::npos);
}

}  // namespace
}  // namespace weir::app
