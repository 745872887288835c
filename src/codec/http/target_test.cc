#include "codec/http/target.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::codec::http {
namespace {

std::string Normal(std::string_view path) {
  std::string storage;
  const auto normal = NormalizePath(path, storage);
  return normal ? std::string(*normal) : "refused";
}

TEST(NormalizePath, LeavesAGoodPathWhereItIs) {
  const std::string_view path = "/api/v1/users/7";
  std::string storage;
  EXPECT_EQ(NormalizePath(path, storage)->data(), path.data());
  EXPECT_EQ(Normal("/"), "/");
  EXPECT_EQ(Normal("/a/"), "/a/");
}

TEST(NormalizePath, DecodesEscapesButForSlashPercentAndControls) {
  EXPECT_EQ(Normal("/%6Cog%69n"), "/login");
  EXPECT_EQ(Normal("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(Normal("/a%252Fb"), "/a%252Fb");
  EXPECT_EQ(Normal("/a%0Ab%7f"), "/a%0Ab%7F");
  EXPECT_EQ(Normal("/%C3%A4"), "/\xC3\xA4");
}

TEST(NormalizePath, ResolvesDotsAndSlashes) {
  EXPECT_EQ(Normal("/a/./b"), "/a/b");
  EXPECT_EQ(Normal("/a/../b"), "/b");
  EXPECT_EQ(Normal("/a/%2e%2E/b"), "/b");
  EXPECT_EQ(Normal("/a/b/.."), "/a/");
  EXPECT_EQ(Normal("/a/."), "/a/");
  EXPECT_EQ(Normal("/.."), "refused");
  EXPECT_EQ(Normal("/a/../.."), "refused");
  EXPECT_EQ(Normal("/a/.."), "/");
  EXPECT_EQ(Normal("//api///login//"), "/api/login/");
  EXPECT_EQ(Normal("/.well-known/x"), "/.well-known/x");
  EXPECT_EQ(Normal("/a/..b/...c"), "/a/..b/...c");
}

TEST(NormalizePath, RefusesWhatIsNoPath) {
  EXPECT_EQ(Normal(""), "refused");
  EXPECT_EQ(Normal("a"), "refused");
  EXPECT_EQ(Normal("*"), "refused");
  EXPECT_EQ(Normal("/%"), "refused");
  EXPECT_EQ(Normal("/%2"), "refused");
  EXPECT_EQ(Normal("/%zz"), "refused");
  EXPECT_EQ(Normal("/%00"), "refused");
  EXPECT_EQ(Normal(std::string_view("/a\0b", 4)), "refused");
}

TEST(NormalizePath, IsDoneAfterOnce) {
  for (const char* path : {"/%6Cogin", "/a%2fb", "/a%252Fb", "/a/../b//c/.", "/a%0a"}) {
    const std::string once = Normal(path);
    EXPECT_EQ(Normal(once), once) << path;
  }
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

Parameters ReadAll(std::string_view query) {
  std::string storage;
  QueryReader reader(query, storage);
  std::vector<QueryReader::Parameter> views;  // all must stay good together
  while (const auto parameter = reader.Next()) {
    views.push_back(*parameter);
  }
  Parameters parameters;
  for (const auto& [name, value] : views) {
    parameters.emplace_back(name, value);
  }
  return parameters;
}

TEST(QueryReader, ReadsAndDecodesParameters) {
  EXPECT_EQ(ReadAll("a=1&b=x%20y&c=x+y&%64=%26"),
            (Parameters{{"a", "1"}, {"b", "x y"}, {"c", "x y"}, {"d", "&"}}));
  EXPECT_EQ(ReadAll("a&b=&&=c&d=e=f&"),
            (Parameters{{"a", ""}, {"b", ""}, {"", "c"}, {"d", "e=f"}}));
  EXPECT_EQ(ReadAll("a=%&b=%2&c=%zz"), (Parameters{{"a", "%"}, {"b", "%2"}, {"c", "%zz"}}));
  EXPECT_EQ(ReadAll(""), Parameters{});
}

}  // namespace
}  // namespace weir::codec::http
