// The table's compare in plain C++: every processor, and the thread sanitizer, which cannot follow
// vector loads.
#include <bit>

#include "algorithm/fixed_window.h"
#include "algorithm/gcra.h"
#include "algorithm/gcra_queue.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliding_window.h"
#include "store/memory/attempt.h"
#include "store/memory/engine.h"
#include "store/memory/give_back.h"
#include "store/memory/lease_engine.h"
#include "store/memory/no_vectors.h"

#define WEIR_ISA scalar
#define WEIR_TARGET

namespace weir::store::scalar {

namespace {

// Relaxed: a match is only a hint; the word is loaded again, properly, before it is believed, and a
// miss is confirmed under the stripe lock.
struct Matcher {
  template <class Layout, uint64_t kMask>
  static unsigned Match(const Line& line, uint64_t wanted) noexcept {
    unsigned matches = 0;
    for (unsigned i = 0; i < Layout::kSlots; ++i) {
      const uint64_t word = line.words[i * (8 / Layout::kSlots)].load(std::memory_order_relaxed);
      matches |= static_cast<unsigned>((word & kMask) == wanted) << i;
    }
    return matches;
  }

  static bool HasNul(const base::UsualKey& key) noexcept { return key.HasNul(); }
};

template <class Layout, class Algo>
using Eight = NoEights<Layout, Algo>;

template <class Layout, class Algo>
using Single = NoSingle<Layout, Algo>;

}  // namespace

}  // namespace weir::store::scalar

#include "store/memory/engine_batch.h"
