// The properties, each a function of one state. README.md says why they are the right ones.
#include <algorithm>

#include "table_model.h"

namespace weir::model {

// The TAT of the key's net charges taken in the order of their stamps, which is the largest over
// all of them of (its stamp + everything stamped no earlier). GCRA holds iff no prefix of that
// order ends beyond its own last stamp + tolerance, which is the same as: in every window [a, b]
// of stamps the net charges sum to at most b - a + tolerance.
int TableModel::RequiredTat(const State& state, int key, Property* broken) const {
  int required = 0;
  for (size_t first = 0; first < kMaxEntries; ++first) {
    if (entry_key_[first] != key || state.entries[first].net == 0) {
      continue;
    }
    const int from = state.entries[first].stamp;
    int from_on = 0;
    for (size_t last = 0; last < kMaxEntries; ++last) {
      const Entry& end = state.entries[last];
      if (entry_key_[last] != key || end.net == 0 || end.stamp < from) {
        continue;
      }
      from_on += end.net;
      int in_window = 0;
      for (size_t i = 0; i < kMaxEntries; ++i) {
        const Entry& entry = state.entries[i];
        if (entry_key_[i] == key && entry.stamp >= from && entry.stamp <= end.stamp) {
          in_window += entry.net;
        }
      }
      if (in_window > end.stamp - from + setup_.tolerance) {
        *broken = Property::kGcra;
      }
    }
    required = std::max(required, from + from_on);
  }
  return required;
}

bool TableModel::Reaches(const State& state, int key, int slot) const {
  for (int line = setup_.home[static_cast<size_t>(key)]; line < LineOf(slot); ++line) {
    if (state.overflow[static_cast<size_t>(line)] == 0) {
      return false;
    }
  }
  return true;
}

Property TableModel::Check(const State& state, uint32_t mask) const {
  const auto wanted = [mask](Property property) {
    return (mask >> static_cast<uint32_t>(property) & 1U) != 0;
  };
  if (state.broken != Property::kNone && wanted(state.broken)) {
    return state.broken;
  }
  for (int key = 1; key <= kMaxKeys; ++key) {
    Property gcra = Property::kNone;
    const int required = RequiredTat(state, key, &gcra);
    if (gcra != Property::kNone && wanted(gcra)) {
      return gcra;
    }
    int live = 0;
    int tat = 0;
    for (int slot = 0; slot < slots(); ++slot) {
      const uint8_t word = state.state[static_cast<size_t>(slot)];
      // A locked slot is expired, or it could not have been taken for another key.
      if (state.identity[static_cast<size_t>(slot)] != key || (word & kLocked) != 0 ||
          TatOf(word) <= state.clock) {
        continue;
      }
      ++live;
      tat = std::max(tat, TatOf(word));
      if (!Reaches(state, key, slot) && wanted(Property::kReachable)) {
        return Property::kReachable;
      }
    }
    if (live > 1 && wanted(Property::kOneSlot)) {
      return Property::kOneSlot;
    }
    if (required > state.clock && live == 0 && wanted(Property::kReachable)) {
      return Property::kReachable;
    }
    if (required > state.clock && live != 0 && tat < required && wanted(Property::kCovered)) {
      return Property::kCovered;
    }
  }
  return Property::kNone;
}

const char* NameOf(Property property) {
  constexpr std::array<const char*, kProperties> kNames = {
      "none",         "P1 GCRA", "P1 covered", "P2 one slot",
      "P3 reachable", "P4 paid", "P5 silent",  "progress"};
  return kNames[static_cast<size_t>(property)];
}

const char* NameOf(Pc pc) {
  constexpr std::array<const char*, kPcs> kNames = {"done",
                                                    "reads the clock",
                                                    "raises newest",
                                                    "reads the refund counter",
                                                    "scans",
                                                    "reads overflow bit 0",
                                                    "reads overflow bit 1",
                                                    "loads state",
                                                    "loads identity",
                                                    "rechecks state",
                                                    "reads the epoch",
                                                    "reads g",
                                                    "swaps the word",
                                                    "undoes its charge",
                                                    "locks the stripe",
                                                    "rescans",
                                                    "rereads overflow bit 0",
                                                    "rereads overflow bit 1",
                                                    "reads g for a fresh key",
                                                    "looks for room",
                                                    "reads the epoch to insert",
                                                    "sets the overflow bit",
                                                    "takes the slot",
                                                    "writes the identity",
                                                    "writes the state",
                                                    "loads state, locked",
                                                    "loads identity, locked",
                                                    "reads g, locked",
                                                    "reads the epoch, locked",
                                                    "sets the overflow bit, locked",
                                                    "swaps the word, locked",
                                                    "unlocks",
                                                    "unlocks and restarts",
                                                    "unlocks",
                                                    "reads newest to refund",
                                                    "reads the refund counter to refund",
                                                    "lowers the word",
                                                    "adds to the refund counter"};
  return kNames[static_cast<size_t>(pc)];
}

}  // namespace weir::model
