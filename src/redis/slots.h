// Which of 16384 slots a key lies in, as Redis Cluster counts them; and a slot's instance in a
// list.
//
// Every topology here is a table of slots: a single server has all of them, a Cluster says who has
// which, and a list of instances gives each slot to the one that a rendezvous hash ranks first, so
// that an instance more or less moves its own share of keys only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "redis/options.h"

namespace weir::redis {

// CRC16 of what is between the first { and the next }, if that is not empty, else of all of it.
[[nodiscard]] uint16_t SlotOf(std::string_view key) noexcept;

// Alike in every process and version: whoever shares the list agrees on it. The order of the list
// does not matter, the spelling of its addresses does.
class Rendezvous {
 public:
  explicit Rendezvous(const std::vector<Address>& instances);
  // An index into the list.
  [[nodiscard]] size_t InstanceOf(uint16_t slot) const noexcept;

 private:
  std::vector<uint64_t> seeds_;
};

}  // namespace weir::redis
