// Rule files that change, break, and come back.
#include "server/rule_source.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace weir::server {
namespace {

std::string Rules(int limit) {
  return "rules:\n  - name: all\n    per: key\n    limit: " + std::to_string(limit) + "/h\n";
}

class Source : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  RuleSource::Outcome Reload(RuleSource& source) {
    return source.Reload([this](std::shared_ptr<const RuleSet> rules) -> Result<void> {
      if (refuse_) {
        return Error::Invalid("no room");
      }
      applied_ = std::move(rules);
      return {};
    });
  }

  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/rules.yaml";
  std::shared_ptr<const RuleSet> applied_;
  bool refuse_ = false;
};

TEST_F(Source, TakesAGoodChangeOnce) {
  Write(Rules(1));
  RuleSource source({path_}, "");
  ASSERT_TRUE(source.LoadFirst());
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
  Write(Rules(2));
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
  EXPECT_EQ(source.status().version, applied_->version());
  EXPECT_EQ(source.status().loads, 2U);
}

TEST_F(Source, ABadChangeCountsOnceAndGoesWhenMended) {
  Write(Rules(1));
  RuleSource source({path_}, "");
  ASSERT_TRUE(source.LoadFirst());
  Write("rules: 7\n");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused);
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
  EXPECT_EQ(source.status().failures, 1U);
  EXPECT_NE(source.status().error.find("rules.yaml:1:"), std::string::npos)
      << source.status().error;
  Write(Rules(1));
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
  EXPECT_EQ(source.status().error, "");
  std::filesystem::remove(path_);
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused);
  Write(Rules(3));
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
}

TEST_F(Source, WhatCannotBeAppliedIsRefused) {
  Write(Rules(1));
  RuleSource source({path_}, "");
  ASSERT_TRUE(source.LoadFirst());
  refuse_ = true;
  Write(Rules(2));
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused);
  EXPECT_EQ(source.status().error, "no room");
  EXPECT_EQ(source.status().loads, 1U);
}

TEST_F(Source, BelievesNoFileThatWasCutShort) {
  const std::string text =
      Rules(10) + "  - name: more\n    per: ip\n    limit: 20/h\n    burst: 15\n";
  Write(text);
  RuleSource source({path_}, "");
  ASSERT_TRUE(source.LoadFirst());
  for (size_t size = 0; size < text.size(); ++size) {
    Write(text.substr(0, size));
    EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused) << size;
    EXPECT_EQ(applied_, nullptr);
  }
  Write(Rules(10) + "# the other rule is not needed any more\n");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
}

// With the end mark there is no moment at which a part of the new file is taken for all of it.
TEST_F(Source, WithAnEndMarkTakesTheOldOrTheWholeNewFile) {
  const std::string before = Rules(10) + "...\n";
  const std::string after = Rules(20) +
                            "  - name: more\n    per: ip\n    limit: 20/h\n    burst: 15\n" +
                            "  - name: last\n    per: user\n    limit: 1/h\n...\n";
  Write(before);
  RuleSource source({path_}, "");
  ASSERT_TRUE(source.LoadFirst());
  for (size_t size = 0; size < after.size(); ++size) {
    Write(after.substr(0, size));
    EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused) << size;
    EXPECT_EQ(applied_, nullptr) << size;
    EXPECT_EQ(source.text(), before);
  }
  Write(after);
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(applied_->rules().size(), 3U);
  EXPECT_EQ(source.text(), after);
  Write(Rules(30) + "...\n");  // fewer rules, and said to be all
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(applied_->rules().size(), 1U);
}

TEST_F(Source, AFileCutShortWhileNobodyLookedIsNotTakenAtTheStart) {
  const std::string text = Rules(5) + "  - {name: more, per: ip, limit: 20/h}\n";
  Write(text);
  ASSERT_TRUE(RuleSource({path_}, folder_.path()).LoadFirst());
  for (size_t size = 0; size < text.size(); ++size) {
    Write(text.substr(0, size));
    RuleSource source({path_}, folder_.path());
    const auto rules = source.LoadFirst();
    ASSERT_TRUE(rules) << size;
    EXPECT_EQ((*rules)->rules().size(), 2U) << size;
    // All but the newline is all: only the end of the line is gone.
    EXPECT_EQ(source.status().from_last_good, size + 1 < text.size()) << size;
    EXPECT_EQ(source.text(), text);
  }
}

