// Whatever lies among the outside vectors has a reader; what has none fails here by its name.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "testing/vectors.h"
#include "tests/conformance/vector_documents.h"

namespace weir::vectors {
namespace {

// What is read beside cases, and where.
const std::set<std::string>& KnownParts() {
  static const std::set<std::string> parts = {
      "source",  // whence it comes
      "rate",         "errors",        "rate_periods",
      "clock_jumps",  "extra",  // gcra_, throttle_vectors_test
      "resp",                   // throttle_vectors_test and over the wire
      "storage_keys", "overall_rules", "response_headers"};  // envoy_vectors_test
  return parts;
}

// The parts that no reader knows.
std::vector<std::string> Unread(const json& document) {
  std::vector<std::string> unread;
  for (const auto& [name, part] : document.items()) {
    if (!part.is_structured() || KnownParts().count(name) != 0) {
      continue;  // single values are notes, or what a document says for all of its cases
    }
    if (!part.is_array()) {
      unread.push_back(name);
      continue;
    }
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i].is_object() && KindOf(part[i]) == Kind::kUnknown) {
        unread.push_back(name + "[" + std::to_string(i) + "]");
      }
    }
  }
  return unread;
}

TEST(VectorFiles, EveryOneHasAReader) {
  const std::vector<testing::OutsideFile> files = testing::OutsideFiles("vectors");
  if (files.empty()) {
    testing::SayNoOutsideData("vector files");
  }
  for (const testing::OutsideFile& file : files) {
    const json document = json::parse(file.Read(), nullptr, false);
    if (!document.is_object()) {
      ADD_FAILURE() << file.name << " is no JSON object, so nothing reads it";
      continue;
    }
    EXPECT_EQ(Unread(document), std::vector<std::string>()) << "without a reader in " << file.name;
  }
}

TEST(VectorFiles, WhatHasNoReaderIsNamed) {
  const json document = json::parse(R"({"set": "x", "format": "y", "source": {"repo": "z"},
      "crashes": ["text"], "count": [{"limit": 1, "window_s": 1, "ops": []}, {"limit": 1}],
      "any name": [{"rate_per_s": 1}], "novel": {"a": 1}, "others": [{"b": 2}]})");
  EXPECT_EQ(Unread(document), (std::vector<std::string>{"count[1]", "novel", "others[0]"}));
}

}  // namespace
}  // namespace weir::vectors
