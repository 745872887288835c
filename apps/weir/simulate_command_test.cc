// The command line of `weir simulate`: what it refuses and how it says so, and its JSON.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/weir/command_testing.h"

namespace weir::app {
namespace {

Answer Call(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  return CallCommand({RegisterSimulate}, arguments);
}

void ExpectRefused(const std::vector<std::string>& arguments, const std::string& part) {
  const Answer outcome = Call(arguments);
  EXPECT_EQ(outcome.status, kUsage) << part;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("weir simulate: ", 0), 0U) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

TEST(SimulateCommand, RunsWithoutAnyOption) {
  const Answer outcome = Call({});
  EXPECT_EQ(outcome.status, kSuccess);
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"steady", "poisson", "bursts", "on-off", "edge", "Which one"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  }
}

TEST(SimulateCommand, SuggestsTheNameThatWasMeant) {
  ExpectRefused({"-t", "poison"}, "did you mean 'poisson'? Allowed: steady, poisson");
  ExpectRefused({"-a", "fixed-windw"}, "did you mean 'fixed-window'? Allowed: token-bucket");
}

TEST(SimulateCommand, SaysWhatIsAllowedForEveryOption) {
  ExpectRefused({"--limit", "0/min"}, "--limit: ");
  ExpectRefused({"--limit", "100/fortnight"}, "--limit: ");
  ExpectRefused({"--limit", "100/month"}, "window of fixed length");
  ExpectRefused({"--limit", "100/min fixed-window"}, "--algorithm");
  ExpectRefused({"--burst", "0"}, "--burst: '0' is not a whole number from 1");
  ExpectRefused({"--burst", "many"}, "--burst: 'many'");
  ExpectRefused({"--burst", "5", "-a", "fixed-window"}, "none of the chosen algorithms has one");
  ExpectRefused({"-a", "fixed-window:5"}, "takes no number");
  ExpectRefused({"-a", "token-bucket:x"}, "'x' is not a whole number");
  ExpectRefused({"--duration", "10"}, "whole number and a unit");
  ExpectRefused({"--duration", "10s"}, "from 2 min to 100 min");
  ExpectRefused({"--rate", "0"}, "from 0.01 to 100");
  ExpectRefused({"--rate", "fast"}, "from 0.01 to 100");
  ExpectRefused({"--seed", "1.5"}, "--seed: '1.5'");
  ExpectRefused({"--seed=-1"}, "--seed: '-1'");
  ExpectRefused({"--width", "10"}, "columns from 72 to 400");
  ExpectRefused({"--cost", "0"}, "--cost: '0' is not a whole number from 1 to");
  ExpectRefused({"--cost", "9-1"}, "smaller first, as in 1-10");
  ExpectRefused({"--service", "soon"}, "--service: 'soon' is not a time from 1ns to 366d");
  ExpectRefused({"-a", "concurrency:0"}, "--algorithm: '0' is not a whole number from 1");
  ExpectRefused({"-a", "concurrency:70000"}, "concurrency: limit: 70000");
  ExpectRefused({"-a", "min-gap:5"}, "min-gap takes no number; token-bucket");
  ExpectRefused({"-a", "concurrency", "-b", "5"}, "--burst: none of the chosen algorithms");
  ExpectRefused({"--trace", "no/such/file"}, "--trace: cannot read 'no/such/file'");
  ExpectRefused({"--trace", "LICENSE"}, "LICENSE:2: 'Apache' is neither a time");
  ExpectRefused({"--trace", "x", "-r", "2"}, "leave out --traffic, --duration and --rate");
  ExpectRefused({"-a", "calendar"}, "calendar: counts whole days or weeks");
  ExpectRefused({"--limit", "100000000/min"}, "requests for one traffic");
  ExpectRefused({"--limit", "4000000000/min"}, "the nearest allowed is 134217727");
}

TEST(SimulateCommand, TakesListsAndRepeatedOptions) {
  const Answer lists = Call({"-a", "token-bucket:20,min-gap", "-t", "steady,edge", "--json"});
  const Answer repeated =
      Call({"-a", "token-bucket:20", "-a", "min-gap", "-t", "steady", "-t", "edge", "--json"});
  EXPECT_EQ(lists.status, kSuccess);
  EXPECT_EQ(lists.out, repeated.out);
}

TEST(SimulateCommand, TakesTrafficWithoutTheOption) {
  EXPECT_EQ(Call({"edge", "steady", "-a", "min-gap", "--json"}).out,
            Call({"-a", "min-gap", "-t", "edge,steady", "--json"}).out);
  EXPECT_EQ(Call({"-a", "min-gap", "edge", "--json"}).out,
            Call({"-a", "min-gap", "-t", "edge", "--json"}).out);
}

TEST(SimulateCommand, PrintsOneJsonObject) {
  const Answer outcome =
      Call({"--json", "-a", "fixed-window", "-t", "edge", "-l", "10/s", "-d", "8s", "-r", "2"});
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["limit"], 10);
  EXPECT_EQ(json["window_ns"], 1'000'000'000);
  EXPECT_EQ(json["duration_ns"], 8'000'000'000);
  EXPECT_EQ(json["rate"], 2.0);
  ASSERT_EQ(json["runs"].size(), 1U);
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["traffic"], "edge");
  const auto& result = run["results"][0];
  EXPECT_EQ(result["algorithm"], "fixed-window");
  EXPECT_EQ(result["worst_window"], 20);
  EXPECT_EQ(result["worst_ratio"], 2.0);
  EXPECT_EQ(result["admitted"].get<int>() + result["denied"].get<int>(), run["offered"]);
  int admitted = 0;
  for (const auto& count : result["admitted_over_time"]) admitted += count.get<int>();
  EXPECT_EQ(admitted, result["admitted"]);
}

TEST(SimulateCommand, ABurstInTheLimitIsTheBucketsBurst) {
  const Answer outcome =
      Call({"--json", "-a", "token-bucket", "-t", "edge", "-l", "100/min burst 20"});
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["runs"][0]["results"][0]["worst_window"], 119);
}

TEST(SimulateCommand, ListsWhatThereIs) {
  const Answer outcome = Call({"--list"});
  EXPECT_EQ(outcome.status, kSuccess);
  EXPECT_NE(outcome.out.find("sliding-window"), std::string::npos);
  EXPECT_NE(outcome.out.find("adversary"), std::string::npos);
}

TEST(SimulateCommand, ATraceSaysHowLongRequestsWereAtWorkUnlessAnOptionDoes) {
  const std::string path = testing::TempDir() + "weir_simulate_service.csv";
  std::ofstream(path) << "t_ms,client,duration_ms\n0,a,100\n10,a,20\n20,b,5\n50,a,30\n99,a,1\n";
  const auto result = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--json", "-a", "concurrency:2", "--trace", path});
    return nlohmann::json::parse(Call(more).out)["runs"][0]["results"][0];
  };
  // The first is at work throughout; the second has ended when the fourth comes, that one when the
  // last does.
  EXPECT_EQ(result({})["admitted"], 5);
  EXPECT_EQ(result({})["at_once"], 2);
  EXPECT_EQ(result({"--service", "1s"})["admitted"], 3) << "two of a, one of b";
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weir::app
