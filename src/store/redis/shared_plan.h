// A quota compiled for the scripts: the laws of src/algorithm in whole microseconds, and what is
// sent of it with every charge.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"

#include "algorithm/calendar.h"
#include "algorithm/plan.h"
#include "base/time_zone.h"
#include "store/redis/script_set.h"

namespace weir::script {

// Redis tells time in microseconds. Buckets whose interval is none of them in whole count parts of
// one: a microsecond is plan.subdivision ticks, so that the rate is exact, or met to one part in a
// million. A tick is carried as (whole microseconds, ticks), neither of which leaves what a double
// holds exactly.
struct SharedTicks {
  static constexpr algorithm::SlotKind kSlot = algorithm::SlotKind::kWide;
  static constexpr unsigned kPayloadBits = 62;
  static constexpr uint64_t kUsNs = 1000;

  // Modulo 2^64: differences are what counts. REQUIRES: whole microseconds.
  static constexpr uint64_t FromNs(const algorithm::Plan& plan, uint64_t ns) noexcept {
    return ns / kUsNs * plan.subdivision;
  }
  // Rounded up to the microsecond: waiting this long is enough.
  static constexpr uint64_t ToNs(const algorithm::Plan& plan, uint64_t ticks) noexcept {
    return (ticks + plan.subdivision - 1) / plan.subdivision * kUsNs;
  }
  static constexpr uint64_t FromNsUp(const algorithm::Plan& plan, uint64_t ns) noexcept {
    return (ns + kUsNs - 1) / kUsNs * plan.subdivision;
  }
};

class SharedPlan {
 public:
  // The largest subdivision: products with half a cost stay below 2^53 (lua/bucket.lua).
  static constexpr uint64_t kSubdivisionMax = uint64_t{1} << 36;

  // Fails where Redis cannot hold the quota: windows, slices and logs are whole microseconds there.
  // The error names the field and the nearest value that is allowed.
  static Result<SharedPlan> Compile(const Quota& quota);

  [[nodiscard]] const algorithm::Plan& law() const noexcept { return law_; }
  [[nodiscard]] Id script() const noexcept { return script_; }
  // For KeySecret::Of: quotas of the same kind take over each other's state when a rule changes.
  [[nodiscard]] uint8_t kind() const noexcept { return static_cast<uint8_t>(script_); }
  [[nodiscard]] char letter() const noexcept;  // of the kind, in kMany and kGiveBack
  [[nodiscard]] bool is_queue() const noexcept { return law_.undelayed != 0; }
  [[nodiscard]] bool counts_units() const noexcept { return script_ != Id::kGap; }
  // No state differs from a fresh one for longer than this.
  [[nodiscard]] Duration horizon() const noexcept { return algorithm::ToDuration(law_.horizon_ns); }

  // Calendar quotas only.
  [[nodiscard]] algorithm::Period PeriodAt(int64_t unix_us) const noexcept;

  // Windows only: tells those of one cut of time from those of another. Exact in a double.
  [[nodiscard]] double family() const noexcept { return family_; }
  // Buckets only: the interval's short name in a state, 1 to 999; 0: it has none.
  [[nodiscard]] uint32_t interval_code() const noexcept { return interval_code_; }
  // The same in three digits.
  [[nodiscard]] std::string_view interval_name() const noexcept {
    return {interval_name_.data(), interval_name_.size()};
  }

 private:
  SharedPlan() = default;

  algorithm::Plan law_;
  Id script_ = Id::kBucket;
  double family_ = 0;
  uint32_t interval_code_ = 0;
  std::array<char, 3> interval_name_ = {'0', '0', '0'};
  CalendarPeriod period_ = CalendarPeriod::kMonth;
  std::shared_ptr<const base::TimeZone> zone_;  // calendar quotas only
};

}  // namespace weir::script
