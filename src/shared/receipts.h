// What a SharedReceipt of this store holds, and back.
#pragma once

#include "weir/hold.h"
#include "weir/shared_store.h"

#include "shared/fleet_quota.h"
#include "shared/key_book.h"
#include "store/redis/other_calls.h"

namespace weir::shared {

[[nodiscard]] inline const FleetQuota& QuotaOf(const SharedReceipt& receipt) noexcept {
  return static_cast<const FleetQuota&>(*receipt.quota);
}

[[nodiscard]] inline BookKey BookKeyOf(const SharedReceipt& receipt) noexcept {
  return {receipt.key[0], receipt.key[1]};
}

// Of a charge that the store counted.
[[nodiscard]] inline script::Paid PaidOf(const SharedReceipt& receipt) noexcept {
  return {.plan = &QuotaOf(receipt).plan,
          .key = receipt.key,
          .mark = {.words = receipt.mark, .charged = receipt.charged}};
}

// Of this node's share.
inline void Write(const LocalReceipt& local, SharedReceipt& receipt) noexcept {
  receipt.mark = {static_cast<uint64_t>(local.tat_ns), local.settled ? 1U : 0U, 0, 0};
}

[[nodiscard]] inline LocalReceipt LocalReceiptOf(const SharedReceipt& receipt) noexcept {
  return {.tat_ns = static_cast<int64_t>(receipt.mark[0]),
          .charged = receipt.charged,
          .settled = receipt.mark[1] != 0};
}

// Of what this node holds by itself, whose key is that of its own store.
inline void Write(const Receipt& hold, SharedReceipt& receipt) noexcept {
  receipt.key = {hold.hash, hold.refunds};
  receipt.mark = {hold.mark, hold.at_ns, hold.binding, 0};
}

[[nodiscard]] inline Hold LocalHoldOf(const SharedReceipt& receipt) noexcept {
  return {{.hash = receipt.key[0],
           .mark = receipt.mark[0],
           .refunds = receipt.key[1],
           .at_ns = receipt.mark[1],
           .charged = receipt.charged,
           .binding = static_cast<uint32_t>(receipt.mark[2])}};
}

}  // namespace weir::shared
