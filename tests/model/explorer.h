// Visits every state that a program can reach, breadth first, so that the schedule it prints for a
// broken property is among the shortest there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "table_model.h"

namespace weir::model {

inline constexpr uint32_t kEveryProperty = (1U << kProperties) - 2;

constexpr uint32_t Only(Property property) {
  return 1U << static_cast<uint32_t>(property);
}

// Reusable, so that thousands of small searches share one allocation.
class Explorer {
 public:
  // Returns the first property of `mask` that does not hold in some reachable state.
  Property Explore(TableModel& model, uint32_t mask);

  // Of the last search.
  [[nodiscard]] size_t states() const { return states_.size(); }
  // The schedule that led to the broken property, one step a line.
  [[nodiscard]] std::vector<std::string> Schedule(TableModel& model) const;

 private:
  struct Origin {
    uint32_t parent;
    uint8_t action;
  };

  void Reset();
  void Grow();
  [[nodiscard]] size_t Find(const State& state) const;
  // True if the state had not been seen.
  bool Insert(const State& state, Origin origin);

  std::vector<State> states_;  // in the order of their discovery: also the queue
  std::vector<Origin> origins_;
  std::vector<uint32_t> index_;  // open addressing; 1 + position in states_, 0 empty
  size_t broken_at_ = 0;
};

}  // namespace weir::model
