#include "store/memory/table.h"

#include <algorithm>
#include <bit>
#include <new>

namespace weir::store {

namespace {

constexpr uint64_t kStripesMin = 64;
constexpr uint64_t kStripesMax = 16384;

}  // namespace

Table::Table(algorithm::SlotKind kind, size_t budget_bytes,
             base::MappedMemory::Pages pages) noexcept
    : kind_(kind), memory_(budget_bytes, pages) {
  if (memory_.data() == nullptr) {
    return;
  }
  // A stripe to about 64 lines costs half a percent of the budget.
  const uint64_t lines_wanted = budget_bytes / sizeof(Line);
  const uint64_t stripe_count =
      std::bit_floor(std::clamp(lines_wanted / 64, kStripesMin, kStripesMax));
  const size_t stripe_bytes = stripe_count * sizeof(Stripe);
  const uint64_t lines = (budget_bytes - stripe_bytes) / sizeof(Line);
  auto* const bytes = static_cast<std::byte*>(memory_.data());
  // The kernel's memory is zero, which is the state of a line and a stripe never used; creating the
  // objects in place writes that same state and begins their lifetime.
  lines_ = reinterpret_cast<Line*>(bytes);
  for (uint64_t i = 0; i < lines; ++i) {
    new (&lines_[i]) Line{};
  }
  stripes_ = reinterpret_cast<Stripe*>(bytes + lines * sizeof(Line));
  for (uint64_t i = 0; i < stripe_count; ++i) {
    new (&stripes_[i]) Stripe{};
  }
  homes_ = lines - (kProbe - 1);
  stripe_mask_ = stripe_count - 1;
}

}  // namespace weir::store