// What is in effect after such a start is what later looks at the files are compared with.
TEST_F(Source, AFileCutShortBeforeTheStartIsNotTakenAfterItEither) {
  const std::string text = Rules(5) + "  - {name: more, per: ip, limit: 20/h}\n";
  Write(text);
  ASSERT_TRUE(RuleSource({path_}, folder_.path()).LoadFirst());
  Write(Rules(5));
  RuleSource source({path_}, folder_.path());
  ASSERT_TRUE(source.LoadFirst());
  ASSERT_TRUE(source.status().from_last_good);
  EXPECT_NE(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(applied_, nullptr);
  EXPECT_NE(source.status().error, "");
  EXPECT_EQ(source.status().failures, 1U) << "told of at the start already";
  Write(text);
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
  EXPECT_EQ(source.status().error, "");
  EXPECT_FALSE(source.status().from_last_good);
  Write(Rules(5) + "# one rule is enough\n");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
}

TEST_F(Source, SeveralFilesAreTakenTogetherOrNotAtAll) {
  const std::string second = folder_.path() + "/more.yaml";
  const auto write_second = [&second](const std::string& text) {
    std::ofstream(second, std::ios::binary) << text;
  };
  Write(Rules(1));
  write_second("rules: [{name: more, per: ip, limit: 1/h}]\n");
  RuleSource source({path_, second}, "");
  ASSERT_TRUE(source.LoadFirst());
  Write(Rules(2));
  write_second("rules: [{name: more, per: ip, limit: 1/h}");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused);
  EXPECT_EQ(applied_, nullptr);
  write_second("rules: [{name: more, per: ip, limit: 2/h}]\n");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(applied_->rules().size(), 2U);
}

TEST_F(Source, OfSeveralFilesTheOneThatWasCutShortIsKnownAfterAStart) {
  const std::string second = folder_.path() + "/more.yaml";
  const std::string text = "rules:\n  - {name: b, per: ip, limit: 1/h}\n";
  const auto write_second = [&second](const std::string& all) {
    std::ofstream(second, std::ios::binary) << all;
  };
  Write(Rules(1));
  write_second(text + "  - {name: c, per: ip, limit: 1/h}\n");
  ASSERT_TRUE(RuleSource({path_, second}, folder_.path()).LoadFirst());
  write_second(text);
  RuleSource source({path_, second}, folder_.path());
  const auto rules = source.LoadFirst();
  ASSERT_TRUE(rules);
  EXPECT_EQ((*rules)->rules().size(), 3U);
  Write(Rules(2));
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kRefused);
  write_second(text + "# c is gone\n");
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  EXPECT_EQ(applied_->rules().size(), 2U);
}

TEST_F(Source, StartsWithTheLastGoodRules) {
  Write(Rules(5));
  {
    RuleSource source({path_}, folder_.path());
    ASSERT_TRUE(source.LoadFirst());
    Write(Rules(6));
    EXPECT_EQ(Reload(source), RuleSource::Outcome::kApplied);
  }
  Write("rules: [");
  EXPECT_FALSE(RuleSource({path_}, "").LoadFirst());
  RuleSource source({path_}, folder_.path());
  const auto rules = source.LoadFirst();
  ASSERT_TRUE(rules);
  EXPECT_EQ((*rules)->rules().front().variants.front().quotas.front().quota.limit(), 6U);
  EXPECT_TRUE(source.status().from_last_good);
  EXPECT_NE(source.status().error, "");
}

TEST_F(Source, NoFilesAreNoRules) {
  RuleSource source({}, "");
  const auto rules = source.LoadFirst();
  ASSERT_TRUE(rules);
  EXPECT_TRUE((*rules)->rules().empty());
  EXPECT_EQ(Reload(source), RuleSource::Outcome::kUnchanged);
}

}  // namespace
}  // namespace weir::server
