// The command line of `weir rules import`.
#include "apps/weir/rules_import_command.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rule_set.h"

#include "apps/weir/command_testing.h"

namespace weir::app {
namespace {

Answer Call(const std::vector<std::string>& arguments) {
  return CallCommand({RegisterRules}, arguments);
}

constexpr const char* kEnvoy =
    "domain: d\nall_or_nothing: true\ndescriptors:\n"
    "  - key: user\n    rate_limit: {unit: minute, requests_per_unit: 5}\n";

TEST(RulesImportCommand, WritesRulesAndSaysWhatItDid) {
  const Answer answer = Call({"rules", "import", File("good.yaml", kEnvoy)});
  EXPECT_EQ(answer.status, kSuccess) << answer.err;
  EXPECT_NE(RuleSet::Parse(answer.out).rules, nullptr) << answer.out;
  EXPECT_NE(answer.err.find("good.yaml:4: carried: key user, 5 per minute is the rule user"),
            std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("1 carried, 0 approximated, 0 dropped"), std::string::npos);
  const std::string path = testing::TempDir() + "/import_out.yaml";
  const Answer quiet = Call({"rules", "import", "-q", "-o", path, File("good.yaml", kEnvoy)});
  EXPECT_EQ(quiet.out + quiet.err, "");
  std::ifstream written(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), answer.out);
}

TEST(RulesImportCommand, TellsByItsStatusThatSomethingWasDropped) {
  const std::string text = std::string(kEnvoy) + "    detailed_metric: true\n";
  EXPECT_EQ(Call({"rules", "import", File("dropped.yaml", text)}).status, kDropped);
}

TEST(RulesImportCommand, RefusesWhatIsWrongAndWritesNothing) {
  const std::string path = testing::TempDir() + "/import_none.yaml";
  std::filesystem::remove(path);
  const Answer wrong =
      Call({"rules", "import", "-o", path, File("bad.yaml", "domain: d\ndescriptors: 5\n")});
  EXPECT_EQ(wrong.status, kFailure);
  EXPECT_NE(wrong.err.find("bad.yaml: "), std::string::npos) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(Call({"rules", "import", "/nonexistent/file"}).status, kFailure);
  EXPECT_NE(Call({"rules", "import", File("what", "hello\n")}).err.find("--from"),
            std::string::npos);
  EXPECT_EQ(Call({"rules", "import", "--attribute", "x", File("good.yaml", kEnvoy)}).status,
            kUsage);
  int status = -1;
  CLI::App app;
  RegisterRules(app, status);
  EXPECT_THROW(app.parse("rules import --from apache x"), CLI::ParseError);
}

TEST(RulesImportCommand, TakesOtherNamesForAttributes) {
  const Answer answer =
      Call({"rules", "import", "--attribute", "user=account", File("renamed.yaml", kEnvoy)});
  EXPECT_NE(answer.out.find("per: account"), std::string::npos) << answer.out;
}

}  // namespace
}  // namespace weir::app
