// Holds, reservations, and several charges at once. None of these allocates.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/limiter.h"
#include "weir/weir.h"

#include "c_api/answer.h"
#include "c_api/failure.h"
#include "c_api/handles.h"

namespace weir::c_api {

namespace {

static_assert(WEIR_SETTLED == static_cast<int>(SettleOutcome::kSettled));
static_assert(WEIR_SETTLED_BEFORE == static_cast<int>(SettleOutcome::kAlreadySettled));
static_assert(WEIR_SETTLED_GONE == static_cast<int>(SettleOutcome::kGone));
static_assert(WEIR_SETTLED_REFUSED == static_cast<int>(SettleOutcome::kRefused));
static_assert(sizeof(weir_settlement) == 56 && sizeof(weir_hold) == 48);

std::optional<Duration> Lease(int64_t lease_ns) noexcept {
  return lease_ns == 0 ? std::nullopt : std::optional(Duration(lease_ns));
}

// WEIR_OK, or the failure.
int CheckHold(const weir_limiter* limiter, const weir_hold* hold) noexcept {
  if (limiter == nullptr) {
    return FailNull("limiter");
  }
  return hold == nullptr ? FailNull("hold") : static_cast<int>(WEIR_OK);
}

Hold HoldOf(const weir_hold& hold) noexcept {
  return Hold{std::bit_cast<Receipt>(hold.receipt)};
}

int CheckPart(const weir_part& part) noexcept {
  if (const int failed = CheckArguments(part.limiter, part.key.bytes, part.key.length);
      failed != WEIR_OK) {
    return failed;
  }
  if (part.mode != WEIR_ADMIT && part.mode != WEIR_COUNT_ALWAYS) {
    return Fail(WEIR_INVALID_ARGUMENT,
                "parts.mode: not allowed here; choose 0 (admit) or 1 (count always)");
  }
  return part.reserved == 0 ? static_cast<int>(WEIR_OK)
                            : Fail(WEIR_INVALID_ARGUMENT, "parts.reserved: must be 0");
}

}  // namespace

}  // namespace weir::c_api

namespace c_api = weir::c_api;

int weir_acquire(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                 int64_t lease_ns, weir_hold* hold, weir_decision* decision) {
  if (hold == nullptr) {
    return c_api::AnswerFailure(c_api::FailNull("hold"), decision);
  }
  *hold = weir_hold{};
  if (const int failed = c_api::CheckArguments(limiter, key, key_length); failed != WEIR_OK) {
    return c_api::AnswerFailure(failed, decision);
  }
  const weir::Acquired acquired =
      limiter->limiter.Acquire({key, key_length}, {.cost = cost, .lease = c_api::Lease(lease_ns)});
  hold->receipt = std::bit_cast<weir_receipt>(acquired.hold.receipt);
  hold->fence = acquired.hold.fence();
  return c_api::Answer(acquired.decision, decision);
}

int weir_release(weir_limiter* limiter, const weir_hold* hold) {
  if (const int failed = c_api::CheckHold(limiter, hold); failed != WEIR_OK) {
    return failed;
  }
  return limiter->limiter.Release(c_api::HoldOf(*hold)) ? 1 : 0;
}

int weir_renew(weir_limiter* limiter, const weir_hold* hold, int64_t lease_ns) {
  if (const int failed = c_api::CheckHold(limiter, hold); failed != WEIR_OK) {
    return failed;
  }
  const std::optional<weir::Duration> lease = c_api::Lease(lease_ns);
  if (lease && (*lease < weir::Quota::kMinWindow || *lease > weir::Quota::kMaxLease)) {
    return c_api::Fail(WEIR_INVALID_ARGUMENT,
                       "lease_ns: must be 0, or from 1000 to 31622400000000000 (366 days)");
  }
  return limiter->limiter.Renew(c_api::HoldOf(*hold), {.lease = lease}) ? 1 : 0;
}

int weir_reserve(weir_limiter* limiter, const char* key, size_t key_length, uint64_t estimate,
                 int64_t lasts_ns, uint64_t* reservation, weir_decision* decision) {
  if (reservation == nullptr) {
    return c_api::AnswerFailure(c_api::FailNull("reservation"), decision);
  }
  *reservation = 0;
  if (const int failed = c_api::CheckArguments(limiter, key, key_length); failed != WEIR_OK) {
    return c_api::AnswerFailure(failed, decision);
  }
  weir::ReserveOptions options;
  if (lasts_ns != 0) {
    options.lasts = weir::Duration(lasts_ns);
  }
  const weir::Reserved reserved = limiter->limiter.Reserve({key, key_length}, estimate, options);
  *reservation = reserved.reservation.id;
  return c_api::Answer(reserved.decision, decision);
}

int weir_settle(weir_limiter* limiter, uint64_t reservation, uint64_t actual,
                weir_settlement* settlement) {
  if (settlement != nullptr) {
    *settlement = weir_settlement{};
    settlement->outcome = WEIR_SETTLED_REFUSED;
  }
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  const weir::Settlement made = limiter->limiter.Settle(weir::Reservation{reservation}, actual);
  if (settlement != nullptr) {
    settlement->actual = made.actual;
    settlement->given_back = made.given_back;
    settlement->charged = made.charged;
    settlement->outcome = static_cast<uint32_t>(made.outcome);
    c_api::HandOut(made.decision, &settlement->decision);
  }
  return made.settled() ? 1 : 0;
}

int weir_check_all(const weir_part* parts, size_t count, weir_decision* decisions,
                   weir_receipt* receipts, size_t* deciding) {
  if (decisions == nullptr && count > 0) {
    return c_api::FailNull("decisions");
  }
  int failed = WEIR_OK;
  if (count > weir::kMaxCharges) {
    failed = c_api::Fail(WEIR_INVALID_ARGUMENT, "count: the most is 64");
  } else if (parts == nullptr && count > 0) {
    failed = c_api::FailNull("parts");
  }
  std::array<weir::Charge, weir::kMaxCharges> charges;
  for (size_t i = 0; failed == WEIR_OK && i < count; ++i) {
    failed = c_api::CheckPart(parts[i]);
    if (failed == WEIR_OK) {
      charges[i] = {.limiter = &parts[i].limiter->limiter,
                    .key = {parts[i].key.bytes, parts[i].key.length},
                    .cost = parts[i].cost,
                    .mode = static_cast<weir::ChargeMode>(parts[i].mode)};
    }
  }
  if (receipts != nullptr) {
    std::fill_n(receipts, count, weir_receipt{});
  }
  if (failed != WEIR_OK) {
    for (size_t i = 0; i < count; ++i) {
      c_api::AnswerFailure(failed, &decisions[i]);
    }
    return failed;
  }
  std::array<weir::Decision, weir::kMaxCharges> made;
  std::array<weir::Receipt, weir::kMaxCharges> paid;
  const weir::Verdict verdict = weir::CheckAll(
      {charges.data(), count}, {made.data(), count}, std::nullopt,
      receipts != nullptr ? std::span(paid.data(), count) : std::span<weir::Receipt>());
  for (size_t i = 0; i < count; ++i) {
    c_api::HandOut(made[i], &decisions[i]);
    if (receipts != nullptr) {
      receipts[i] = std::bit_cast<weir_receipt>(paid[i]);
    }
  }
  if (deciding != nullptr) {
    *deciding = verdict.deciding;
  }
  return verdict.allowed() ? 1 : 0;
}
