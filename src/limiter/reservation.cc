// Reservations: the estimate is charged with a receipt, which is kept until it is settled.
#include "weir/reservation.h"

#include <algorithm>
#include <charconv>

#include "weir/limiter.h"

#include "base/spelling.h"
#include "limiter/limiter_state.h"
#include "store/memory/engine.h"
#include "store/memory/reservations.h"

namespace weir {

namespace {

constexpr size_t kDigits = 16;

Problem WhyNot(const Limiter::State& state, const ReserveOptions& options) noexcept {
  if (state.current().plan().algorithm == Algorithm::kConcurrency) {
    return Problem::kWrongQuota;
  }
  if (state.shared.records == nullptr) {
    return Problem::kNoRecords;
  }
  return options.lasts < Quota::kMinWindow || options.lasts > Quota::kMaxLease
             ? Problem::kLeaseOutOfRange
             : Problem::kNone;
}

Decision Refuse(Limiter::State& state, Problem problem) noexcept {
  state.shared.counters.Get().Add(&store::CounterCell::refusals, 1);
  return store::Refused(problem, state.current().plan().burst);
}

// Nothing is charged that could not be settled, whatever the store does with other keys.
Decision NoRoom(Limiter::State& state) noexcept {
  const store::Counters::Mine mine = state.shared.counters.Get();
  mine.Add(&store::CounterCell::overflow, 1);
  mine.Add(&store::CounterCell::denials, 1);
  Decision decision;
  decision.limit = state.current().plan().burst;
  decision.basis = Basis::kClosed;
  decision.retry_after = std::chrono::seconds(1);
  return decision;
}

}  // namespace

std::string Reservation::ToString() const {
  char digits[kDigits];
  const auto end = std::to_chars(digits, digits + kDigits, id, 16).ptr;
  const std::string text(digits, end);
  return std::string(kDigits - text.size(), '0') + text;
}

Result<Reservation> Reservation::Parse(std::string_view text) {
  Reservation reservation;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto read = std::from_chars(begin, end, reservation.id, 16);
  if (text.size() != kDigits || read.ec != std::errc() || read.ptr != end || reservation.id == 0) {
    return Error::Invalid("reservation: " + base::Quoted(text, 2 * kDigits) +
                          " is none; expected 16 hexadecimal digits, not all of them 0");
  }
  return reservation;
}

Reserved Limiter::Reserve(std::string_view key, Cost estimate,
                          const ReserveOptions& options) noexcept {
  Reserved reserved;
  store::SharedState& shared = state_->shared;
  if (const Problem problem = WhyNot(*state_, options); problem != Problem::kNone) {
    reserved.decision = Refuse(*state_, problem);
    return reserved;
  }
  uint64_t now_ns = 0;
  if (!state_->ReadNow(options.now, now_ns)) {
    reserved.decision = Refuse(*state_, Problem::kNowTooFar);
    return reserved;
  }
  const uint64_t ends_ns = now_ns + static_cast<uint64_t>(options.lasts.count());
  const uint64_t id = store::OpenReservation(shared, state_->origin, ends_ns);
  if (id == 0) {
    reserved.decision = NoRoom(*state_);
    return reserved;
  }
  store::Binding& binding = state_->current();
  store::ReservedCharge charge;
  const store::Request request{.cost = estimate.units, .receipt = &charge.receipt};
  binding.ops.charge(binding, key, request, now_ns, reserved.decision);
  if (!reserved.decision.allowed()) {
    store::DropReservation(shared, state_->origin, id);
    return reserved;
  }
  charge.receipt.hash = base::HashKey(key, shared.secret);
  // No more than a burst, but for gaps, which do not count units.
  charge.receipt.charged = static_cast<uint32_t>(std::min<uint64_t>(estimate.units, ~uint32_t{0}));
  charge.phase = store::PhaseFor(binding, key);
  store::FillReservation(shared, state_->origin, id, charge);
  reserved.reservation = Reservation{id};
  return reserved;
}

Settlement Limiter::Settle(Reservation reservation, Cost actual,
                           std::optional<Timestamp> now) noexcept {
  Settlement settlement;
  store::SharedState& shared = state_->shared;
  if (actual.units > Cost::kMax) {
    settlement.outcome = SettleOutcome::kRefused;
    settlement.decision = Refuse(*state_, Problem::kCostTooLarge);
    return settlement;
  }
  uint64_t now_ns = 0;
  if (!state_->ReadNow(now, now_ns)) {
    settlement.outcome = SettleOutcome::kRefused;
    settlement.decision = Refuse(*state_, Problem::kNowTooFar);
    return settlement;
  }
  if (shared.records == nullptr || reservation.id == 0) {
    return settlement;
  }
  store::ReservedCharge charge;
  settlement.actual = actual.units;
  const store::Closing closing = store::CloseReservation(shared, state_->origin, reservation.id,
                                                         now_ns, settlement.actual, charge);
  if (closing != store::Closing::kClosed) {
    settlement.outcome =
        closing == store::Closing::kBefore ? SettleOutcome::kAlreadySettled : SettleOutcome::kGone;
    settlement.actual = closing == store::Closing::kBefore ? settlement.actual : 0;
    return settlement;
  }
  settlement.outcome = SettleOutcome::kSettled;
  store::Binding& binding = state_->current();
  const uint64_t key_hash = charge.receipt.hash;
  // A gap counts requests, however much they cost.
  const bool counts = binding.plan().algorithm != Algorithm::kMinGap;
  const uint64_t estimate = charge.receipt.charged;
  const uint64_t used = counts              ? actual.units
                        : actual.units == 0 ? 0
                                            : std::max<uint64_t>(estimate, 1);
  if (used < estimate) {
    charge.receipt.charged = static_cast<uint32_t>(estimate - used);
    settlement.given_back = binding.ops.give_back(binding, charge.receipt, now_ns).units;
  }
  const store::Request beyond{.cost = used > estimate ? used - estimate : 0,
                              .mode = ChargeMode::kCountAlways};
  binding.ops.charge_hashed(binding, key_hash, charge.phase, beyond, now_ns, settlement.decision);
  settlement.charged = settlement.decision.charged;
  return settlement;
}

}  // namespace weir
