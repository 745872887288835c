// Many texts looked for in one value at once: those that it begins with, and those that it
// contains. Both take time for the value and for what is found, not for what there is to find.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rank_sets.h"

namespace weir::rules {

// Texts in order, each with the longest other one that it begins with. All that a value begins with
// are then one chain, which a binary search finds.
class PrefixTable {
 public:
  void Add(std::string text, RankSets::Id set) { texts_.push_back({std::move(text), set, kNone}); }
  // After the last Add; no text was added twice.
  void Finish();

  [[nodiscard]] bool empty() const noexcept { return texts_.empty(); }

  template <class Visit>
  void Match(std::string_view value, Visit visit) const {
    for (uint32_t at = Longest(value); at != kNone; at = texts_[at].shorter) {
      visit(texts_[at].set);
    }
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Text {
    std::string text;
    RankSets::Id set = RankSets::kEmpty;
    uint32_t shorter = kNone;
  };

  [[nodiscard]] uint32_t Longest(std::string_view value) const noexcept;

  std::vector<Text> texts_;
};

// The automaton of Aho and Corasick: one step a byte, and one more for each step back.
class SubstringTable {
 public:
  SubstringTable() : nodes_(1) {}

  // False: there are too many already. REQUIRES: text is not empty and was not added before.
  bool Add(std::string_view text, RankSets::Id set);
  void Finish();

  [[nodiscard]] bool empty() const noexcept { return sets_.empty(); }

  // Calls visit(set) once for each text that the value contains.
  template <class Visit>
  void Match(std::string_view value, Visit visit) const {
    std::array<uint64_t, kMaxRankWords> seen;
    std::fill_n(seen.begin(), (sets_.size() + kWordBits - 1) / kWordBits, uint64_t{0});
    uint32_t at = 0;
    for (const char c : value) {
      at = Step(at, static_cast<unsigned char>(c));
      for (uint32_t end = nodes_[at].end; end != 0; end = nodes_[nodes_[end].back].end) {
        const uint32_t text = nodes_[end].text;
        uint64_t& word = seen[text / kWordBits];
        const uint64_t bit = uint64_t{1} << (text % kWordBits);
        if ((word & bit) != 0) {
          break;  // and so were all that it ends with
        }
        word |= bit;
        visit(sets_[text]);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Node {
    uint32_t back = 0;  // of the longest end of this text that is a beginning of some text
    uint32_t end = 0;   // the nearest of this and those further back where a text ends; 0: none
    uint32_t text = kNone;
    uint32_t first_child = 0;
    uint32_t next_sibling = 0;
    unsigned char byte = 0;
  };
  struct Edge {
    uint32_t from = kNone;
    uint32_t to = 0;
    unsigned char byte = 0;
  };

  [[nodiscard]] size_t HomeOf(uint32_t from, unsigned char byte) const noexcept {
    return ((uint64_t{from} << 8 | byte) * 0x9e3779b97f4a7c15U) >> shift_;
  }
  [[nodiscard]] uint32_t Child(uint32_t from, unsigned char byte) const noexcept {
    if (from == 0) {
      return root_[byte];
    }
    for (size_t i = HomeOf(from, byte); edges_[i].from != kNone;
         i = (i + 1) & (edges_.size() - 1)) {
      if (edges_[i].from == from && edges_[i].byte == byte) {
        return edges_[i].to;
      }
    }
    return 0;
  }
  [[nodiscard]] uint32_t Step(uint32_t at, unsigned char byte) const noexcept {
    uint32_t next = Child(at, byte);
    while (next == 0 && at != 0) {
      at = nodes_[at].back;
      next = Child(at, byte);
    }
    return next;
  }

  std::vector<Node> nodes_;
  std::vector<RankSets::Id> sets_;  // by text
  std::array<uint32_t, 256> root_{};
  std::vector<Edge> edges_;  // open addressing; a power of two of them
  unsigned shift_ = 0;
};

}  // namespace weir::rules
