// What is done under the lock of the home line's stripe: the second look, the insertion of a key
// that has no slot, the charge of a key found beyond its home, and the refund.
#include <algorithm>

#include "table_model.h"

namespace weir::model {

namespace {

uint8_t Byte(int value) {
  return static_cast<uint8_t>(value);
}

}  // namespace

void TableModel::Unlock() {
  uint8_t& lock = s_->lock[setup_.stripe[static_cast<size_t>(key())]];
  if (lock == thread_ + 1) {
    lock = 0;
  }
}

bool TableModel::StepLocked() {
  if (x_->pc >= Pc::kRefundNewest) {
    StepRefund();
    return true;
  }
  if (x_->pc >= Pc::kUnlockFinish) {
    const Pc pc = x_->pc;
    if (pc != Pc::kUnlockDeny || !Is(Mutant::kDenialKeepsLock)) {
      Unlock();
    }
    if (pc == Pc::kUnlockFinish) {
      Finish(*x_);
    } else if (pc == Pc::kUnlockDeny) {
      Deny(*x_);
    } else {
      StartScan(*x_);
    }
    return true;
  }
  if (x_->pc >= Pc::kHeldLoadState) {
    return StepHeld();
  }
  if (x_->pc >= Pc::kInstall) {
    StepInstall();
    return true;
  }
  if (x_->pc >= Pc::kMissClock) {
    StepVictim();
    return true;
  }
  if (x_->pc != Pc::kLock) {
    StepRescan();
    return true;
  }
  uint8_t& lock = s_->lock[setup_.stripe[static_cast<size_t>(key())]];
  const bool unlocked = op_->kind == Kind::kRefund && Is(Mutant::kRefundUnlocked);
  if (!Is(Mutant::kNoInsertLock) && !unlocked) {
    if (lock != 0) {
      return false;
    }
    lock = Byte(thread_ + 1);
  }
  const bool clock_first = Is(Mutant::kClockBeforeRescan) && op_->kind == Kind::kCharge;
  x_->pc = clock_first ? Pc::kMissClock : Pc::kRescan;
  return true;
}

// ---- The second look, from home.

void TableModel::StepRescan() {
  const size_t slot = x_->slot;
  if (x_->pc == Pc::kRescanOverflow0) {
    x_->bits = s_->overflow[0] & 1U;
    x_->pc = Pc::kRescanOverflow1;
    return;
  }
  if (x_->pc == Pc::kRescanOverflow1) {
    x_->bits = Byte(x_->bits | (s_->overflow[0] & 2U));
    Note(": bits " + std::to_string(x_->bits));
    EndOfLine(Scan::kHeld);
    return;
  }
  Note(" slot " + std::to_string(slot) + ": k" + std::to_string(s_->identity[slot]));
  if (s_->identity[slot] != key()) {
    NextSlot(Scan::kHeld);
    return;
  }
  x_->bits = 0;
  const bool refund = op_->kind == Kind::kRefund;
  if (!refund && LineOf(x_->slot) == setup_.home[static_cast<size_t>(key())]) {
    x_->pc = Pc::kUnlockRestart;
  } else if (wide()) {
    x_->pc = Pc::kHeldLoadState;
  } else {
    x_->identity = s_->identity[slot];
    x_->state = s_->state[slot];
    FoundHeld();
  }
}

void TableModel::FoundHeld() {
  if (op_->kind == Kind::kCharge) {
    x_->pc = Pc::kHeldClock;
  } else if (Is(Mutant::kRefundCounterFirstUnlocked)) {
    x_->pc = Pc::kRefundCas;
  } else {
    x_->pc = Pc::kRefundNewest;
  }
}

// ---- A key without a slot.

void TableModel::DecideMiss() {
  const int base = Is(Mutant::kFreshKeyIgnoresClock) ? x_->now : std::max(x_->now, x_->clock);
  if (base + kUnit > x_->now + setup_.tolerance) {
    x_->pc = Pc::kUnlockDeny;
    return;
  }
  x_->next = Byte(base + kUnit);
  x_->slot = Byte(FirstSlot(key()));
  x_->pc = Pc::kVictim;
}

void TableModel::StepVictim() {
  const size_t slot = x_->slot;
  switch (x_->pc) {
    case Pc::kMissClock:
      // After the scan that missed: whoever took the key's slot away did so by a clock no later
      // than this one, so the key cannot start from before the TAT it had there.
      x_->clock = Is(Mutant::kReclaimByCallerClock) ? x_->now : s_->clock;
      Note(": g " + std::to_string(x_->clock));
      if (Is(Mutant::kClockBeforeRescan)) {
        x_->pc = Pc::kRescan;
      } else {
        DecideMiss();
      }
      break;
    case Pc::kVictim:
      if (Reclaimable(s_->state[slot], x_->clock)) {
        x_->identity = s_->identity[slot];
        x_->state = s_->state[slot];
        Note(" slot " + std::to_string(slot) + ": free");
        const bool beyond = LineOf(x_->slot) > setup_.home[static_cast<size_t>(key())];
        x_->pc = beyond && !Is(Mutant::kNoOverflowBit) ? Pc::kInsertEpoch : Pc::kInstall;
        x_->clock = 0;
        if (wide() && !Is(Mutant::kNoLockBit)) {
          x_->identity = 0;  // known only once the slot is locked
        }
      } else if (++x_->slot == slots()) {
        Note(": full");
        x_->pc = Pc::kUnlockDeny;
      }
      break;
    case Pc::kInsertEpoch:
      x_->bits = s_->epoch;
      x_->pc = Pc::kInsertOverflow;
      break;
    default:  // kInsertOverflow; with two lines the home line is the only one that can be passed
      s_->overflow[0] = Byte(s_->overflow[0] | 1U << x_->bits);
      x_->bits = 0;
      x_->pc = Pc::kInstall;
      break;
  }
}

void TableModel::StepInstall() {
  const size_t slot = x_->slot;
  const auto take_identity = [&] {
    const int old = s_->identity[slot];
    if (old != 0 && old != key()) {
      ++coverage_.reclaimed;
      if (TatOf(s_->state[slot]) > s_->clock) {
        Note(": evicts live k" + std::to_string(old));
        s_->broken = Property::kReachable;
      }
    }
    s_->identity[slot] = Byte(key());
    x_->wrote = 1;
  };
  switch (x_->pc) {
    case Pc::kInstall: {
      const bool by_identity = !wide() || Is(Mutant::kNoLockBit);
      const bool by_state = !Is(Mutant::kNoLockBit);
      if ((by_identity && s_->identity[slot] != x_->identity) ||
          (by_state && s_->state[slot] != x_->state)) {
        Note(": lost");
        x_->pc = Pc::kUnlockRestart;
      } else if (!wide()) {
        take_identity();
        WriteState(x_->slot, x_->next);
        Admit(x_->next, x_->refunds);
        x_->pc = Pc::kUnlockFinish;
      } else if (Is(Mutant::kNoLockBit)) {
        take_identity();
        x_->pc = Pc::kInstallState;
      } else {
        s_->state[slot] = Byte(x_->state | kLocked);
        x_->bits = s_->overflow[0] & 1U;
        x_->pc = Pc::kInstallIdentity;
      }
      break;
    }
    case Pc::kInstallIdentity:
      // An exclusive-or of old and new identity, because the overflow bit in the same word may be
      // set or cleared by others at any time and must survive.
      take_identity();
      if (Is(Mutant::kBlindIdentityStore) && LineOf(x_->slot) == 0) {
        s_->overflow[0] = Byte((s_->overflow[0] & 2U) | x_->bits);
      }
      x_->bits = 0;
      x_->pc = Pc::kInstallState;
      break;
    default:  // kInstallState
      WriteState(x_->slot, x_->next);
      Admit(x_->next, x_->refunds);
      x_->pc = Pc::kUnlockFinish;
      break;
  }
}

// ---- A key found beyond its home, which must stay reachable for as long as this charge lives.

bool TableModel::StepHeld() {
  const size_t slot = x_->slot;
  switch (x_->pc) {
    case Pc::kHeldLoadState:
      if ((s_->state[slot] & kLocked) != 0) {
        return false;
      }
      x_->state = s_->state[slot];
      x_->pc = Pc::kHeldLoadIdentity;
      break;
    case Pc::kHeldLoadIdentity:
      if (s_->identity[slot] == key()) {
        FoundHeld();
      } else {
        x_->pc = op_->kind == Kind::kCharge ? Pc::kUnlockRestart : Pc::kUnlockFinish;
      }
      break;
    case Pc::kHeldClock: {
      // The slot may be a leftover from before the key lived, and expired, in another one: it
      // starts as a key without a slot would.
      const int clock = Is(Mutant::kReviveIgnoresClock) ? 0 : s_->clock;
      const int next = std::max<int>({TatOf(x_->state), x_->now, clock}) + kUnit;
      x_->next = Byte(next);
      x_->pc = next > x_->now + setup_.tolerance ? Pc::kUnlockDeny : Pc::kHeldEpoch;
      coverage_.revived_beyond_home += TatOf(x_->state) <= s_->clock;
      break;
    }
    case Pc::kHeldEpoch:
      x_->bits = s_->epoch;
      x_->pc = Pc::kHeldOverflow;
      break;
    case Pc::kHeldOverflow:
      s_->overflow[0] = Byte(s_->overflow[0] | 1U << x_->bits);
      x_->bits = 0;
      x_->pc = Pc::kHeldCas;
      break;
    default:  // kHeldCas
      if (s_->state[slot] == x_->state && (wide() || s_->identity[slot] == x_->identity)) {
        WriteState(x_->slot, Byte(x_->next | (x_->state & kLowered)));
        Admit(x_->next, x_->refunds);
        x_->pc = Pc::kUnlockFinish;
      } else {
        Note(": lost");
        x_->pc = Pc::kUnlockRestart;
      }
      break;
  }
  return true;
}

// ---- Refund.

// What of the charge is still owed at the instant x.clock. The mark overstates it by all that was
// given back since, because that moved everything queued behind it forward.
void TableModel::DecideRefund() {
  const Entry& entry = s_->entries[op_->entry];
  const int since = Is(Mutant::kRefundIgnoresRefunds) ? 0 : x_->refunds - entry.refunds;
  int amount = entry.mark - since - x_->clock;
  const bool counter_first = Is(Mutant::kRefundCounterFirstUnlocked);
  if (!counter_first) {
    amount = std::min(amount, TatOf(x_->state) - x_->clock);
  }
  if (!Is(Mutant::kRefundUncapped)) {
    amount = std::min(amount, kUnit);
  }
  if (Is(Mutant::kRefundIgnoresOwed)) {
    amount = kUnit;
  }
  Note(": owed " + std::to_string(std::max(amount, 0)));
  if (amount <= 0) {
    x_->pc = Pc::kUnlockFinish;
    return;
  }
  x_->next = Byte(amount);
  x_->pc = counter_first ? Pc::kRefundCount : Pc::kRefundCas;
}

void TableModel::Lower() {
  const int tat = TatOf(x_->state);
  int amount = x_->next;
  int target = std::max(tat - amount, 0);
  if (Is(Mutant::kRefundZeroes)) {
    target = 0;
  } else if (Is(Mutant::kRefundCounterFirstUnlocked)) {
    target = std::min(tat, std::max<int>(target, x_->now));
    amount = tat - target;
  }
  const uint8_t flag = wide() && !Is(Mutant::kRefundLeavesNoMark) ? kLowered : 0;
  WriteState(x_->slot, Byte(target | flag));
  Entry& entry = s_->entries[op_->entry];
  if (amount > entry.net) {
    s_->broken = Property::kPaid;
  }
  entry.net = Byte(std::max(entry.net - amount, 0));
  ++(amount >= kUnit ? coverage_.given_whole : coverage_.given_part);
  Note(": gives back " + std::to_string(amount) + ", TAT " + std::to_string(target));
}

void TableModel::StepRefund() {
  const size_t slot = x_->slot;
  uint8_t& refunds = s_->refunds[setup_.stripe[static_cast<size_t>(key())]];
  const bool counter_first = Is(Mutant::kRefundCounterFirstUnlocked);
  switch (x_->pc) {
    case Pc::kRefundNewest:
      // After the slot's word was loaded: if the compare-and-swap then succeeds, no charge of this
      // key has a stamp beyond this instant, so none of them found the queue already drained.
      x_->clock = Is(Mutant::kRefundByCallerClock) ? x_->now : std::max(x_->now, s_->newest);
      x_->pc = Pc::kRefundRefunds;
      break;
    case Pc::kRefundRefunds:
      x_->refunds = refunds;
      DecideRefund();
      x_->refunds = x_->clock = 0;
      break;
    case Pc::kRefundCas:
      if (s_->state[slot] == x_->state && (wide() || s_->identity[slot] == x_->identity)) {
        Lower();
        x_->pc = counter_first ? Pc::kUnlockFinish : Pc::kRefundCount;
      } else {
        Note(": lost");
        x_->pc = Pc::kRescan;
        x_->slot = Byte(FirstSlot(key()));
        x_->state = x_->identity = 0;
        if (!counter_first) {
          x_->next = 0;
        }
      }
      break;
    default:  // kRefundCount; last, and under the lock, so no refund can miss it
      refunds = Byte(refunds + x_->next);
      x_->pc = counter_first ? Pc::kRescan : Pc::kUnlockFinish;
      break;
  }
}

}  // namespace weir::model
