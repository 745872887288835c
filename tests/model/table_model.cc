// The lock-free half of the protocol: finding a key, deciding on its slot, charging it.
#include "table_model.h"

#include <algorithm>

namespace weir::model {

namespace {

uint8_t Byte(int value) {
  return static_cast<uint8_t>(value);
}

}  // namespace

TableModel::TableModel(const Variant& variant, const Setup& setup, const Program& program,
                       Coverage& coverage)
    : variant_(variant), setup_(setup), program_(program), coverage_(coverage) {
  for (size_t entry = 0; entry < kInitialEntries; ++entry) {
    entry_key_[entry] = setup.entry_keys[entry];
  }
  for (int thread = 0; thread < program.threads; ++thread) {
    const std::vector<Op>& ops = program.ops[static_cast<size_t>(thread)];
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == Kind::kRefund) {
        has_receipt_[ops[i].entry] = true;
      } else {
        entry_key_[static_cast<size_t>(program.EntryOf(thread, static_cast<int>(i)))] = ops[i].key;
      }
    }
  }
}

State TableModel::Initial() const {
  State state = setup_.initial;
  for (int thread = 0; thread < program_.threads; ++thread) {
    Begin(state.threads[static_cast<size_t>(thread)],
          program_.ops[static_cast<size_t>(thread)].front());
  }
  return state;
}

bool TableModel::Finished(const State& state) const {
  return std::all_of(state.threads.begin(), state.threads.end(),
                     [](const Thread& x) { return x.pc == Pc::kDone; });
}

bool TableModel::Apply(int action, State& state, std::string* note) {
  note_ = note;
  return action < kMaxThreads ? StepThread(action, state) : StepEnvironment(action, state);
}

int TableModel::FirstSlot(int key) const {
  return setup_.home[static_cast<size_t>(key)] * setup_.slots_per_line;
}

// A lowered TAT says nothing about how high the word once was, and a thread may still hold that
// older value as the expected one of a compare-and-swap under the old identity. No TAT is further
// ahead of a refund than the tolerance, so past that the old value cannot come back.
bool TableModel::Reclaimable(uint8_t state, int clock) const {
  if ((state & kLocked) != 0) {
    return false;
  }
  const int grace = (state & kLowered) != 0 ? setup_.tolerance : 0;
  return TatOf(state) + grace <= clock;
}

void TableModel::Note(const std::string& text) const {
  if (note_ != nullptr) {
    *note_ += text;
  }
}

void TableModel::WriteState(int slot, uint8_t value) {
  s_->state[static_cast<size_t>(slot)] = value;
  x_->wrote = 1;
}

bool TableModel::StepThread(int thread, State& state) {
  Thread& x = state.threads[static_cast<size_t>(thread)];
  if (x.pc == Pc::kDone) {
    return false;
  }
  s_ = &state;
  x_ = &x;
  thread_ = thread;
  op_ = &program_.ops[static_cast<size_t>(thread)][x.op];
  const Pc pc = x.pc;
  Note("T" + std::to_string(thread) + " " + NameOf(pc));
  bool stepped = true;
  if (pc >= Pc::kLock) {
    stepped = StepLocked();
  } else if (pc >= Pc::kLoadState) {
    stepped = StepHit();
  } else {
    StepLockFree();
  }
  if (stepped) {
    ++coverage_.steps[static_cast<size_t>(pc)];
  }
  return stepped;
}

// ---- The course of an operation.

void TableModel::Begin(Thread& x, const Op& op) const {
  x.now = op.now;
  x.slot = Byte(FirstSlot(op.key));
  if (op.kind == Kind::kCharge) {
    x.pc = setup_.clocked ? Pc::kReadNow : setup_.receipts ? Pc::kRaiseNewest : Pc::kScan;
  } else {
    x.pc = Is(Mutant::kRefundCounterFirstUnlocked) ? Pc::kRefundNewest : Pc::kLock;
  }
}

