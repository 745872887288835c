#include "server/log.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

TEST(Log, WritesTextForPeople) {
  EXPECT_EQ(
      FormatLine(LogFormat::kText, "2026-01-02T03:04:05.006Z", LogLevel::kWarning, "rules read",
                 {{"file", "a b.yaml"}, {"count", 3}, {"note", "plain"}, {"none", ""}}),
      "2026-01-02T03:04:05.006Z warning rules read file=\"a b.yaml\" count=3 note=plain "
      "none=\"\"\n");
}

TEST(Log, LeavesQuotesInAnEventToPeople) {
  EXPECT_EQ(FormatLine(LogFormat::kText, "T", LogLevel::kWarning,
                       "rules: a.yaml:3:1: rule \"x\": C:\\y", {{"k", "a\"b"}}),
            "T warning rules: a.yaml:3:1: rule \"x\": C:\\y k=\"a\\\"b\"\n");
}

TEST(Log, WritesJsonForMachines) {
  EXPECT_EQ(
      FormatLine(LogFormat::kJson, "T", LogLevel::kError, "x", {{"k", "say \"hi\"\\"}, {"n", 7}}),
      "{\"time\":\"T\",\"level\":\"error\",\"event\":\"x\",\"k\":\"say "
      "\\\"hi\\\"\\\\\",\"n\":7}\n");
}

TEST(Log, NoValueStartsALine) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line =
        FormatLine(format, "T", LogLevel::kInfo, "a\nb", {{"key", "x\r\nT error forged\x1b[31m"}});
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(line.find('\r'), std::string::npos);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

TEST(Log, CutsLongValues) {
  const std::string line =
      FormatLine(LogFormat::kText, "T", LogLevel::kInfo, "e", {{"key", std::string(100'000, 'k')}});
  EXPECT_LT(line.size(), 1200U);
}

}  // namespace
}  // namespace weir::server
