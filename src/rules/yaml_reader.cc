#include "rules/yaml_reader.h"

#include <algorithm>
#include <istream>
#include <streambuf>
#include <string>
#include <unordered_set>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "weir/rule_set.h"

#include "base/spelling.h"

namespace weir::rules {

namespace {

Mark At(const YAML::Mark& mark) {
  return mark.line < 0
             ? Mark{}
             : Mark{static_cast<uint32_t>(mark.line) + 1, static_cast<uint32_t>(mark.column) + 1};
}

// Ends the parse from within a handler; never leaves this file.
struct Refused {
  Mark mark;
  std::string message;
};

// A view of text as a stream, without a copy.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* const begin = const_cast<char*>(text.data());  // NOLINT: only read from
    setg(begin, begin, begin + text.size());
  }
};

// What yaml-cpp would take long over, seen at a glance.
bool LooksReasonable(std::string_view text, Issues& issues) {
  if (text.size() > kMaxRuleFileBytes) {
    issues.Error({}, "the file has " + std::to_string(text.size()) + " bytes; the most is " +
                         std::to_string(kMaxRuleFileBytes));
    return false;
  }
  uint32_t line = 1;
  size_t line_begin = 0;
  size_t separators = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? '\n' : text[i];
    const Mark here{line, static_cast<uint32_t>(i - line_begin) + 1};
    if (c == '\0') {
      issues.Error(here, "a NUL byte; expected text in UTF-8");
      return false;
    }
    if (i - line_begin > YamlTree::kMaxLineBytes) {
      issues.Error({line, 1}, "a line of more than " + std::to_string(YamlTree::kMaxLineBytes) +
                                  " bytes; break it into several");
      return false;
    }
    separators += c == ',' || c == ':' || c == '\n' || c == '"' || c == '[' || c == '{' ? 1 : 0;
    if (c == '\n') {
      ++line;
      line_begin = i + 1;
    }
  }
  if (separators > YamlTree::kMaxNodes) {
    issues.Error({}, "the file has more than " + std::to_string(YamlTree::kMaxNodes) +
                         " parts; expected fewer");
    return false;
  }
  return true;
}

}  // namespace

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlTree& tree) : tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    throw Refused{At(mark), "an anchor (&" + name + "); anchors and aliases are not allowed"};
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refused{At(mark), "an alias; anchors and aliases are not allowed"};
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    if (!open_.empty()) {  // an empty document is none
      Add(mark, NodeKind::kNull);
    }
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    RefuseTag(mark, tag);
    YamlTree::Record& record = Add(mark, NodeKind::kScalar);
    record.text_begin = static_cast<uint32_t>(tree_.texts_.size());
    record.text_size = static_cast<uint32_t>(value.size());
    tree_.texts_ += value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, NodeKind::kSequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, NodeKind::kMap);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override {
    RefuseDuplicates(open_.back());
    Close();
  }

 private:
  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{At(mark), "the tag " + base::Quoted(tag) + "; tags are not allowed"};
    }
  }

  YamlTree::Record& Add(const YAML::Mark& mark, NodeKind kind) {
    const auto index = static_cast<uint32_t>(tree_.records_.size());
    if (index == YamlTree::kMaxNodes) {
      throw Refused{At(mark), "the file has more than " + std::to_string(YamlTree::kMaxNodes) +
                                  " parts; expected fewer"};
    }
    if (open_.empty()) {
      tree_.roots_.push_back(index);
    }
    const Mark at = At(mark);
    tree_.records_.push_back({kind, at.line, at.column, 0, 0, index + 1});
    return tree_.records_.back();
  }

  void Open(const YAML::Mark& mark, const std::string& tag, NodeKind kind) {
    RefuseTag(mark, tag);
    if (open_.size() == YamlTree::kMaxDepth) {
      throw Refused{At(mark), "nested more than " + std::to_string(YamlTree::kMaxDepth) +
                                  " deep; expected less"};
    }
    Add(mark, kind);
    open_.push_back(static_cast<uint32_t>(tree_.records_.size()) - 1);
  }

  void Close() {
    tree_.records_[open_.back()].end = static_cast<uint32_t>(tree_.records_.size());
    open_.pop_back();
  }

  void RefuseDuplicates(uint32_t map) {
    std::unordered_set<std::string_view> seen;
    bool is_key = true;
    for (uint32_t i = map + 1; i < tree_.records_.size(); i = tree_.records_[i].end) {
      const YamlNode node(tree_, i);
      if (is_key && !node.IsScalar()) {
        throw Refused{node.mark(), Describe(node) + " as a key; expected a name"};
      }
      if (is_key && !seen.insert(node.text()).second) {
        throw Refused{node.mark(),
                      "the key " + base::Quoted(node.text()) + " is there twice; expected it once"};
      }
      is_key = !is_key;
    }
  }

  YamlTree& tree_;
  std::vector<uint32_t> open_;
};

bool YamlTree::Read(std::string_view text, Issues& issues) {
  if (!LooksReasonable(text, issues)) {
    return false;
  }
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    TreeBuilder builder(*this);
    for (size_t documents = 0; parser.HandleNextDocument(builder); ++documents) {
      if (documents == kMaxDocuments) {
        throw Refused{{}, "more than " + std::to_string(kMaxDocuments) + " documents"};
      }
    }
    return true;
  } catch (const Refused& refused) {
    issues.Error(refused.mark, refused.message);
  } catch (const YAML::Exception& error) {
    issues.Error(At(error.mark), "not YAML: " + error.msg);
  }
  return false;
}

std::vector<YamlNode> YamlTree::documents() const {
  std::vector<YamlNode> nodes;
  for (const uint32_t root : roots_) {
    nodes.emplace_back(*this, root);
  }
  return nodes;
}

NodeKind YamlNode::kind() const {
  return tree_->records_[index_].kind;
}

Mark YamlNode::mark() const {
  return {tree_->records_[index_].line, tree_->records_[index_].column};
}

std::string_view YamlNode::text() const {
  const YamlTree::Record& record = tree_->records_[index_];
  return std::string_view(tree_->texts_).substr(record.text_begin, record.text_size);
}

std::vector<YamlNode> YamlNode::children() const {
  std::vector<YamlNode> nodes;
  const uint32_t end = tree_->records_[index_].end;
  for (uint32_t i = index_ + 1; i < end; i = tree_->records_[i].end) {
    nodes.emplace_back(*tree_, i);
  }
  return nodes;
}

std::string Describe(const YamlNode& node) {
  switch (node.kind()) {
    case NodeKind::kNull:
      return "nothing";
    case NodeKind::kSequence:
      return "a list";
    case NodeKind::kMap:
      return "a mapping";
    case NodeKind::kScalar:
      break;
  }
  return base::Quoted(node.text());
}

}  // namespace weir::rules
