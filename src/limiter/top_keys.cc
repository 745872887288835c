// The most frequent keys of a limiter, and of several nodes together.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "limiter/limiter_state.h"
#include "store/memory/watch.h"

namespace weir {

namespace {

// What is left out is among those that are absent then.
void Cut(TopList& list, size_t most) {
  std::sort(list.keys.begin(), list.keys.end(), [](const TopKey& a, const TopKey& b) {
    return a.count != b.count ? a.count > b.count : a.key < b.key;
  });
  if (list.keys.size() > most) {
    list.absent_most = std::max(list.absent_most, list.keys[most].count);
    list.keys.resize(most);
  }
}

}  // namespace

TopList Limiter::TopKeyList(size_t most) const {
  TopList list;
  if (state_->watch == nullptr) {
    return list;
  }
  const base::SpaceSaving merged = state_->watch->Merged();
  list.total = merged.total();
  list.absent_most = merged.AbsentMost();
  // One more than is asked for tells what those that are left out have at the most.
  const size_t seen = std::min<size_t>(most, store::Watch::kCountersMax) + 1;
  for (const base::SpaceSaving::Counter& counter : merged.Top(seen)) {
    list.keys.push_back({.key = std::string(counter.shown()),
                         .cut = counter.bytes > base::SpaceSaving::kTextBytes,
                         .count = counter.count,
                         .denied = counter.marked,
                         .error = counter.error});
  }
  Cut(list, most);
  return list;
}

std::vector<TopKey> Limiter::TopKeys(size_t most) const {
  return TopKeyList(most).keys;
}

// A key that a list does not have may have had up to that list's absent_most there.
TopList MergeTopLists(std::span<const TopList> lists, size_t most) {
  struct Sum {
    TopKey key;
    const TopList* last = nullptr;  // that had it
  };
  TopList merged;
  for (const TopList& list : lists) {
    merged.total += list.total;
    merged.absent_most += list.absent_most;
  }
  std::map<std::pair<std::string, bool>, Sum> sums;
  for (const TopList& list : lists) {
    for (const TopKey& key : list.keys) {
      Sum& sum = sums[{key.key, key.cut}];
      if (sum.last == nullptr) {
        sum.key = key;
        sum.key.denied = 0;
        sum.key.count = sum.key.error = merged.absent_most;
      }
      // Once a list: keys that were cut may look alike.
      const uint64_t absent = sum.last != &list ? list.absent_most : 0;
      sum.last = &list;
      sum.key.count = sum.key.count - absent + key.count;
      sum.key.error = sum.key.error - absent + key.error;
      sum.key.denied += key.denied;
    }
  }
  for (auto& [name, sum] : sums) {
    merged.keys.push_back(std::move(sum.key));
  }
  Cut(merged, most);
  return merged;
}

}  // namespace weir
