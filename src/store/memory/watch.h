// Who is asking most: a limiter's most frequent keys, from a sample of its decisions.
//
// A binding that is watched has its operations replaced by ones that call the real ones and then,
// for one decision in some, note the key; a binding that is not pays nothing. Each thread notes in
// one of a few summaries (base/space_saving.h), which are merged when somebody asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/decision.h"

#include "base/space_saving.h"
#include "base/spin_lock.h"
#include "store/memory/binding.h"

namespace weir::store {

class Watch {
 public:
  static constexpr uint32_t kCountersMax = 4096;
  static constexpr uint32_t kSampleMax = uint32_t{1} << 20;

  // REQUIRES: 0 < counters <= kCountersMax; sample a power of two up to kSampleMax.
  Watch(uint32_t counters, uint32_t sample);

  // One decision in `sample`, chosen at random, counts for all of them.
  void Note(const Binding& binding, std::string_view key, const Decision& decision) noexcept;

  [[nodiscard]] base::SpaceSaving Merged() const;

  // Has a binding's decisions noted here. Before anybody uses it.
  static void Attach(Binding& binding, Watch* watch) noexcept;

 private:
  static constexpr size_t kParts = 8;

  struct alignas(64) Part {
    explicit Part(size_t counters) : summary(counters) {}

    mutable base::SpinLock lock;
    base::SpaceSaving summary WEIR_GUARDED_BY(lock);
  };

  uint32_t counters_;
  uint32_t sample_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace weir::store
