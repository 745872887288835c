// A compiled block or allow list: addresses by prefix, other attributes by value.
#pragma once

#include <string>
#include <vector>

#include "weir/time.h"

#include "rules/anchor_index.h"
#include "rules/attribute_table.h"
#include "rules/request_view.h"
#include "rules/rule_model.h"

namespace weir::rules {

class AccessList {
 public:
  // False: the list names more attributes than a set can have.
  [[nodiscard]] bool Compile(const std::vector<ListEntry>& entries, AttributeTable& attributes);

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] bool has_deadlines() const noexcept { return has_deadlines_; }
  // The entry that holds the request, or nullptr.
  [[nodiscard]] const ListEntry* Find(const RequestView& request, WallTime wall) const noexcept;

 private:
  struct Entry {
    uint16_t attribute = 0;
    ListEntry source;
  };

  std::vector<Entry> entries_;
  AnchorIndex index_;  // its ranks are places in entries_
  bool has_deadlines_ = false;
};

}  // namespace weir::rules