void TableModel::StartScan(Thread& x) const {
  const Thread kept = x;
  x = Thread{};
  x.op = kept.op;
  x.now = kept.now;
  x.refunds = kept.refunds;
  x.wrote = kept.wrote;
  x.slot = Byte(FirstSlot(key()));
  x.pc = Pc::kScan;
}

void TableModel::Finish(Thread& x) {
  const std::vector<Op>& ops = program_.ops[static_cast<size_t>(thread_)];
  const size_t next = x.op + size_t{1};
  x = Thread{};
  for (size_t i = next; i < ops.size(); ++i) {
    const Op& op = ops[i];
    x.op = Byte(i);
    // A charge that was refused left no receipt.
    if (op.kind == Kind::kCharge || s_->entries[op.entry].net != 0) {
      Begin(x, op);
      return;
    }
  }
  x = Thread{};
  x.op = Byte(ops.size());
}

void TableModel::Deny(Thread& x) {
  Note(": denied");
  ++coverage_.denied;
  if (x.wrote != 0) {
    s_->broken = Property::kDenialSilent;
  }
  Finish(x);
}

void TableModel::Admit(uint8_t tat, uint8_t refunds) {
  const int index = program_.EntryOf(thread_, x_->op);
  Entry& entry = s_->entries[static_cast<size_t>(index)];
  entry.stamp = x_->now;
  entry.net = kUnit;
  if (has_receipt_[static_cast<size_t>(index)]) {
    entry.mark = tat;
    entry.refunds = refunds;
  }
  ++coverage_.admitted;
  Note(": admitted k" + std::to_string(key()) + "@" + std::to_string(x_->now) + ", TAT " +
       std::to_string(tat));
}

// From here the walk starts again at home, under the lock; nothing seen without it counts.
void TableModel::GoToLock() {
  StartScan(*x_);
  x_->pc = Pc::kLock;
}

// ---- Walking the probe path. The same walk serves the first scan and the one under the lock.

void TableModel::NextSlot(Scan scan) {
  ++x_->slot;
  if (x_->slot % setup_.slots_per_line != 0) {
    return;
  }
  if (x_->slot == slots()) {
    Missed(scan);
  } else {
    x_->pc = scan == Scan::kLockFree ? Pc::kScanOverflow0 : Pc::kRescanOverflow0;
  }
}

void TableModel::EndOfLine(Scan scan) {
  if (x_->bits == 0) {
    Missed(scan);
  } else {
    x_->pc = scan == Scan::kLockFree ? Pc::kScan : Pc::kRescan;
  }
}

void TableModel::Missed(Scan scan) {
  x_->bits = 0;
  if (scan == Scan::kLockFree) {
    GoToLock();
  } else if (op_->kind == Kind::kRefund) {
    x_->pc = Pc::kUnlockFinish;  // expired and reclaimed: nothing is owed any more
  } else if (Is(Mutant::kClockBeforeRescan)) {
    DecideMiss();
  } else {
    x_->pc = Pc::kMissClock;
  }
}

// With the key's word at hand: deny at once, or say what has to be done before it may be charged.
void TableModel::DecideHit() {
  const int next = std::max<int>(TatOf(x_->state), x_->now) + kUnit;
  x_->next = Byte(next);
  if (next > x_->now + setup_.tolerance && !Is(Mutant::kDenialWrites)) {
    // The wide layout must see the state unchanged, or it may have judged another key's state.
    if (wide()) {
      x_->pc = Pc::kRecheck;
    } else {
      Deny(*x_);
    }
    return;
  }
  const bool beyond = LineOf(x_->slot) > setup_.home[static_cast<size_t>(key())];
  x_->pc = beyond && !Is(Mutant::kBeyondHomeUnlocked) ? Pc::kReadEpoch : Pc::kCas;
}

