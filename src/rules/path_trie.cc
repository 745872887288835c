#include "rules/path_trie.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weir::rules {

void PathTrie::Add(const PathPattern& pattern, uint32_t rank, unsigned group) {
  uint32_t at = 0;
  const auto note = [&] {
    nodes_[at].groups |= uint64_t{1} << group;
    nodes_[at].least = std::min(nodes_[at].least, rank);
  };
  children_.resize(nodes_.size());
  note();
  for (const PatternSegment& segment : pattern.segments) {
    uint32_t& child =
        segment.kind == PatternSegment::Kind::kText ? children_[at][segment.text] : nodes_[at].any;
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      at = child;
      nodes_.emplace_back();
      children_.emplace_back();
    } else {
      at = child;
    }
    note();
  }
  (pattern.rest ? nodes_[at].rests : nodes_[at].ends).push_back(rank);
}

void PathTrie::Finish() {
  edges_.assign(std::bit_ceil(2 * nodes_.size() + 1), Edge{});
  for (uint32_t from = 0; from < children_.size(); ++from) {
    for (auto& [text, to] : children_[from]) {
      size_t at = HomeOf(from, HashOf(text));
      while (edges_[at].to != 0) {
        at = (at + 1) & (edges_.size() - 1);
      }
      edges_[at] = {from, to, text};
    }
  }
  children_ = {};
  for (Node& node : nodes_) {
    std::sort(node.ends.begin(), node.ends.end());
    std::sort(node.rests.begin(), node.rests.end());
  }
}

}  // namespace weir::rules
