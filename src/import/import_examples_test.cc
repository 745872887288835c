// The examples of every format: told apart, imported, and good rules.
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "import/test_import.h"

namespace weir::import {
namespace {

TEST(ImportExamples, AreKnownByTheirTextAndMakeRules) {
  for (const auto& [path, format] : std::vector<std::pair<std::string, Format>>{
           {"examples/envoy/ratelimit.yaml", Format::kEnvoy},
           {"examples/import/limitador.yaml", Format::kLimitador},
           {"examples/import/nginx.conf", Format::kNginx},
           {"examples/import/haproxy.cfg", Format::kHaproxy},
           {"examples/proxies/nginx.conf", Format::kNginx},
           {"examples/proxies/haproxy.cfg", Format::kHaproxy}}) {
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(text.empty()) << path;
    EXPECT_EQ(DetectFormat(text), format) << path;
    const Imported imported = MustImport(text, format);
    EXPECT_NE(RuleSet::Parse(YamlOf(imported, format)).rules, nullptr) << path;
    const bool has_limits = path.find("/proxies/") == std::string::npos;
    EXPECT_EQ(!imported.rules.empty(), has_limits) << path << "\n" << WriteReport(imported);
    EXPECT_TRUE(!has_limits || Count(imported, Carry::kDropped) == 0) << path << "\n"
                                                                      << WriteReport(imported);
  }
  EXPECT_EQ(DetectFormat("hello\n"), std::nullopt);
}

}  // namespace
}  // namespace weir::import
