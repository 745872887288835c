#include "rules/rank_sets.h"

#include <algorithm>

namespace weir::rules {

namespace {

// Words that are looked at together: a loop of known length becomes a few wide instructions.
constexpr size_t kBlockWords = 8;

}  // namespace

RankSets::Id RankSets::AddBits(const std::vector<uint32_t>& ranks) {
  sets_.push_back({bits_.size(), kIsBits});
  bits_.resize(bits_.size() + words_);
  uint64_t* const words = bits_.data() + sets_.back().begin;
  for (const uint32_t rank : ranks) {
    words[rank / kWordBits] |= uint64_t{1} << (rank % kWordBits);
  }
  return static_cast<Id>(sets_.size() - 1);
}

RankSets::Id RankSets::AddBeside(std::vector<uint32_t> ranks, Id others) {
  if (ranks.empty()) {
    return kEmpty;
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  // A list of this length takes as much room as the bits, and longer to go through.
  if (ranks.size() >= words_ / 2) {
    const Id id = AddBits(ranks);
    Include(others, bits_.data() + sets_[id].begin);
    return id;
  }
  sets_.push_back({lists_.size(), static_cast<uint32_t>(ranks.size())});
  lists_.insert(lists_.end(), ranks.begin(), ranks.end());
  return static_cast<Id>(sets_.size() - 1);
}

bool RankSets::Narrow(const uint64_t* __restrict kept, uint64_t* __restrict words) const noexcept {
  uint64_t any = 0;
  size_t at = 0;
  for (; at + kBlockWords <= words_; at += kBlockWords) {
    for (size_t i = 0; i < kBlockWords; ++i) {
      words[at + i] &= kept[at + i];
      any |= words[at + i];
    }
  }
  for (; at < words_; ++at) {
    words[at] &= kept[at];
    any |= words[at];
  }
  return any != 0;
}

bool RankSets::AreAmong(const uint64_t* others, const uint64_t* words) const noexcept {
  size_t at = 0;
  for (; at + kBlockWords <= words_; at += kBlockWords) {
    uint64_t outside = 0;
    for (size_t i = 0; i < kBlockWords; ++i) {
      outside |= words[at + i] & ~others[at + i];
    }
    if (outside != 0) {
      return false;
    }
  }
  for (; at < words_; ++at) {
    if ((words[at] & ~others[at]) != 0) {
      return false;
    }
  }
  return true;
}

void RankSets::Include(Id id, uint64_t* words) const noexcept {
  const Set& set = sets_[id];
  if (set.size == kIsBits) {
    const uint64_t* const bits = bits_.data() + set.begin;
    for (size_t i = 0; i < words_; ++i) {
      words[i] |= bits[i];
    }
    return;
  }
  const uint32_t* const ranks = lists_.data() + set.begin;
  for (uint32_t i = 0; i < set.size; ++i) {
    words[ranks[i] / kWordBits] |= uint64_t{1} << (ranks[i] % kWordBits);
  }
}

}  // namespace weir::rules
