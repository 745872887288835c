// Reservations: charges that are kept in the store under a token until somebody knows what they
// came to.
#include <algorithm>
#include <utility>

#include "base/wide_math.h"
#include "shared/fleet_store.h"
#include "shared/one_call.h"
#include "shared/receipts.h"
#include "shared/reservation_record.h"

namespace weir::shared {

namespace {

std::string Milliseconds(Duration lasts) {
  return std::to_string(
      std::max<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(lasts).count(), 1));
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
                  "PX", Milliseconds(lasts), "NX"});
    OneCall* const all[] = {&call};
    Ask(all);
    if (call.trouble == StoreTrouble::kNone) {
      return;
    }
  }
  KeepLocally(request, std::move(reservation), token);
}

// The store cannot keep it: then this node does, and only it can settle.
void FleetStore::KeepLocally(const SharedRequest& request, LocalReservation reservation,
                             std::string_view token) noexcept {
  std::vector<SharedReceipt> receipts = reservation.receipts;
  if (!local_reservations_.Add(token, std::move(reservation), common_.NowNs())) {
    GiveBack(receipts);
    RefuseAll(request, Problem::kNoRecords);
  }
}

uint64_t FleetStore::SettleAll(LocalReservation& reservation, uint64_t actual) noexcept {
  std::vector<SharedReceipt> back;
  struct More {
    SharedReceipt receipt;
    uint32_t units;
  };
  std::vector<More> more;
  for (size_t i = 0; i < reservation.receipts.size(); ++i) {
    SharedReceipt receipt = reservation.receipts[i];
    if (QuotaOf(receipt).holds()) {
      back.push_back(receipt);
      continue;
    }
    // A rule may count a request several times over: what it came to counts as often.
    const uint64_t here =
        reservation.estimate == 0
            ? actual
            : std::min(base::MulDivFloor(actual, reservation.costs[i], reservation.estimate),
                       Cost::kMax);
    if (here < receipt.charged) {
      receipt.charged -= static_cast<uint32_t>(here);
      back.push_back(receipt);
    } else if (here > receipt.charged) {
      more.push_back({receipt, static_cast<uint32_t>(
                                   std::min<uint64_t>(here - receipt.charged, Quota::kMaxLimit))});
    }
  }
  if (!more.empty()) {
    RunAndWait([&more](Lane& lane, Completion&) {
      for (const More& each : more) {
        lane.Repay(QuotaOf(each.receipt), each.receipt.key, each.units);
      }
    });
  }
  return back.empty() ? 0 : GiveBack(back);
}

SharedSettlement FleetStore::Settle(std::string_view token, uint64_t actual) noexcept {
  if (actual > Cost::kMax) {
    return {.outcome = SettleOutcome::kRefused, .problem = Problem::kCostTooLarge};
  }
  if (auto local = local_reservations_.Settle(token, actual, common_.NowNs())) {
    if (local->settled) {
      return {.outcome = SettleOutcome::kAlreadySettled, .actual = local->actual};
    }
    return {.outcome = SettleOutcome::kSettled,
            .actual = actual,
            .given_back = SettleAll(*local, actual)};
  }
  OneCall call(script::SettleCall(secret_.OfName(token), actual));
  OneCall* const all[] = {&call};
  Ask(all);
  if (call.trouble != StoreTrouble::kNone) {
    return {.trouble = call.trouble};
  }
  const script::SettledRecord record = script::ReadSettled(call.text);
  switch (record.reading) {
    case script::SettleReading::kSettledBefore:
      return {.outcome = SettleOutcome::kAlreadySettled, .actual = record.actual};
    case script::SettleReading::kGone:
      return {};
    case script::SettleReading::kBad:
      return {.trouble = StoreTrouble::kOther};
    case script::SettleReading::kOpen:
      break;
  }
  auto reservation = ReadRecord(record.record, *this);
  if (!reservation) {
    return {.trouble = StoreTrouble::kOther};
  }
  return {.outcome = SettleOutcome::kSettled,
          .actual = actual,
          .given_back = SettleAll(*reservation, actual)};
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
  std::vector<SharedReceipt> local = local_reservations_.Extend(token, now + lasts.count(), now);
  if (!local.empty()) {
    return RenewAll(local, lasts);
  }
  OneCall call(script::KeepCall(
      secret_.OfName(token),
      static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(lasts).count())));
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
