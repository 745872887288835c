// YAML (and so JSON) read into a flat tree that knows where everything stood.
//
// What could cost more than it is worth is refused before it is built: aliases and anchors (eight
// lines of them can stand for gigabytes), depth, number of nodes, and long lines, of which yaml-cpp
// keeps all tokens. So any file that is refused for such a reason is refused within milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/issues.h"

namespace weir::rules {

enum class NodeKind : uint8_t { kNull, kScalar, kSequence, kMap };

class YamlTree;

// One node of a tree, which must outlive it.
class YamlNode {
 public:
  YamlNode(const YamlTree& tree, uint32_t index) : tree_(&tree), index_(index) {}

  [[nodiscard]] NodeKind kind() const;
  [[nodiscard]] bool IsScalar() const { return kind() == NodeKind::kScalar; }
  [[nodiscard]] bool IsSequence() const { return kind() == NodeKind::kSequence; }
  [[nodiscard]] bool IsMap() const { return kind() == NodeKind::kMap; }
  [[nodiscard]] Mark mark() const;
  [[nodiscard]] std::string_view text() const;  // of a scalar

  // Those of a sequence; of a map key, value, key, value.
  [[nodiscard]] std::vector<YamlNode> children() const;

 private:
  const YamlTree* tree_;
  uint32_t index_;
};

class YamlTree {
 public:
  static constexpr size_t kMaxDepth = 32;
  static constexpr size_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxLineBytes = size_t{128} << 10;
  static constexpr size_t kMaxDocuments = 64;

  // False: something was refused, and `issues` says what.
  bool Read(std::string_view text, Issues& issues);

  // One for each document that is not empty.
  [[nodiscard]] std::vector<YamlNode> documents() const;

 private:
  friend class YamlNode;
  friend class TreeBuilder;

  struct Record {
    NodeKind kind = NodeKind::kNull;
    uint32_t line = 0;
    uint32_t column = 0;
    uint32_t text_begin = 0;
    uint32_t text_size = 0;
    uint32_t end = 0;  // the index after all that is below
  };

  std::vector<Record> records_;  // each before its children
  std::vector<uint32_t> roots_;
  std::string texts_;
};

// What a node is, for messages: "a list", "\"5/mn\"".
[[nodiscard]] std::string Describe(const YamlNode& node);

}  // namespace weir::rules
