#include "store/memory/reservations.h"

#include "store/memory/records.h"

namespace weir::store {

namespace {

constexpr uint64_t kWords = 7;
constexpr uint64_t kOpen = ~uint64_t{0};
constexpr uint64_t kUnfilled = kOpen - 1;

// Bindings are numbered below this, so no quota's record is taken for one of these.
constexpr uint32_t kReservations = uint32_t{1} << 31;
static_assert(SharedState::kBindingsMax <= kReservations);

// splitmix64's last step, a bijection: numbers differ for as long as the counter does.
uint64_t Scatter(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

uint64_t NextNumber(SharedState& store) noexcept {
  // Relaxed: only that no two callers get the same.
  const uint64_t id =
      Scatter(store.next_reservation.fetch_add(0x9e3779b97f4a7c15U, std::memory_order_relaxed));
  return id != 0 ? id : NextNumber(store);
}

}  // namespace

uint64_t OpenReservation(SharedState& store, uint32_t owner, uint64_t ends_ns) noexcept {
  Records& records = *store.records;
  const uint64_t id = NextNumber(store);
  Records::Bucket& bucket = records.BucketOf(id);
  const Records::Holder lock(bucket);
  Record* const record =
      records.Add(bucket, id, owner | kReservations, kWords, store.clock.floor_ns());
  if (record == nullptr) {
    return 0;
  }
  record->live_until_ns = ends_ns;
  record->body()[6] = kUnfilled;
  return id;
}

void FillReservation(SharedState& store, uint32_t owner, uint64_t id,
                     const ReservedCharge& charge) noexcept {
  const Records& records = *store.records;
  Records::Bucket& bucket = records.BucketOf(id);
  const Records::Holder lock(bucket);
  Record* const record = records.Find(bucket, id, owner | kReservations);
  if (record == nullptr) {
    return;  // it has ended in the meantime
  }
  const auto body = record->body();
  body[0] = charge.receipt.hash;
  body[1] = charge.receipt.mark;
  body[2] = charge.receipt.refunds;
  body[3] = charge.receipt.at_ns;
  body[4] = uint64_t{charge.receipt.charged} << 32 | charge.receipt.binding;
  body[5] = charge.phase;
  body[6] = kOpen;
}

void DropReservation(SharedState& store, uint32_t owner, uint64_t id) noexcept {
  Records& records = *store.records;
  Records::Bucket& bucket = records.BucketOf(id);
  const Records::Holder lock(bucket);
  if (Record* const record = records.Find(bucket, id, owner | kReservations); record != nullptr) {
    records.Remove(bucket, *record);
  }
}

Closing CloseReservation(SharedState& store, uint32_t owner, uint64_t id, uint64_t now_ns,
                         uint64_t& actual, ReservedCharge& charge) noexcept {
  const Records& records = *store.records;
  Records::Bucket& bucket = records.BucketOf(id);
  const Records::Holder lock(bucket);
  Record* const record = records.Find(bucket, id, owner | kReservations);
  if (record == nullptr || now_ns >= record->live_until_ns || record->body()[6] == kUnfilled) {
    return Closing::kGone;
  }
  const auto body = record->body();
  if (body[6] != kOpen) {
    actual = body[6];
    return Closing::kBefore;
  }
  body[6] = actual;
  charge.receipt = Receipt{.hash = body[0],
                           .mark = body[1],
                           .refunds = body[2],
                           .at_ns = body[3],
                           .charged = static_cast<uint32_t>(body[4] >> 32),
                           .binding = static_cast<uint32_t>(body[4])};
  charge.phase = body[5];
  return Closing::kClosed;
}

}  // namespace weir::store
