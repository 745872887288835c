#include "base/space_saving.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace weir::base {

SpaceSaving::SpaceSaving(size_t counters)
    : capacity_(counters), index_(std::bit_ceil(2 * counters), kNone) {
  heap_.reserve(capacity_);
}

// Linear probing in a table at most half full. The hash is keyed, but its low bits have been used
// to choose places before.
size_t SpaceSaving::Probe(uint64_t hash) const noexcept {
  const size_t mask = index_.size() - 1;
  size_t place = (hash >> 17) & mask;
  while (index_[place] != kNone && heap_[index_[place]].hash != hash) {
    place = (place + 1) & mask;
  }
  return place;
}

void SpaceSaving::Put(size_t heap_place, const Counter& counter) noexcept {
  heap_[heap_place] = counter;
  index_[counter.place] = static_cast<uint32_t>(heap_place);
}

// Moves up what was pushed past the freed place, so that searches need no marks.
void SpaceSaving::RemoveFromIndex(size_t place) noexcept {
  const size_t mask = index_.size() - 1;
  for (size_t next = (place + 1) & mask; index_[next] != kNone; next = (next + 1) & mask) {
    const size_t home = (heap_[index_[next]].hash >> 17) & mask;
    if (((next - home) & mask) >= ((next - place) & mask)) {
      index_[place] = index_[next];
      heap_[index_[place]].place = static_cast<uint32_t>(place);
      place = next;
    }
  }
  index_[place] = kNone;
}

void SpaceSaving::Sink(size_t heap_place) noexcept {
  const Counter moved = heap_[heap_place];
  for (;;) {
    size_t child = 2 * heap_place + 1;
    if (child >= heap_.size()) {
      break;
    }
    if (child + 1 < heap_.size() && heap_[child + 1].count < heap_[child].count) {
      ++child;
    }
    if (heap_[child].count >= moved.count) {
      break;
    }
    Put(heap_place, heap_[child]);
    heap_place = child;
  }
  Put(heap_place, moved);
}

// REQUIRES: there is room, and the hash is new.
void SpaceSaving::Insert(Counter counter) noexcept {
  const size_t place = Probe(counter.hash);
  counter.place = static_cast<uint32_t>(place);
  heap_.push_back(counter);
  index_[place] = static_cast<uint32_t>(heap_.size() - 1);
  for (size_t at = heap_.size() - 1; at != 0;) {
    const size_t parent = (at - 1) / 2;
    if (heap_[parent].count <= heap_[at].count) {
      break;
    }
    const Counter up = heap_[at];
    Put(at, heap_[parent]);
    Put(parent, up);
    at = parent;
  }
}

void SpaceSaving::Add(uint64_t hash, std::string_view key, uint64_t count, bool marked) noexcept {
  total_ += count;
  const size_t place = Probe(hash);
  if (index_[place] != kNone) {
    Counter& counter = heap_[index_[place]];
    counter.count += count;
    counter.marked += marked ? count : 0;
    Sink(index_[place]);
    return;
  }
  const uint64_t most = AbsentMost();
  Counter counter{.hash = hash,
                  .count = most + count,
                  .error = most,
                  .marked = marked ? count : 0,
                  .place = 0,
                  .bytes = static_cast<uint32_t>(key.size())};
  std::memcpy(counter.text, key.data(), std::min(key.size(), kTextBytes));
  if (heap_.size() < capacity_) {
    Insert(counter);
    return;
  }
  RemoveFromIndex(heap_[0].place);
  counter.place = static_cast<uint32_t>(Probe(hash));
  Put(0, counter);
  Sink(0);
}

uint64_t SpaceSaving::AbsentMost() const noexcept {
  return std::max(absent_, heap_.size() == capacity_ ? heap_[0].count : 0);
}

void SpaceSaving::Merge(const SpaceSaving& other) {
  const uint64_t absent_here = AbsentMost();
  const uint64_t absent_there = other.AbsentMost();
  std::vector<Counter> all = heap_;
  for (Counter& counter : all) {
    const uint32_t there = other.index_[other.Probe(counter.hash)];
    counter.count += there != kNone ? other.heap_[there].count : absent_there;
    counter.error += there != kNone ? other.heap_[there].error : absent_there;
    counter.marked += there != kNone ? other.heap_[there].marked : 0;
  }
  for (Counter counter : other.heap_) {
    if (index_[Probe(counter.hash)] == kNone) {
      counter.count += absent_here;
      counter.error += absent_here;
      all.push_back(counter);
    }
  }
  std::ranges::sort(all, [](const Counter& a, const Counter& b) { return a.count > b.count; });
  total_ += other.total_;
  absent_ = absent_here + absent_there;
  if (all.size() > capacity_) {
    absent_ = std::max(absent_, all[capacity_].count);
    all.resize(capacity_);
  }
  heap_.clear();
  std::ranges::fill(index_, kNone);
  for (const Counter& counter : all) {
    Insert(counter);
  }
}

std::vector<SpaceSaving::Counter> SpaceSaving::Top(size_t most) const {
  std::vector<Counter> top = heap_;
  std::ranges::sort(top, [](const Counter& a, const Counter& b) { return a.count > b.count; });
  top.resize(std::min(most, top.size()));
  return top;
}

}  // namespace weir::base
