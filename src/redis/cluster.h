// What the nodes of a Cluster say about who has which slot. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/result.h"

#include "codec/resp/reply_parser.h"
#include "redis/options.h"

namespace weir::redis {

struct SlotRange {
  uint16_t first = 0;
  uint16_t last = 0;
  Address master;
};

// The reply to CLUSTER SLOTS. A node that does not know its own address is at `asked`.
[[nodiscard]] Result<std::vector<SlotRange>> ReadClusterSlots(const codec::resp::Reply& reply,
                                                              const Address& asked);

struct Redirect {
  uint16_t slot = 0;
  Address to;
};

// "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381". Nothing if it is something else.
[[nodiscard]] std::optional<Redirect> ReadRedirect(std::string_view text, const Address& asked);

}  // namespace weir::redis
