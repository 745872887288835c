// The worlds that the model is checked in, and every program over their small alphabets.
#pragma once

#include <string>
#include <vector>

#include "table_model.h"

namespace weir::model {

enum class Scope : uint8_t {
  kDefault,  // what every run of the tests checks
  kFull,     // larger alphabets, for a change of the protocol
};

struct Family {
  Setup setup;
  std::vector<Program> programs;
};

// One line of one or two slots; charges of two keys that share a stripe or do not.
std::vector<Family> SlotFamilies(Scope scope);
// The same with a sweeper that rewrites expired slots meanwhile.
std::vector<Family> SweepFamilies(Scope scope);
// Charges and refunds, of receipts from before the program and of its own.
std::vector<Family> RefundFamilies(Scope scope);
// Two lines of one slot, keys beyond their home, overflow bits cleared and epochs swapped.
std::vector<Family> EpochFamilies(Scope scope);

std::string Describe(const Setup& setup, const Program& program);

}  // namespace weir::model
