// Sorting that keeps equals in order, for lists that are short or nearly sorted. (std::stable_sort
// of libstdc++ 12 uses what clang calls deprecated.)
#pragma once

#include <algorithm>
#include <iterator>

namespace weir::import {

template <class List, class Less>
void StableOrder(List& list, const Less& less) {
  for (auto at = list.begin(); at != list.end(); ++at) {
    std::rotate(std::upper_bound(list.begin(), at, *at, less), at, std::next(at));
  }
}

}  // namespace weir::import
