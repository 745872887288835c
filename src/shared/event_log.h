// Tells of each change once, although every loop has a client that notices it: the first to see a
// trouble speaks, and the last to see it end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "weir/redis.h"

#include "base/mutex.h"
#include "redis/status.h"

namespace weir::shared {

class EventLog {
 public:
  explicit EventLog(std::function<void(const RedisEvent&)> hook) : hook_(std::move(hook)) {}

  // From the loop of the client `who`.
  void Note(const void* who, const redis::Event& event);
  // That client is gone.
  void Forget(const void* who);

  [[nodiscard]] uint64_t changes() const;
  [[nodiscard]] bool away() const;

 private:
  using Seen = std::map<const void*, redis::Trouble>;

  const std::function<void(const RedisEvent&)> hook_;
  mutable base::Mutex mutex_;
  std::map<std::string, Seen> troubles_ WEIR_GUARDED_BY(mutex_);     // by node
  std::map<std::string, std::string> last_ WEIR_GUARDED_BY(mutex_);  // other news, by node
  uint64_t changes_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::shared
