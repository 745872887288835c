// Keys that bring their rate along (CL.THROTTLE, THROTTLE), counted in a store that others share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"
#include "weir/shared_store.h"

#include "algorithm/throttle.h"
#include "base/mutex.h"

namespace weir::server {

// Thread-safe.
class SharedThrottle {
 public:
  // Clients choose them, so there is an end to it.
  static constexpr size_t kRatesMax = 4096;

  explicit SharedThrottle(SharedStore& store) : store_(store) {}

  // The rate as the store has it. The error is for the client.
  Result<const SharedQuota*> Find(const algorithm::ThrottleAsk& ask);

  // Starts a key anew. False: there was nothing to forget.
  bool Forget(std::string_view key);

  struct Question {
    std::string_view key;
    algorithm::ThrottleAsk ask;
    const SharedQuota* rate = nullptr;
    algorithm::ThrottleAnswer answer{};  // filled in
  };
  static constexpr size_t kQuestionsMax = 32;
  // All of them at once, each for itself. May wait. REQUIRES: at most kQuestionsMax.
  void Take(std::span<Question> questions) noexcept;

 private:
  SharedStore& store_;
  base::Mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, const SharedQuota*> rates_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::server
