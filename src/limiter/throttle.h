// Limits whose rate comes with each request, as the Redis commands CL.THROTTLE and THROTTLE ask
// for. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/result.h"
#include "weir/store.h"
#include "weir/time.h"

#include "algorithm/throttle.h"
#include "store/memory/throttle.h"

namespace weir {

class ThrottleLimiter {
 public:
  // A key in a form that is fetched ahead and decided later.
  struct Hashed {
    uint64_t hash = 0;
  };

  static Result<std::unique_ptr<ThrottleLimiter>> Create(std::shared_ptr<MemoryStore> store);

  // Any bytes, empty ones too: these are other people's keys.
  [[nodiscard]] Hashed Prepare(std::string_view key) const noexcept;

  // REQUIRES: ask.interval_ns > 0. `now` that is not believable is read anew.
  algorithm::ThrottleAnswer Take(Hashed key, const algorithm::ThrottleAsk& ask,
                                 std::optional<Timestamp> now = std::nullopt) noexcept;

  // False: it owed nothing.
  bool Forget(Hashed key, std::optional<Timestamp> now = std::nullopt) noexcept;

 private:
  ThrottleLimiter(std::shared_ptr<MemoryStore> store, store::Binding& binding);

  [[nodiscard]] uint64_t NowNs(const std::optional<Timestamp>& now) const noexcept;

  const std::shared_ptr<MemoryStore> store_;
  store::ThrottledKeys keys_;
};

}  // namespace weir
