// Everything that is not a thread of the program: the clock, the sweeper, keys of other homes.
#include <algorithm>

#include "table_model.h"

namespace weir::model {

namespace {

uint8_t Byte(int value) {
  return static_cast<uint8_t>(value);
}

enum SweeperStep : uint8_t { kIdle, kReadClock, kRewrite };

}  // namespace

bool TableModel::StepEnvironment(int action, State& state) {
  switch (action) {
    case kAdvanceClock: {
      const auto& values = setup_.clock_values;
      const auto next = std::upper_bound(values.begin(), values.end(), state.clock);
      if (next == values.end()) {
        return false;
      }
      state.clock = *next;
      Note("clock: g " + std::to_string(state.clock));
      return true;
    }
    case kForeignPass:
      if (state.passes_left == 0) {
        return false;
      }
      --state.passes_left;
      state.overflow[0] = Byte(state.overflow[0] | 1U << state.epoch);
      Note("a key of another home passes line 0");
      return true;
    case kClearOld: {
      const int length = Is(Mutant::kClearEarly)         ? 0
                         : Is(Mutant::kEpochIgnoresSkew) ? setup_.tolerance
                                                         : setup_.epoch_length;
      const bool due = state.clock >= state.epoch_start + length;
      if (setup_.epoch_length == 0 || state.old_cleared != 0 || !due) {
        return false;
      }
      const int cleared = Is(Mutant::kClearCurrentEpoch) ? state.epoch : 1 - state.epoch;
      coverage_.cleared += state.overflow[0] >> cleared & 1;
      state.overflow[0] = Byte(state.overflow[0] & ~(1U << cleared));
      state.old_cleared = 1;
      Note("sweeper: clears epoch " + std::to_string(cleared) + "'s bit of line 0");
      return true;
    }
    case kSwapEpochs:
      if (state.old_cleared == 0) {
        return false;
      }
      state.old_cleared = 0;
      state.epoch = Byte(1 - state.epoch);
      state.epoch_start = state.clock;
      ++coverage_.swapped;
      Note("sweeper: epoch " + std::to_string(state.epoch) + " begins");
      return true;
    default:
      return StepSweeper(action - kSweep, state);
  }
}

// Rewrites one expired slot's TAT to g, so that a wrapped clock cannot make it look alive.
bool TableModel::StepSweeper(int slot, State& state) {
  Sweeper& sweeper = state.sweeper;
  const auto index = static_cast<size_t>(slot);
  switch (sweeper.step) {
    case kIdle:
      if (sweeper.rewrites_left == 0 || slot >= slots() || state.identity[index] == 0 ||
          (state.state[index] & kLocked) != 0) {
        return false;
      }
      --sweeper.rewrites_left;
      sweeper.step = kReadClock;
      sweeper.slot = Byte(slot);
      sweeper.identity = wide() ? uint8_t{0} : state.identity[index];
      sweeper.state = state.state[index];
      Note("sweeper: looks at slot " + std::to_string(slot));
      return true;
    case kReadClock:
      if (slot != sweeper.slot) {
        return false;
      }
      if (Reclaimable(sweeper.state, state.clock)) {
        sweeper.clock = state.clock;
        sweeper.step = kRewrite;
      } else {
        sweeper = Sweeper{.rewrites_left = sweeper.rewrites_left};
      }
      Note("sweeper: g " + std::to_string(state.clock));
      return true;
    default: {
      if (slot != sweeper.slot) {
        return false;
      }
      const bool same = state.state[index] == sweeper.state &&
                        (wide() || state.identity[index] == sweeper.identity);
      if (same || Is(Mutant::kBlindRewrite)) {
        if (!wide()) {
          state.identity[index] = sweeper.identity;
        }
        state.state[index] = sweeper.clock;
        ++coverage_.rewritten;
        Note("sweeper: slot " + std::to_string(slot) + " TAT " + std::to_string(sweeper.clock));
      } else {
        Note("sweeper: lost slot " + std::to_string(slot));
      }
      sweeper = Sweeper{.rewrites_left = sweeper.rewrites_left};
      return true;
    }
  }
}

}  // namespace weir::model
