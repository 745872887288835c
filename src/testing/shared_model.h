// One key of a shared store as C++ alone would keep it: the laws of src/algorithm on a state of
// their own, and beside them the one thing that only a shared store needs, a bound on how long a
// clock that is set back can lock a key out. What the scripts answer must be what this answers.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/decision.h"

#include "store/redis/charge_call.h"

namespace weir::testing {

class SharedModel {
 public:
  SharedModel() = default;
  SharedModel(const SharedModel&) = delete;
  SharedModel& operator=(const SharedModel&) = delete;
  virtual ~SharedModel() = default;

  // Decides and, unless it is a look, charges. REQUIRES: the ask is one that is not refused.
  virtual Decision Charge(int64_t now_us, const script::Ask& ask) = 0;
  // The mark that the store gave for the charge that was made last.
  virtual void Note(const script::Mark& mark) = 0;
  // Of what was charged, by the store's mark of it.
  virtual uint32_t GiveBack(int64_t now_us, const script::Mark& mark) = 0;
  // Whether reset_after is the law's. Concurrency may count released holds for large keys.
  [[nodiscard]] virtual bool knows_reset() const { return true; }
};

// REQUIRES: the plan outlives it.
[[nodiscard]] std::unique_ptr<SharedModel> MakeSharedModel(const script::SharedPlan& plan,
                                                           const script::Digest& key);

}  // namespace weir::testing
