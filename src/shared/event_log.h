// Tells of each change once, although every loop has a client that notices it: the first to see a
// trouble or to open a breaker speaks, and the last to see it end. A warning has no end; it is told
// once, and does not mean that somebody is away.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
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

  [[nodiscard]] bool IsNews(const void* who, const redis::Event& event) WEIR_REQUIRES(mutex_);

  const std::function<void(const RedisEvent&)> hook_;
  mutable base::Mutex mutex_;
  std::map<std::string, Seen> troubles_ WEIR_GUARDED_BY(mutex_);  // by node
  std::set<std::pair<std::string, redis::Trouble>> warned_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, std::set<const void*>> open_ WEIR_GUARDED_BY(mutex_);  // breakers, by node
  std::string topology_ WEIR_GUARDED_BY(mutex_);                               // the last news
  uint64_t changes_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::shared
