// The table's compare in plain C++: every processor, and the thread sanitizer, which cannot follow
// vector loads.
#include <bit>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/engine.h"

#define WEIR_ISA scalar
#define WEIR_TARGET

namespace weir::store::scalar {

namespace {

// Relaxed: a match is only a hint; the word is loaded again, properly, before it is believed, and a
// miss is confirmed under the stripe lock.
struct Matcher {
  static unsigned Compact(const Line& line, uint64_t identity) noexcept {
    unsigned matches = 0;
    for (unsigned i = 0; i < CompactLayout::kSlots; ++i) {
      const uint64_t word = line.words[i].load(std::memory_order_relaxed);
      matches |= static_cast<unsigned>((word & CompactLayout::kIdentityMask) == identity) << i;
    }
    return matches;
  }

  static unsigned Wide(const Line& line, uint64_t identity) noexcept {
    unsigned matches = 0;
    for (unsigned i = 0; i < WideLayout::kSlots; ++i) {
      const uint64_t word = line.words[std::size_t{2} * i].load(std::memory_order_relaxed);
      matches |= static_cast<unsigned>((word & WideLayout::kIdentityMask) == identity) << i;
    }
    return matches;
  }
};

}  // namespace

}  // namespace weir::store::scalar

#include "store/memory/engine_hot.h"