void TableModel::StepLockFree() {
  const size_t slot = x_->slot;
  const size_t stripe = setup_.stripe[static_cast<size_t>(key())];
  switch (x_->pc) {
    case Pc::kReadNow:
      x_->now = Byte(s_->clock + op_->now);
      Note(": now " + std::to_string(x_->now));
      x_->pc = Pc::kScan;
      break;
    case Pc::kRaiseNewest:
      s_->newest = std::max(s_->newest, x_->now);
      x_->pc = has_receipt_[static_cast<size_t>(program_.EntryOf(thread_, x_->op))]
                   ? Pc::kReadRefunds
                   : Pc::kScan;
      break;
    case Pc::kReadRefunds:
      x_->refunds = s_->refunds[stripe];
      x_->pc = Pc::kScan;
      break;
    case Pc::kScan:
      Note(" slot " + std::to_string(slot) + ": k" + std::to_string(s_->identity[slot]));
      if (s_->identity[slot] != key()) {
        NextSlot(Scan::kLockFree);
      } else if (wide()) {
        x_->pc = Pc::kLoadState;
      } else {
        x_->identity = s_->identity[slot];
        x_->state = s_->state[slot];
        Note(" TAT " + std::to_string(x_->state));
        DecideHit();
      }
      break;
    case Pc::kScanOverflow0:
      x_->bits = s_->overflow[0] & 1U;
      x_->pc = Pc::kScanOverflow1;
      break;
    case Pc::kScanOverflow1:
      x_->bits = Byte(x_->bits | (s_->overflow[0] & 2U));
      Note(": bits " + std::to_string(x_->bits));
      EndOfLine(Scan::kLockFree);
      break;
    default:
      break;
  }
}

bool TableModel::StepHit() {
  const size_t slot = x_->slot;
  switch (x_->pc) {
    case Pc::kLoadState:
      if ((s_->state[slot] & kLocked) != 0) {
        return false;  // spins; no other word is looked at meanwhile
      }
      x_->state = s_->state[slot];
      Note(": TAT " + std::to_string(TatOf(x_->state)));
      if (Is(Mutant::kIdentityBeforeState)) {
        DecideHit();
      } else {
        x_->pc = Pc::kLoadIdentity;
      }
      return true;
    case Pc::kLoadIdentity:
      x_->identity = s_->identity[slot];
      Note(": k" + std::to_string(x_->identity));
      if (x_->identity == key()) {
        DecideHit();
      } else {
        StartScan(*x_);
      }
      return true;
    case Pc::kRecheck:
      if (s_->state[slot] == x_->state) {
        Deny(*x_);
      } else {
        x_->pc = Pc::kLoadState;
      }
      return true;
    case Pc::kReadEpoch: {
      const bool current = (x_->bits >> s_->epoch & 1) != 0;
      if (current) {
        x_->pc = Is(Mutant::kReviveOnCurrentBit) ? Pc::kCas : Pc::kReadClock;
      } else {
        GoToLock();
      }
      return true;
    }
    case Pc::kReadClock:
      // An expired slot beyond home may be a leftover that was out of reach for a while; only the
      // lock can tell whether the key has another slot nearer home by now.
      if (TatOf(x_->state) <= s_->clock) {
        GoToLock();
      } else {
        x_->pc = Pc::kCas;
      }
      return true;
    case Pc::kCas: {
      const bool same =
          s_->state[slot] == x_->state && (wide() || s_->identity[slot] == x_->identity);
      if (same) {
        const bool fits = x_->next <= x_->now + setup_.tolerance;
        WriteState(x_->slot, Byte(x_->next | (x_->state & kLowered)));
        if (!fits) {
          x_->pc = Pc::kUndo;  // the mutant that charges first and asks afterwards
          return true;
        }
        Admit(x_->next, x_->refunds);
        Finish(*x_);
        return true;
      }
      Note(": lost");
      if (wide()) {
        x_->pc = Pc::kLoadState;
      } else if (s_->identity[slot] != key()) {
        StartScan(*x_);
      } else {
        x_->state = s_->state[slot];
        DecideHit();
      }
      return true;
    }
    case Pc::kUndo:
      WriteState(x_->slot, Byte(s_->state[slot] - kUnit));
      Deny(*x_);
      return true;
    default:
      return false;
  }
}

}  // namespace weir::model
