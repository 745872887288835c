// What threads were admitted, held against the bucket that admitted it: for stress tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace weir::store {

// How many charges a bucket would not have admitted. A charge has a `stamp` and a `cost`, in units
// of the bucket's emission interval.
template <class Paid>
[[nodiscard]] uint64_t BeyondBucket(std::vector<Paid>& paid, int64_t burst) {
  std::stable_sort(paid.begin(), paid.end(),
                   [](const Paid& a, const Paid& b) { return a.stamp < b.stamp; });
  uint64_t beyond = 0;
  int64_t tat = std::numeric_limits<int64_t>::min() / 2;
  for (const Paid& each : paid) {
    tat = std::max(tat, each.stamp) + each.cost;
    beyond += static_cast<uint64_t>(each.cost > 0 && tat > each.stamp + burst);
  }
  return beyond;
}

}  // namespace weir::store
