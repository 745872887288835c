// A call that nobody waits for: a refund, units that the store is told of later, the second try of
// a charge with an id whose first had no answer, or such a charge undone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
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
  // The request was decided without the store, which may have charged it. Under the same id it is
  // charged now if it was not; `admitted` says whether it stays so. If not it is undone, unless
  // the client has asked again meanwhile and was told yes.
  enum class Admitted : bool { kNo, kYes };
  void MakeSure(std::span<const script::Ask> asks, const script::Digest& id,
                const script::Claim& claim, Admitted admitted);
  void Undo(std::span<const script::Paid> paid, const script::GiveBackCall::Record& record,
            const script::Claim& claim);
  void TryAgain();
  // Of what is tried again: the first key, the store's memory of the id is over, nobody tries more.
  [[nodiscard]] std::string_view key() const noexcept;
  [[nodiscard]] bool expired() const noexcept;
  void GiveUp();

  void OnReply(const codec::resp::Reply& reply) noexcept override;
  void OnFailure(const redis::Failure& failure) noexcept override;

 private:
  enum class Kind : uint8_t { kRefund, kRepay, kSure, kUndo };

  void Count();
  void SubmitGiveBack();
  void OnSure();
  // What is repeated under its id does no harm, so it is for as long as the store knows the id.
  [[nodiscard]] bool MayTryAgain(const redis::Failure& failure) const;

  Lane& lane_;
  Kind kind_ = Kind::kRefund;
  const FleetQuota* quota_ = nullptr;  // of what is repaid
  script::Digest key_{};
  uint32_t units_ = 0;
  int64_t asked_ns_ = 0;
  script::GiveBackCall give_back_;
  script::ChargeCall charge_;
  bool again_ = false;
  std::vector<script::Ask> asks_;  // to make sure of
  script::Digest id_{};
  script::Claim claim_;
  Admitted admitted_ = Admitted::kNo;
  std::vector<int64_t> integers_;
};

// The flat array of integers that a script answers with; empty if it is something else.
void ReadIntegers(const codec::resp::Reply& reply, std::vector<int64_t>& integers);

}  // namespace weir::shared
