// Sets of ranks. A large one is kept as bits, a small one as a list, so that adding either to a
// request's candidates costs at most a pass over their words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rules {

// Alternatives that a rule set may have; their bits fit on a stack.
inline constexpr size_t kMaxRanks = 65'536;
inline constexpr size_t kWordBits = 64;
inline constexpr size_t kMaxRankWords = kMaxRanks / kWordBits;

class RankSets {
 public:
  using Id = uint32_t;
  static constexpr Id kEmpty = ~Id{0};

  explicit RankSets(size_t ranks = 0) : words_((ranks + kWordBits - 1) / kWordBits) {}

  // Words of the bits of a set.
  [[nodiscard]] size_t words() const noexcept { return words_; }

  // REQUIRES: every rank is below the number given at first. Of equal ranks one counts.
  Id AddBits(const std::vector<uint32_t>& ranks);
  // A set that is only ever added to `others`, which is one of bits: if it is large it is kept
  // together with them, so that a pass reads one set and not two.
  Id AddBeside(std::vector<uint32_t> ranks, Id others);

  // The words of a set, or null if it is a list. REQUIRES: id is not kEmpty.
  [[nodiscard]] const uint64_t* Bits(Id id) const noexcept {
    return sets_[id].size == kIsBits ? bits_.data() + sets_[id].begin : nullptr;
  }
  // Adds a set to `words`. REQUIRES: id is not kEmpty.
  void Include(Id id, uint64_t* words) const noexcept;
  // Leaves in `words` what is in `kept` as well. False: nothing.
  bool Narrow(const uint64_t* kept, uint64_t* words) const noexcept;
  // Whether all of `words` are in `others` as well.
  [[nodiscard]] bool AreAmong(const uint64_t* others, const uint64_t* words) const noexcept;

 private:
  static constexpr uint32_t kIsBits = ~uint32_t{0};

  struct Set {
    size_t begin = 0;
    uint32_t size = 0;
  };

  size_t words_;
  std::vector<Set> sets_;
  std::vector<uint64_t> bits_;
  std::vector<uint32_t> lists_;
};

}  // namespace weir::rules
