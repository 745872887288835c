// Many texts looked for in one value at once: those that it begins with, and those that it
// contains. Both take time for the value and for what is found, not for what there is to find.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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

// The automaton of Aho and Corasick, as a table: one step a byte, whatever the texts are.
class SubstringTable {
 public:
  // False: the table would grow too large. REQUIRES: text is above all texts added before.
  bool Add(std::string text, RankSets::Id set);
  void Finish();

  [[nodiscard]] bool empty() const noexcept { return texts_.empty(); }

  // Calls visit(set) once for each text that the value contains.
  template <class Visit>
  void Match(std::string_view value, Visit visit) const {
    std::array<uint64_t, kMaxRankWords> seen;
    std::fill_n(seen.begin(), (texts_.size() + kWordBits - 1) / kWordBits, uint64_t{0});
    uint32_t at = 0;
    for (const char c : value) {
      at = steps_[size_t{at} * classes_ + class_of_[static_cast<unsigned char>(c)]];
      for (uint32_t end = nodes_[at].end; end != 0; end = nodes_[nodes_[end].back].end) {
        const uint32_t text = nodes_[end].text;
        uint64_t& word = seen[text / kWordBits];
        const uint64_t bit = uint64_t{1} << (text % kWordBits);
        if ((word & bit) != 0) {
          break;  // and so were all that it ends with
        }
        word |= bit;
        visit(texts_[text].second);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr size_t kMaxSteps = size_t{8} << 20;

  struct Node {
    uint32_t back = 0;  // of the longest end of this text that is a beginning of some text
    uint32_t end = 0;   // the nearest of this and those further back where a text ends; 0: none
    uint32_t text = kNone;
  };

  void AddNodes();

  std::vector<std::pair<std::string, RankSets::Id>> texts_;
  size_t size_ = 1;  // nodes that the texts take
  size_t classes_ = 1;
  std::array<uint16_t, 256> class_of_{};  // bytes that no text has are all of class 0
  std::vector<Node> nodes_;
  std::vector<uint32_t> steps_;  // by node and class
};

}  // namespace weir::rules
