// One server: its address, its connections, its breaker and what has been counted of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "redis/breaker.h"
#include "redis/link.h"

namespace weir::redis {

struct Node {
  Node(const Address& where, const BreakerOptions& options)
      : address(where), name(where.ToText()), breaker(options) {}

  const Address address;
  const std::string name;
  bool is_sentinel = false;
  // Nobody is sent here any more; it goes when nothing is awaited of it.
  bool retired = false;
  // Its first connection is under way, so that calls wait for it instead of failing.
  bool fresh = true;
  std::vector<std::unique_ptr<Link>> links;
  std::vector<Flight*> waiting;  // for the first connection
  uint32_t slots = 0;
  uint32_t in_flight = 0;  // calls sent and not answered, wanted or not

  Breaker breaker;
  Timestamp probe_due{};       // kProbing: of the next, or when the one under way has failed
  bool probe_awaited = false;  // a PING is under way

  Trouble trouble = Trouble::kNone;
  Timestamp trouble_since{};
  Timestamp trouble_seen{};  // the last time
  uint32_t warned = 0;       // bits of Trouble: warnings that were told
  NodeStatus counts;

  [[nodiscard]] bool ready() const noexcept {
    for (const auto& link : links) {
      if (link->ready()) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool usable() const noexcept { return breaker.closed() && ready(); }

  // The one with the least to do; nullptr: none is ready.
  [[nodiscard]] Link* Pick() const noexcept {
    Link* best = nullptr;
    for (const auto& link : links) {
      if (link->ready() && (best == nullptr || link->awaited() < best->awaited())) {
        best = link.get();
      }
    }
    return best;
  }
};

}  // namespace weir::redis
