// A call that nobody waits for: a refund, or units that the store is told of later.
#pragma once

#include <cstdint>
#include <vector>

#include "redis/call.h"
#include "shared/lane.h"
#include "store/redis/charge_call.h"
#include "store/redis/other_calls.h"

namespace weir::shared {

class Errand final : public redis::Call {
 public:
  explicit Errand(Lane& lane) noexcept : lane_(lane) {}

  void Refund(const script::Paid& paid);
  void Repay(const FleetQuota& quota, const script::Digest& key, uint32_t units);

  void OnReply(const codec::resp::Reply& reply) noexcept override;
  void OnFailure(const redis::Failure& failure) noexcept override;

 private:
  void Count();

  Lane& lane_;
  const FleetQuota* quota_ = nullptr;  // of what is repaid; null: this is a refund
  script::Digest key_{};
  uint32_t units_ = 0;
  int64_t asked_ns_ = 0;
  script::GiveBackCall give_back_;
  script::ChargeCall charge_;
  bool again_ = false;
};

// The flat array of integers that a script answers with; empty if it is something else.
void ReadIntegers(const codec::resp::Reply& reply, std::vector<int64_t>& integers);

}  // namespace weir::shared
