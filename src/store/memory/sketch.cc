#include "store/memory/sketch.h"

#include <algorithm>
#include <bit>
#include <new>

namespace weir::store {

using algorithm::LongLanes;
using algorithm::ShortLanes;

Sketch::Sketch(size_t bytes, base::MappedMemory::Pages pages) noexcept : memory_(bytes, pages) {
  for (std::atomic<Part>& part : parts_) {
    part.store(kNoPart);
  }
  if (memory_.data() == nullptr) {
    return;
  }
  words_ = static_cast<Word*>(memory_.data());
  for (uint64_t i = 0; i < word_count(); ++i) {
    new (&words_[i]) Word{0};
  }
}

// Folds the upper half of a group's part onto its lower one and leaves the upper to nobody.
template <class Lanes>
void Sketch::Cut(uint8_t group, uint8_t shift, uint64_t now_ns) noexcept {
  const Part old = parts_[group].load();
  const uint64_t half = CountOf(old) / 2;
  const int64_t near = static_cast<int64_t>(now_ns >> shift);
  // From here on all read both halves and charge the lower one. Whoever swapped a word of the old
  // part after this finds it gone, and charges again.
  parts_[group].store((old - 1) | kBeingCut);
  WEIR_TEST_POINT(kSketchCut);
  for (uint64_t i = 0; i < half; ++i) {
    Word& lower = words_[BeginOf(old) + i];
    const uint64_t upper = words_[BeginOf(old) + half + i].load();
    uint64_t seen = lower.load();
    while (!lower.compare_exchange_weak(seen, Lanes::Merge(seen, upper, near))) {
    }
  }
  WEIR_TEST_POINT(kSketchFolded);
  parts_[group].store(old - 1);
}

void Sketch::AddGroup(const Plan& plan, uint64_t now_ns) noexcept {
  const base::MutexLock lock(mutex_);
  if (parts_[plan.group].load() != kNoPart) {
    return;
  }
  unsigned largest = Plan::kGroups;
  for (unsigned group = 0; group < Plan::kGroups; ++group) {
    const Part part = parts_[group].load();
    if (part != kNoPart &&
        (largest == Plan::kGroups || CountOf(part) > CountOf(parts_[largest].load()))) {
      largest = group;
    }
  }
  Part mine = static_cast<Part>(std::countr_zero(word_count()));
  if (largest != Plan::kGroups) {
    const Group& cut = groups_[largest];
    if (cut.lane_bits == ShortLanes::kBits) {
      Cut<ShortLanes>(static_cast<uint8_t>(largest), cut.shift, now_ns);
    } else {
      Cut<LongLanes>(static_cast<uint8_t>(largest), cut.shift, now_ns);
    }
    groups_[largest].cursor = 0;
    const Part left = parts_[largest].load();
    mine = (BeginOf(left) + CountOf(left)) << 8 | (left & 255U);
  }
  const int64_t tick = plan.TickOf(now_ns);
  const uint64_t fresh =
      plan.lane_bits == ShortLanes::kBits ? ShortLanes::Empty(tick) : LongLanes::Empty(tick);
  for (uint64_t i = 0; i < CountOf(mine); ++i) {
    words_[BeginOf(mine) + i].store(fresh);
  }
  groups_[plan.group] =
      Group{.shift = plan.shift, .lane_bits = plan.lane_bits, .cursor = 0, .swept_ns = now_ns};
  parts_[plan.group].store(mine);
}

template <class Lanes>
void Sketch::SweepPart(unsigned index, uint64_t now_ns, uint64_t floor_ns) noexcept {
  Group& group = groups_[index];
  const Part part = parts_[index].load();
  const uint64_t count = CountOf(part);
  const unsigned wrap_bits = Lanes::kWrapBits + group.shift;
  const uint64_t pass_ns =
      (wrap_bits < 64 ? uint64_t{1} << wrap_bits : base::kUint64Max) / kPassesPerWrap;
  const uint64_t elapsed_ns = now_ns - std::min(group.swept_ns, now_ns);
  const uint64_t due = std::min(base::MulDivCeil(count, elapsed_ns, pass_ns), count);
  // After a pause the words are read as of its beginning: that is when their clocks were right.
  const auto near = static_cast<int64_t>(group.swept_ns >> group.shift);
  const auto floor = static_cast<int64_t>(floor_ns >> group.shift);
  for (uint64_t i = 0; i < due; ++i) {
    Word& word = words_[BeginOf(part) + group.cursor];
    group.cursor = (group.cursor + 1) & (count - 1);
    uint64_t seen = word.load();
    if (Lanes::Latest(seen, near) < floor - Lanes::kPast) {
      // Losing against a charge is fine: the word is in the present then.
      word.compare_exchange_strong(seen, Lanes::Empty(floor));
    }
  }
  group.swept_ns = std::max(group.swept_ns, now_ns);
}

void Sketch::Sweep(uint64_t now_ns, uint64_t floor_ns) noexcept {
  const base::MutexLock lock(mutex_);
  for (unsigned group = 0; group < Plan::kGroups; ++group) {
    if (parts_[group].load() == kNoPart) {
      continue;
    }
    if (groups_[group].lane_bits == ShortLanes::kBits) {
      SweepPart<ShortLanes>(group, now_ns, floor_ns);
    } else {
      SweepPart<LongLanes>(group, now_ns, floor_ns);
    }
  }
}

}  // namespace weir::store
