#include "programs.h"

#include <algorithm>
#include <span>

namespace weir::model {

namespace {

constexpr uint8_t kOwn = 0xff;  // refund of the operation before, on the same thread

using Sequence = std::vector<Op>;

Op ChargeOf(int key, int now) {
  return {Kind::kCharge, static_cast<uint8_t>(key), static_cast<uint8_t>(now), 0};
}

Op RefundOf(int key, int entry, int now) {
  return {Kind::kRefund, static_cast<uint8_t>(key), static_cast<uint8_t>(now),
          static_cast<uint8_t>(entry)};
}

bool Sensible(const Sequence& sequence, bool clocked) {
  for (size_t i = 0; i < sequence.size(); ++i) {
    const Op& op = sequence[i];
    if (op.kind == Kind::kRefund && op.entry == kOwn &&
        (i == 0 || sequence[i - 1].kind != Kind::kCharge || sequence[i - 1].key != op.key)) {
      return false;
    }
    if (i > 0 && !clocked && op.now < sequence[i - 1].now) {
      return false;  // one caller's clock does not go back
    }
  }
  return true;
}

std::vector<Sequence> Sequences(std::span<const Op> alphabet, int length, bool clocked) {
  std::vector<Sequence> all = {{}};
  for (int i = 0; i < length; ++i) {
    std::vector<Sequence> longer;
    for (const Sequence& sequence : all) {
      for (const Op& op : alphabet) {
        Sequence next = sequence;
        next.push_back(op);
        if (Sensible(next, clocked)) {
          longer.push_back(next);
        }
      }
    }
    all = std::move(longer);
  }
  return all;
}

// False if a receipt would be used twice, which the API does not allow.
bool Resolve(Program& program) {
  std::array<bool, kMaxEntries> used{};
  for (int thread = 0; thread < program.threads; ++thread) {
    Sequence& ops = program.ops[static_cast<size_t>(thread)];
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != Kind::kRefund) {
        continue;
      }
      if (ops[i].entry == kOwn) {
        ops[i].entry = static_cast<uint8_t>(program.EntryOf(thread, static_cast<int>(i) - 1));
      }
      if (used[ops[i].entry]) {
        return false;
      }
      used[ops[i].entry] = true;
    }
  }
  return true;
}

// Threads are alike, so of the programs that differ only in which thread does what one is enough.
void AddPrograms(Family& family, std::span<const Op> alphabet, int threads, int length) {
  const std::vector<Sequence> all = Sequences(alphabet, length, family.setup.clocked);
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = a; b < all.size(); ++b) {
      for (size_t c = b; c < (threads == 3 ? all.size() : b + 1); ++c) {
        Program program;
        program.threads = threads;
        program.ops = {all[a], all[b], threads == 3 ? all[c] : Sequence{}};
        if (Resolve(program)) {
          family.programs.push_back(program);
        }
      }
    }
  }
}

std::vector<uint8_t> Range(int from, int to, int step = 1) {
  std::vector<uint8_t> values;
  for (int value = from; value <= to; value += step) {
    values.push_back(static_cast<uint8_t>(value));
  }
  return values;
}

void SetSlot(State& state, size_t slot, int key, int tat) {
  state.identity[slot] = static_cast<uint8_t>(key);
  state.state[slot] = static_cast<uint8_t>(tat);
}

void SetEntry(Setup& setup, size_t entry, int key, Entry value) {
  setup.entry_keys[entry] = static_cast<uint8_t>(key);
  setup.initial.entries[entry] = value;
}

// k1 was admitted at 2 and holds slot 0 until g reaches 6.
Setup OneLine(int slots, int burst, bool own_stripes) {
  Setup setup;
  setup.name = std::to_string(slots) + (slots == 1 ? " slot" : " slots") + ", burst " +
               std::to_string(burst) + (own_stripes ? ", own stripes" : ", one stripe");
  setup.tolerance = kUnit * burst;
  setup.slots_per_line = slots;
  setup.stripe = {0, 0, static_cast<uint8_t>(own_stripes ? 1 : 0), 0};
  SetSlot(setup.initial, 0, 1, 2 + kUnit);
  SetEntry(setup, 0, 1, {.stamp = 2, .net = kUnit});
  setup.initial.clock = 4;
  return setup;
}

}  // namespace

