// Reservations: charges that are kept in the store under a token until somebody knows what they
// came to.
//
// Settled exactly once, though any reply may be lost. The store keeps the record of a settled
// reservation with what it came to, so whoever asks again learns both, and corrects the charges by
// that: under ids that follow from the token, so that each correction counts once.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/wide_math.h"
#include "shared/fleet_store.h"
#include "shared/one_call.h"
#include "shared/receipts.h"
#include "shared/reservation_record.h"

namespace weir::shared {

namespace {

// Corrections are remembered for longer than the record that they follow from.
constexpr uint64_t kSpareMs = 1000;

uint64_t Milliseconds(Duration lasts) {
  return static_cast<uint64_t>(
      std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(lasts).count(), 1));
}

// What one charge of a reservation came to.
uint64_t Due(const LocalReservation& reservation, size_t index, uint64_t actual) {
  const SharedReceipt& receipt = reservation.receipts[index];
  if (QuotaOf(receipt).holds()) {
    return 0;
  }
  // A rule may count a request several times over: what it came to counts as often.
  const uint64_t here =
      reservation.estimate == 0
          ? actual
          : std::min(base::MulDivFloor(actual, reservation.costs[index], reservation.estimate),
                     Cost::kMax);
  return std::min(here, receipt.charged + uint64_t{Quota::kMaxLimit});
}

uint64_t LastsMs(const LocalReservation& reservation, int64_t now_ns) {
  return Milliseconds(Duration(reservation.ends_ns - now_ns));
}

std::optional<script::UnsureRecord> UnsureOf(const std::optional<LocalReservation>& local,
                                             int64_t now_ns) {
  if (!local) {
    return std::nullopt;
  }
  return script::UnsureRecord{.record = WriteRecord(*local), .lasts_ms = LastsMs(*local, now_ns)};
}

SharedSettlement Settled(SharedSettlement settlement, bool before) {
  settlement.outcome = before ? SettleOutcome::kAlreadySettled : SettleOutcome::kSettled;
  settlement.given_back = before ? 0 : settlement.given_back;
  return settlement;
}

bool AllAdmitted(const SharedRequest& request) {
  return std::all_of(request.asks.begin(), request.asks.end(),
                     [](const SharedAsk& ask) { return ask.apart || ask.decision.allowed(); });
}

void RefuseAll(const SharedRequest& request, Problem problem) {
  for (SharedAsk& ask : request.asks) {
    if (!ask.apart) {
      ask.decision = Decision();
      ask.decision.outcome = Outcome::kRefused;
      ask.decision.problem = problem;
    }
  }
}

}  // namespace

void FleetStore::Reserve(SharedRequest& request, uint64_t estimate, Duration lasts,
                         std::string_view token) noexcept {
  if (lasts < std::chrono::microseconds(1) || lasts > Quota::kMaxLease) {
    RefuseAll(request, Problem::kLeaseOutOfRange);
    return;
  }
  request.mode = ChargeMode::kAdmit;
  request.keep_receipts = true;
  request.lease = lasts;
  Decide(request);
  if (!AllAdmitted(request)) {
    return;
  }
  LocalReservation reservation{.estimate = estimate, .ends_ns = common_.NowNs() + lasts.count()};
  bool stored = true;
  for (const SharedAsk& ask : request.asks) {
    if (!ask.apart && ask.receipt.charged != 0) {
      reservation.receipts.push_back(ask.receipt);
      reservation.costs.push_back(ask.cost.units);
      stored = stored && ask.receipt.basis == Basis::kStore;
    }
  }
  if (stored) {
    const script::KeyName name = script::KeyName::OfReservation(secret_.OfName(token));
    OneCall call(name.view(),
                 {"SET", std::string(name.view()), script::OpenRecord(WriteRecord(reservation)),
                  "PX", std::to_string(Milliseconds(lasts)), "NX"});
    OneCall* const all[] = {&call};
    Ask(all);
    if (call.trouble == StoreTrouble::kNone) {
      return;
    }
    reservation.unsure = call.may_have_run;
  }
  KeepLocally(request, std::move(reservation), token);
}

// The store does not keep it, as far as we know: then this node does.
void FleetStore::KeepLocally(const SharedRequest& request, LocalReservation reservation,
                             std::string_view token) noexcept {
  std::vector<SharedReceipt> receipts = reservation.receipts;
  if (!local_reservations_.Add(token, std::move(reservation), common_.NowNs())) {
    GiveBack(receipts);
    RefuseAll(request, Problem::kNoRecords);
  }
}

// A charge of the store's that came to something else.
struct FleetStore::Correction {
  SharedReceipt receipt{};
  uint32_t due = 0;
  script::Digest id{};
  uint64_t memory_ms = 0;
  std::unique_ptr<OneCall> call{};
  script::GiveBackCall back{};
  script::ChargeCall more{};
  bool again = false;

  [[nodiscard]] bool gives_back() const noexcept { return due < receipt.charged; }

  void Encode(const Common& common) {
    if (gives_back()) {
      script::Paid paid = PaidOf(receipt);
      paid.mark.charged -= due;
      back.EncodeOnce({&paid, 1}, {.key = receipt.key, .id = id}, memory_ms);
      call = std::make_unique<OneCall>(back.script(), back.keys(), back.arguments());
      return;
    }
    const script::Ask ask{.plan = &QuotaOf(receipt).plan,
                          .key = receipt.key,
                          .cost = due - receipt.charged,
                          .mode = ChargeMode::kCountAlways};
    more.Encode({&ask, 1}, {.id = &id,
                            .id_memory_ms = memory_ms,
                            .around_us = std::exchange(again, true) ? 0 : common.WallUs()});
    call = std::make_unique<OneCall>(more.script(), more.keys(), more.arguments());
  }
  // The units given back. kAgain: to be encoded and asked once more.
  script::Reading Read(uint32_t& units) {
    if (gives_back()) {
      return back.Decode(call->integers, {&units, 1}) ? script::Reading::kDone
                                                      : script::Reading::kBad;
    }
    Decision decision;
    return more.Decode(call->integers, {&decision, 1});
  }
};

