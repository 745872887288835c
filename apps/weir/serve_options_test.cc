// What --print-config shows.
#include "apps/weir/serve_options.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::app {
namespace {

std::string Shown(const std::string& url) {
  ServeOptions options;
  options.config.redis = url;
  const std::string text = ToToml(options);
  const std::string name = "\nredis = \"";
  const size_t begin = text.find(name) + name.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

TEST(ServeOptions, APasswordIsNotShownWhereverItStands) {
  EXPECT_EQ(Shown("redis://:hunter2@h"), "redis://:***@h");
  EXPECT_EQ(Shown("redis://u:hunter2@h:1/2?db=3"), "redis://u:***@h:1/2?db=3");
  EXPECT_EQ(Shown("redis://h?password=hunter2"), "redis://h?password=***");
  EXPECT_EQ(Shown("redis+sentinel://:hunter2@a,b/m?sentinel-password=hunter2&sentinel-user=u"),
            "redis+sentinel://:***@a,b/m?sentinel-password=***&sentinel-user=u");
  for (const char* const url :
       {"redis://:p@hunter2@h", "redis://:p?hunter2@h", "redis://:p/hunter2@h",
        "redis://:p:hunter2@h", "redis://h?password=p&hunter2", "redis://h?password=p=hunter2",
        "redis://u:p@h?user=u&password=hunter2@h", "h:1?password=hunter2", "u:hunter2@h"}) {
    EXPECT_EQ(Shown(url).find("hunter2"), std::string::npos) << Shown(url);
  }
}

TEST(ServeOptions, WhatIsNoSecretIsShown) {
  for (const char* const url :
       {"redis://h", "redis://h:6379/3", "rediss://h?password-file=/run/secret&ca=/ca.pem",
        "redis+cluster://a:1,b:2?timeout=5ms", "unix:///run/redis.sock", "h:1,h:2"}) {
    EXPECT_EQ(Shown(url), url);
  }
}

}  // namespace
}  // namespace weir::app