std::vector<Family> SlotFamilies(Scope scope) {
  const bool full = scope == Scope::kFull;
  const std::vector<Op> alphabet = {ChargeOf(1, 3), ChargeOf(1, 6), ChargeOf(1, 9),
                                    ChargeOf(2, 3), ChargeOf(2, 6), ChargeOf(2, 9)};
  const std::vector<Op> smaller = {ChargeOf(1, 3), ChargeOf(1, 6), ChargeOf(2, 3), ChargeOf(2, 6)};
  std::vector<Family> families;
  for (int burst = 1; burst <= 2; ++burst) {
    for (int slots = 1; slots <= 2; ++slots) {
      for (const bool own_stripes : {false, true}) {
        Family family;
        family.setup = OneLine(slots, burst, own_stripes);
        family.setup.clock_values = full ? Range(4, 9) : std::vector<uint8_t>{4, 6, 8};
        AddPrograms(family, full ? alphabet : smaller, 2, 2);
        AddPrograms(family, full ? alphabet : smaller, 3, 1);
        families.push_back(std::move(family));
      }
    }
  }
  Family empty;  // nobody has a slot yet
  empty.setup = OneLine(2, 1, true);
  empty.setup.name = "empty slots";
  empty.setup.initial = State{};
  empty.setup.initial.clock = 4;
  empty.setup.entry_keys = {};
  empty.setup.clock_values = {4, 8};
  const std::vector<Op> first_seen = {ChargeOf(1, 4), ChargeOf(1, 8), ChargeOf(2, 8)};
  AddPrograms(empty, first_seen, 2, 2);
  AddPrograms(empty, first_seen, 3, 1);
  families.push_back(std::move(empty));
  return families;
}

std::vector<Family> SweepFamilies(Scope scope) {
  const std::vector<Op> alphabet = {ChargeOf(1, 3), ChargeOf(1, 6), ChargeOf(2, 6)};
  std::vector<Family> families;
  for (int slots = 1; slots <= (scope == Scope::kFull ? 2 : 1); ++slots) {
    Family family;
    family.setup = OneLine(slots, 2, true);
    family.setup.name += ", sweeper";
    family.setup.clock_values = {4, 6, 8};
    family.setup.initial.sweeper.rewrites_left = 1;
    AddPrograms(family, alphabet, 2, 2);
    AddPrograms(family, alphabet, 3, 1);
    families.push_back(std::move(family));
  }
  return families;
}

std::vector<Family> RefundFamilies(Scope scope) {
  const bool full = scope == Scope::kFull;
  std::vector<Family> families;
  for (int slots = 1; slots <= 2; ++slots) {
    Setup base;
    base.tolerance = 2 * kUnit;
    base.slots_per_line = slots;
    base.stripe = {0, 0, 1, 0};
    base.receipts = true;
    base.clock_values = {0, 4, 8};
    const std::string suffix = slots == 1 ? ", 1 slot" : ", 2 slots";

    Family one;  // one charge at 0
    one.setup = base;
    one.setup.name = "refund of one" + suffix;
    SetSlot(one.setup.initial, 0, 1, 4);
    SetEntry(one.setup, 0, 1, {.stamp = 0, .net = kUnit, .mark = 4, .refunds = 0});
    std::vector<Op> alphabet = {ChargeOf(1, 0), ChargeOf(1, 4), ChargeOf(2, 4), RefundOf(1, 0, 0),
                                RefundOf(1, kOwn, 4)};
    if (full) {
      alphabet.insert(alphabet.end(), {RefundOf(1, 0, 2), RefundOf(1, kOwn, 0)});
    }
    AddPrograms(one, alphabet, 2, 2);
    AddPrograms(one, alphabet, 3, 1);
    families.push_back(std::move(one));

    Family two;  // two charges at 0, both with receipts
    two.setup = base;
    two.setup.name = "refunds of two" + suffix;
    SetSlot(two.setup.initial, 0, 1, 8);
    SetEntry(two.setup, 0, 1, {.stamp = 0, .net = kUnit, .mark = 4, .refunds = 0});
    SetEntry(two.setup, 1, 1, {.stamp = 0, .net = kUnit, .mark = 8, .refunds = 0});
    alphabet = {ChargeOf(1, 4), ChargeOf(2, 4), RefundOf(1, 0, 0), RefundOf(1, 1, 0),
                RefundOf(1, 1, 4)};
    if (full) {
      alphabet.insert(alphabet.end(), {ChargeOf(1, 0), RefundOf(1, 0, 2), RefundOf(1, kOwn, 4)});
    }
    AddPrograms(two, alphabet, 2, 2);
    AddPrograms(two, alphabet, 3, 1);
    families.push_back(std::move(two));

    Family behind;  // two charges at 0; the first given back at 0; a third at 4
    behind.setup = base;
    behind.setup.name = "refund behind a refund" + suffix;
    SetSlot(behind.setup.initial, 0, 1, 8);
    behind.setup.initial.newest = 4;
    behind.setup.initial.refunds = {kUnit, 0};
    SetEntry(behind.setup, 0, 1, {.stamp = 0, .net = kUnit, .mark = 8, .refunds = 0});
    SetEntry(behind.setup, 1, 1, {.stamp = 4, .net = kUnit, .mark = 8, .refunds = kUnit});
    alphabet = {ChargeOf(1, 4), ChargeOf(2, 8), RefundOf(1, 0, 4), RefundOf(1, 1, 4),
                RefundOf(1, kOwn, 4)};
    AddPrograms(behind, alphabet, 2, 2);
    AddPrograms(behind, alphabet, 3, 1);
    families.push_back(std::move(behind));
  }
  return families;
}

