#include "explorer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace weir::model {

namespace {

static_assert(std::has_unique_object_representations_v<State>,
              "states are hashed and compared as bytes");

constexpr size_t kSmallIndex = size_t{1} << 12;

size_t Hash(const State& state) {
  uint64_t hash = 0x9e3779b97f4a7c15U;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
  for (size_t at = 0; at < sizeof state; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    hash = (hash ^ word) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  return static_cast<size_t>(hash);
}

// Properties look at shared words and at the log, never at a thread's registers: most steps only
// load, and need no second look.
bool SameButForThreads(const State& a, const State& b) {
  return a.broken == b.broken && std::memcmp(&a, &b, offsetof(State, threads)) == 0;
}

}  // namespace

void Explorer::Reset() {
  states_.clear();
  origins_.clear();
  index_.assign(kSmallIndex, 0);
}

size_t Explorer::Find(const State& state) const {
  const size_t mask = index_.size() - 1;
  size_t at = Hash(state) & mask;
  while (index_[at] != 0 && std::memcmp(&states_[index_[at] - 1], &state, sizeof state) != 0) {
    at = (at + 1) & mask;
  }
  return at;
}

void Explorer::Grow() {
  index_.assign(index_.size() * 4, 0);
  const size_t mask = index_.size() - 1;
  for (size_t i = 0; i < states_.size(); ++i) {
    size_t at = Hash(states_[i]) & mask;
    while (index_[at] != 0) {
      at = (at + 1) & mask;
    }
    index_[at] = static_cast<uint32_t>(i + 1);
  }
}

bool Explorer::Insert(const State& state, Origin origin) {
  const size_t at = Find(state);
  if (index_[at] != 0) {
    return false;
  }
  states_.push_back(state);
  origins_.push_back(origin);
  index_[at] = static_cast<uint32_t>(states_.size());
  if (states_.size() * 2 > index_.size()) {
    Grow();
  }
  return true;
}

Property Explorer::Explore(TableModel& model, uint32_t mask) {
  Reset();
  Insert(model.Initial(), {0, 0});
  const bool progress = (mask & Only(Property::kProgress)) != 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    bool thread_stepped = false;
    for (int action = 0; action < TableModel::kActions; ++action) {
      State next = states_[i];
      if (!model.Apply(action, next)) {
        continue;
      }
      thread_stepped |= action < kMaxThreads;
      if (!Insert(next, {static_cast<uint32_t>(i), static_cast<uint8_t>(action)})) {
        continue;
      }
      if (SameButForThreads(states_[i], next)) {
        continue;
      }
      const Property broken = model.Check(next, mask);
      if (broken != Property::kNone) {
        broken_at_ = states_.size() - 1;
        return broken;
      }
    }
    if (progress && !thread_stepped && !model.Finished(states_[i])) {
      broken_at_ = i;
      return Property::kProgress;
    }
  }
  return Property::kNone;
}

std::vector<std::string> Explorer::Schedule(TableModel& model) const {
  std::vector<std::string> lines;
  for (size_t at = broken_at_; at != 0; at = origins_[at].parent) {
    State state = states_[origins_[at].parent];
    std::string note;
    model.Apply(origins_[at].action, state, &note);
    lines.push_back(note);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace weir::model
