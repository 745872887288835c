#include "store/memory/table.h"

#include <algorithm>
#include <bit>
#include <new>

namespace weir::store {

namespace {

constexpr uint64_t kStripesMin = 64;
constexpr uint64_t kStripesMax = 16384;
constexpr uint64_t kRefundCountersMax = 65536;

}  // namespace

Table::Table(algorithm::SlotKind kind, size_t budget_bytes,
             base::MappedMemory::Pages pages) noexcept
    : kind_(kind), memory_(budget_bytes, pages) {
  if (memory_.data() == nullptr) {
    return;
  }
  // A stripe to 64 lines and a counter to 16 come to one percent of the budget.
  const uint64_t lines_wanted = budget_bytes / sizeof(Line);
  const uint64_t stripe_count =
      std::bit_floor(std::clamp(lines_wanted / 64, kStripesMin, kStripesMax));
  const uint64_t counter_count =
      std::bit_floor(std::clamp(lines_wanted / 16, kStripesMin, kRefundCountersMax));
  const size_t counter_bytes = counter_count * sizeof(std::atomic<uint64_t>);
  const size_t stripe_bytes = stripe_count * sizeof(Stripe);
  const uint64_t lines = (budget_bytes - counter_bytes - stripe_bytes) / sizeof(Line);
  auto* const bytes = static_cast<std::byte*>(memory_.data());
  // The kernel's memory is zero, which is the state of all of these when never used; creating the
  // objects in place writes that same state and begins their lifetime.
  homes_.lines = reinterpret_cast<Line*>(bytes);
  for (uint64_t i = 0; i < lines; ++i) {
    new (&homes_.lines[i]) Line{};
  }
  refunds_ns_ = reinterpret_cast<std::atomic<uint64_t>*>(bytes + lines * sizeof(Line));
  for (uint64_t i = 0; i < counter_count; ++i) {
    new (&refunds_ns_[i]) std::atomic<uint64_t>{0};
  }
  stripes_ = reinterpret_cast<Stripe*>(bytes + lines * sizeof(Line) + counter_bytes);
  for (uint64_t i = 0; i < stripe_count; ++i) {
    new (&stripes_[i]) Stripe{};
  }
  refund_mask_ = counter_count - 1;
  homes_.count = lines - (kProbe - 1);
  stripe_mask_ = stripe_count - 1;
}

}  // namespace weir::store