std::vector<Family> EpochFamilies(Scope scope) {
  const bool full = scope == Scope::kFull;
  constexpr int kTwiceSkew = 2;  // stamps are between g and g + twice the largest skew
  Setup base;
  base.tolerance = kUnit;
  base.lines = 2;
  base.home = {0, 0, 0, 1};
  base.stripe = {0, 0, 0, 1};
  base.clocked = true;
  base.epoch_length = kUnit + kTwiceSkew;
  base.initial.clock = 2;

  Setup old = base;  // k1 lives beyond its home; only the old epoch's bit leads there
  old.name = "old bit";
  SetSlot(old.initial, 0, 2, 4);
  SetSlot(old.initial, 1, 1, 4);
  SetEntry(old, 0, 2, {.stamp = 0, .net = kUnit});
  SetEntry(old, 1, 1, {.stamp = 0, .net = kUnit});
  old.initial.overflow = {1, 0};
  old.initial.epoch = 1;

  Setup current = old;  // the same, by the current epoch's bit
  current.name = "current bit";
  current.initial.epoch = 0;

  Setup leftover = base;  // k1 expired out of reach; another home's key may reopen the way to it
  leftover.name = "leftover";
  SetSlot(leftover.initial, 0, 2, 2);
  SetSlot(leftover.initial, 1, 1, 1);
  leftover.initial.passes_left = 1;

  Setup own_stripes = leftover;  // k2 comes from a home before line 0, by way of a full line
  own_stripes.name = "own stripes";
  own_stripes.stripe = {0, 0, 1, 1};
  SetSlot(own_stripes.initial, 0, 0, 0);

  std::vector<Family> families;
  const auto add = [&](Setup setup, const char* threads, std::vector<uint8_t> clock_values) {
    setup.name += threads;
    setup.initial.clock = clock_values.front();
    setup.clock_values = std::move(clock_values);
    return &families.emplace_back(Family{std::move(setup), {}});
  };
  const std::vector<Op> pairs = {ChargeOf(1, 0), ChargeOf(2, 0)};
  const std::vector<Op> more_pairs = {ChargeOf(1, 0), ChargeOf(1, kTwiceSkew), ChargeOf(2, 0)};
  const std::vector<Op> ahead = {ChargeOf(1, kTwiceSkew), ChargeOf(2, 0)};
  AddPrograms(*add(old, "", {2, 4, 6, 12}), pairs, 2, 2);
  AddPrograms(*add(current, "", {2, 4, 6, 12}), pairs, 2, 2);
  AddPrograms(*add(leftover, "", {2, 6, 8}), pairs, 2, 2);
  if (full) {
    AddPrograms(*add(leftover, ", any stamp", {2, 6}), more_pairs, 2, 2);
    AddPrograms(*add(old, ", any stamp", {4, 6, 12}), more_pairs, 2, 2);
  }

  AddPrograms(*add(own_stripes, "", {2, 6}), pairs, 2, 2);
  AddPrograms(*add(current, ", stamps ahead", {4, 6, 8, 12}), ahead, 2, full ? 2 : 1);

  const std::vector<Op> triples = {ChargeOf(1, 0), ChargeOf(2, 0), ChargeOf(3, 0)};
  const std::vector<Op> more_triples = {ChargeOf(1, 0), ChargeOf(1, kTwiceSkew), ChargeOf(2, 0),
                                        ChargeOf(3, 0)};
  AddPrograms(*add(old, ", three threads", {4, 6}), full ? more_triples : triples, 3, 1);
  AddPrograms(*add(leftover, ", three threads", {2, 6}), full ? more_triples : triples, 3, 1);
  return families;
}

std::string Describe(const Setup& setup, const Program& program) {
  std::string text = setup.name + ":";
  for (int thread = 0; thread < program.threads; ++thread) {
    text += " T" + std::to_string(thread) + " [";
    for (const Op& op : program.ops[static_cast<size_t>(thread)]) {
      text += op.kind == Kind::kCharge ? " charge k" + std::to_string(op.key)
                                       : " refund entry " + std::to_string(op.entry);
      text += (setup.clocked ? "@g+" : "@") + std::to_string(op.now);
    }
    text += " ]";
  }
  return text;
}

}  // namespace weir::model
