#include "rules/text_table.h"

#include <algorithm>
#include <bit>

namespace weir::rules {

void PrefixTable::Finish() {
  std::sort(texts_.begin(), texts_.end(),
            [](const Text& a, const Text& b) { return a.text < b.text; });
  for (uint32_t i = 1; i < texts_.size(); ++i) {
    // Whatever this one begins with, the one before begins with, too, or is.
    uint32_t shorter = i - 1;
    while (shorter != kNone && !texts_[i].text.starts_with(texts_[shorter].text)) {
      shorter = texts_[shorter].shorter;
    }
    texts_[i].shorter = shorter;
  }
}

uint32_t PrefixTable::Longest(std::string_view value) const noexcept {
  const auto after =
      std::upper_bound(texts_.begin(), texts_.end(), value,
                       [](std::string_view v, const Text& text) { return v < text.text; });
  if (after == texts_.begin()) {
    return kNone;
  }
  const auto before = after - 1;
  const size_t most = std::min(value.size(), before->text.size());
  const auto same =
      static_cast<size_t>(std::mismatch(value.begin(), value.begin() + static_cast<ptrdiff_t>(most),
                                        before->text.begin())
                              .first -
                          value.begin());
  auto at = static_cast<uint32_t>(before - texts_.begin());
  while (at != kNone && texts_[at].text.size() > same) {
    at = texts_[at].shorter;
  }
  return at;
}

bool SubstringTable::Add(std::string_view text, RankSets::Id set) {
  if (sets_.size() == kMaxRanks) {
    return false;
  }
  uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t child = at == 0 ? root_[byte] : nodes_[at].first_child;
    while (at != 0 && child != 0 && nodes_[child].byte != byte) {
      child = nodes_[child].next_sibling;
    }
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.next_sibling = nodes_[at].first_child, .byte = byte});
      nodes_[at].first_child = child;
      if (at == 0) {
        root_[byte] = child;
      }
    }
    at = child;
  }
  nodes_[at].text = static_cast<uint32_t>(sets_.size());
  sets_.push_back(set);
  return true;
}

void SubstringTable::Finish() {
  if (empty()) {
    return;
  }
  edges_.assign(std::bit_ceil(2 * nodes_.size()), Edge{});
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(edges_.size()));
  std::vector<uint32_t> order = {0};  // by depth
  for (size_t i = 0; i < order.size(); ++i) {
    for (uint32_t child = nodes_[order[i]].first_child; child != 0;
         child = nodes_[child].next_sibling) {
      order.push_back(child);
      if (order[i] == 0) {
        continue;
      }
      size_t at = HomeOf(order[i], nodes_[child].byte);
      while (edges_[at].from != kNone) {
        at = (at + 1) & (edges_.size() - 1);
      }
      edges_[at] = {order[i], child, nodes_[child].byte};
    }
  }
  // Those further back are less deep, so they are done before.
  for (const uint32_t parent : order) {
    for (uint32_t child = nodes_[parent].first_child; child != 0;
         child = nodes_[child].next_sibling) {
      Node& node = nodes_[child];
      node.back = parent == 0 ? 0 : Step(nodes_[parent].back, node.byte);
      node.end = node.text != kNone ? child : nodes_[node.back].end;
    }
  }
}

}  // namespace weir::rules