SharedSettlement FleetStore::Correct(std::vector<Correction>& corrections) noexcept {
  SharedSettlement settlement;
  for (int tries = 0; tries < 2 && !corrections.empty(); ++tries) {
    std::vector<OneCall*> calls;
    for (Correction& each : corrections) {
      each.Encode(common_);
      calls.push_back(each.call.get());
    }
    Ask(calls);
    std::erase_if(corrections, [&settlement](Correction& each) {
      if (each.call->trouble != StoreTrouble::kNone) {
        settlement.trouble = each.call->trouble;
        return true;
      }
      uint32_t units = 0;
      const script::Reading reading = each.Read(units);
      if (reading == script::Reading::kBad) {
        settlement.trouble = StoreTrouble::kOther;
      }
      settlement.given_back = std::max<uint64_t>(settlement.given_back, units);
      return reading != script::Reading::kAgain;
    });
  }
  if (!corrections.empty()) {
    settlement.trouble = StoreTrouble::kOther;
  }
  return settlement;
}

SharedSettlement FleetStore::SettleAll(const LocalReservation& reservation, uint64_t actual,
                                       std::string_view token, uint64_t lasts_ms) noexcept {
  std::vector<Correction> corrections;
  uint64_t given_back = 0;
  for (size_t i = 0; i < reservation.receipts.size(); ++i) {
    SharedReceipt receipt = reservation.receipts[i];
    const auto due = static_cast<uint32_t>(Due(reservation, i, actual));
    if (receipt.charged == 0 || due == receipt.charged) {
      continue;
    }
    if (receipt.basis == Basis::kStore) {
      if (due < receipt.charged && !QuotaOf(receipt).holds()) {
        book_->ForgetDenial(BookKeyOf(receipt));
      }
      corrections.push_back(
          {.receipt = receipt,
           .due = due,
           .id = secret_.OfName("settle " + std::to_string(i) + ' ' + std::string(token)),
           .memory_ms = lasts_ms + kSpareMs});
    } else if (due < receipt.charged) {
      receipt.charged -= due;
      given_back = std::max<uint64_t>(given_back, GiveBackLocally(receipt));
    } else {
      RunAndWait([&receipt, due](Lane& lane, Completion&) {
        lane.Repay(QuotaOf(receipt), receipt.key, due - receipt.charged);
      });
    }
  }
  SharedSettlement settlement = Correct(corrections);
  settlement.given_back = std::max(settlement.given_back, given_back);
  settlement.actual = actual;
  return settlement;
}

SharedSettlement FleetStore::Settle(std::string_view token, uint64_t actual) noexcept {
  if (actual > Cost::kMax) {
    return {.outcome = SettleOutcome::kRefused, .problem = Problem::kCostTooLarge};
  }
  const int64_t now = common_.NowNs();
  const auto local = local_reservations_.Settle(token, actual, now);
  if (local && !local->unsure) {
    const SharedSettlement settlement =
        SettleAll(*local, local->settled ? local->actual : actual, token, LastsMs(*local, now));
    return Settled(settlement, local->settled);
  }
  const auto unsure = UnsureOf(local, now);
  OneCall call(script::SettleCall(secret_.OfName(token), actual, unsure ? &*unsure : nullptr));
  OneCall* const all[] = {&call};
  Ask(all);
  if (call.trouble != StoreTrouble::kNone) {
    return {.trouble = call.trouble};
  }
  const script::SettledRecord record = script::ReadSettled(call.text);
  if (record.reading == script::SettleReading::kGone) {
    return {};
  }
  const auto reservation = record.reading == script::SettleReading::kBad
                               ? std::nullopt
                               : ReadRecord(record.record, *this);
  if (!reservation) {
    return {.trouble = StoreTrouble::kOther};
  }
  const bool before = record.reading == script::SettleReading::kSettledBefore;
  const SharedSettlement settlement =
      SettleAll(*reservation, before ? record.actual : actual, token, record.lasts_ms);
  return Settled(settlement, before);
}

bool FleetStore::RenewAll(std::span<SharedReceipt> receipts, Duration lasts) noexcept {
  // A charge cannot be held for longer, and an ended hold is gone.
  return !receipts.empty() &&
         std::all_of(receipts.begin(), receipts.end(),
                     [&](SharedReceipt& receipt) { return Renew(receipt, lasts); });
}

bool FleetStore::RenewReserved(std::string_view token, Duration lasts) noexcept {
  if (lasts < std::chrono::microseconds(1) || lasts > Quota::kMaxLease) {
    return false;
  }
  const int64_t now = common_.NowNs();
  auto local = local_reservations_.Extend(token, now + lasts.count(), now);
  if (local && !local->unsure) {
    return RenewAll(local->receipts, lasts);
  }
  const auto unsure = UnsureOf(local, now);
  OneCall call(
      script::KeepCall(secret_.OfName(token), Milliseconds(lasts), unsure ? &*unsure : nullptr));
  OneCall* const all[] = {&call};
  Ask(all);
  if (call.trouble != StoreTrouble::kNone) {
    return false;
  }
  const script::SettledRecord record = script::ReadSettled(call.text);
  if (record.reading != script::SettleReading::kOpen) {
    return false;
  }
  auto reservation = ReadRecord(record.record, *this);
  return reservation && RenewAll(reservation->receipts, lasts);
}

}  // namespace weir::shared
