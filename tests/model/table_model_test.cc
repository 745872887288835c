// Checks the memory table's protocol in every interleaving of small programs, and that each rule
// of it is needed: a protocol with that rule broken must be caught by the property named for it.
#include "table_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "explorer.h"
#include "programs.h"

namespace weir::model {

void PrintTo(Property property, std::ostream* out) {
  *out << NameOf(property);
}

namespace {

using Families = std::vector<Family> (*)(Scope);

struct Outcome {
  Property broken = Property::kNone;
  size_t programs = 0;
  size_t states = 0;
  Coverage coverage;
};

Scope ChosenScope() {
  const char* full = std::getenv("WEIR_MODEL_FULL");
  return full != nullptr && std::string(full) == "1" ? Scope::kFull : Scope::kDefault;
}

void PrintSchedule(const Family& family, const Program& program, TableModel& model,
                   const Explorer& explorer) {
  std::printf("    %s\n", Describe(family.setup, program).c_str());
  for (const std::string& line : explorer.Schedule(model)) {
    std::printf("      %s\n", line.c_str());
  }
}

// True if each of these steps was taken in some interleaving: a search that never gets there proves
// nothing about them.
bool Took(const Outcome& outcome, std::initializer_list<Pc> steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [&](Pc pc) { return outcome.coverage.steps[static_cast<size_t>(pc)] > 0; });
}

// Stops at the first program in which a property of `mask` breaks.
Outcome Check(const Variant& variant, Families families, Scope scope, uint32_t mask,
              const std::string& world = "") {
  Outcome outcome;
  Explorer explorer;
  for (const Family& family : families(scope)) {
    if (!family.setup.name.starts_with(world)) {
      continue;
    }
    const size_t programs_before = outcome.programs;
    const size_t states_before = outcome.states;
    for (const Program& program : family.programs) {
      TableModel model(variant, family.setup, program, outcome.coverage);
      outcome.broken = explorer.Explore(model, mask);
      ++outcome.programs;
      outcome.states += explorer.states();
      if (outcome.broken != Property::kNone) {
        std::printf("%-52s %zu programs, %zu states: breaks %s\n", variant.name.c_str(),
                    outcome.programs, outcome.states, NameOf(outcome.broken));
        PrintSchedule(family, program, model, explorer);
        return outcome;
      }
    }
    if (variant.mutant == Mutant::kNone) {
      std::printf("  %-40s %zu programs, %zu states\n", family.setup.name.c_str(),
                  outcome.programs - programs_before, outcome.states - states_before);
    }
  }
  std::printf("%-52s %zu programs, %zu states: every property holds\n", variant.name.c_str(),
              outcome.programs, outcome.states);
  return outcome;
}

class EveryInterleaving : public testing::TestWithParam<Layout> {
 protected:
  [[nodiscard]] Variant TheProtocol(const char* world) const {
    const char* layout = GetParam() == Layout::kCompact ? "compact, " : "wide, ";
    return {layout + std::string(world), GetParam(), Mutant::kNone};
  }
};

TEST_P(EveryInterleaving, OfChargesAndReclaimsKeepsTheBound) {
  const Outcome outcome = Check(TheProtocol("slots"), SlotFamilies, ChosenScope(), kEveryProperty);
  EXPECT_EQ(outcome.broken, Property::kNone);
  EXPECT_GT(outcome.coverage.admitted, 0U);
  EXPECT_GT(outcome.coverage.denied, 0U);
  EXPECT_GT(outcome.coverage.reclaimed, 0U);
  EXPECT_TRUE(Took(outcome, {Pc::kCas, Pc::kUnlockRestart, Pc::kUnlockDeny, Pc::kInstall}));
}

TEST_P(EveryInterleaving, WithASweeperKeepsTheBound) {
  const Outcome outcome =
      Check(TheProtocol("sweeper"), SweepFamilies, ChosenScope(), kEveryProperty);
  EXPECT_EQ(outcome.broken, Property::kNone);
  EXPECT_GT(outcome.coverage.rewritten, 0U);
}

TEST_P(EveryInterleaving, WithRefundsKeepsTheBound) {
  const Outcome outcome =
      Check(TheProtocol("refunds"), RefundFamilies, ChosenScope(), kEveryProperty);
  EXPECT_EQ(outcome.broken, Property::kNone);
  EXPECT_GT(outcome.coverage.given_whole, 0U);
  EXPECT_GT(outcome.coverage.reclaimed, 0U);
  EXPECT_TRUE(Took(outcome, {Pc::kReadRefunds, Pc::kRefundCas, Pc::kRefundCount}));
}

TEST_P(EveryInterleaving, WithEpochsKeepsLiveKeysReachable) {
  const Outcome outcome =
      Check(TheProtocol("epochs"), EpochFamilies, ChosenScope(), kEveryProperty);
  EXPECT_EQ(outcome.broken, Property::kNone);
  EXPECT_GT(outcome.coverage.cleared, 0U);
  EXPECT_GT(outcome.coverage.swapped, 0U);
  EXPECT_GT(outcome.coverage.revived_beyond_home, 0U);
  EXPECT_TRUE(Took(outcome, {Pc::kInsertOverflow, Pc::kReadClock, Pc::kHeldCas}));
}

INSTANTIATE_TEST_SUITE_P(Table, EveryInterleaving, testing::Values(Layout::kCompact, Layout::kWide),
                         [](const testing::TestParamInfo<Layout>& param) {
                           return param.param == Layout::kCompact ? "Compact" : "Wide";
                         });

struct BrokenRule {
  const char* name;
  Layout layout;
  Mutant mutant;
  Families families;
  Property caught_by;
  const char* world = "";  // how the names of the families to be searched begin
};

constexpr Layout kCompact = Layout::kCompact;
constexpr Layout kWide = Layout::kWide;

constexpr BrokenRule kBrokenRules[] = {
    {"NoInsertLock", kCompact, Mutant::kNoInsertLock, SlotFamilies, Property::kOneSlot},
    {"NoInsertLockOverAdmits", kWide, Mutant::kNoInsertLock, SlotFamilies, Property::kGcra},
    {"ReclaimByCallerClock", kCompact, Mutant::kReclaimByCallerClock, SlotFamilies,
     Property::kReachable},
    {"ReclaimByCallerClockOverAdmits", kWide, Mutant::kReclaimByCallerClock, SlotFamilies,
     Property::kGcra},
    {"FreshKeyIgnoresClock", kCompact, Mutant::kFreshKeyIgnoresClock, SlotFamilies,
     Property::kGcra},
    {"ClockReadBeforeRescan", kCompact, Mutant::kClockBeforeRescan, SlotFamilies, Property::kGcra,
     "empty slots"},
    {"NoLockBit", kWide, Mutant::kNoLockBit, SlotFamilies, Property::kGcra},
    {"IdentityReadBeforeState", kWide, Mutant::kIdentityBeforeState, SlotFamilies, Property::kGcra},
    {"DenialWrites", kCompact, Mutant::kDenialWrites, SlotFamilies, Property::kDenialSilent},
    {"DenialKeepsLock", kCompact, Mutant::kDenialKeepsLock, SlotFamilies, Property::kProgress},
    {"BlindRewrite", kCompact, Mutant::kBlindRewrite, SweepFamilies, Property::kReachable},
    {"BlindRewriteOverAdmits", kWide, Mutant::kBlindRewrite, SweepFamilies, Property::kGcra},
    {"RefundIgnoresRefunds", kCompact, Mutant::kRefundIgnoresRefunds, RefundFamilies,
     Property::kGcra},
    {"RefundIgnoresOwed", kCompact, Mutant::kRefundIgnoresOwed, RefundFamilies, Property::kGcra},
    {"RefundZeroes", kCompact, Mutant::kRefundZeroes, RefundFamilies, Property::kGcra},
    {"RefundUncapped", kCompact, Mutant::kRefundUncapped, RefundFamilies, Property::kPaid},
    {"RefundByCallerClock", kCompact, Mutant::kRefundByCallerClock, RefundFamilies,
     Property::kGcra},
    {"RefundByCallerClockUncovers", kWide, Mutant::kRefundByCallerClock, RefundFamilies,
     Property::kCovered},
    {"RefundUnlocked", kCompact, Mutant::kRefundUnlocked, RefundFamilies, Property::kCovered},
    {"RefundCounterFirstUnlocked", kCompact, Mutant::kRefundCounterFirstUnlocked, RefundFamilies,
     Property::kGcra},
    {"RefundLeavesNoMark", kWide, Mutant::kRefundLeavesNoMark, RefundFamilies,
     Property::kReachable},
    {"ClearsTheCurrentEpoch", kCompact, Mutant::kClearCurrentEpoch, EpochFamilies,
     Property::kReachable},
    {"ClearsEarly", kCompact, Mutant::kClearEarly, EpochFamilies, Property::kReachable},
    {"ClearsEarlyOverAdmits", kWide, Mutant::kClearEarly, EpochFamilies, Property::kGcra},
    {"EpochIgnoresSkew", kCompact, Mutant::kEpochIgnoresSkew, EpochFamilies, Property::kReachable,
     "current bit, stamps ahead"},
    {"NoOverflowBit", kCompact, Mutant::kNoOverflowBit, EpochFamilies, Property::kReachable},
    {"BeyondHomeUnlocked", kCompact, Mutant::kBeyondHomeUnlocked, EpochFamilies,
     Property::kReachable},
    {"BeyondHomeUnlockedTwice", kWide, Mutant::kBeyondHomeUnlocked, EpochFamilies,
     Property::kOneSlot},
    {"ReviveOnCurrentBit", kCompact, Mutant::kReviveOnCurrentBit, EpochFamilies, Property::kOneSlot,
     "leftover"},
    {"ReviveIgnoresClock", kCompact, Mutant::kReviveIgnoresClock, EpochFamilies, Property::kGcra,
     "leftover"},
    {"BlindIdentityStore", kWide, Mutant::kBlindIdentityStore, EpochFamilies, Property::kReachable,
     "own stripes"},
};

void PrintTo(const BrokenRule& rule, std::ostream* out) {
  *out << rule.name;
}

class ABrokenRule : public testing::TestWithParam<BrokenRule> {};

TEST_P(ABrokenRule, IsCaughtByTheNamedProperty) {
  const BrokenRule& rule = GetParam();
  const Variant variant{rule.name, rule.layout, rule.mutant};
  const Outcome outcome =
      Check(variant, rule.families, Scope::kDefault, Only(rule.caught_by), rule.world);
  EXPECT_EQ(outcome.broken, rule.caught_by);
}

INSTANTIATE_TEST_SUITE_P(Table, ABrokenRule, testing::ValuesIn(kBrokenRules),
                         [](const testing::TestParamInfo<BrokenRule>& param) {
                           return param.param.name;
                         });

}  // namespace
}  // namespace weir::model
