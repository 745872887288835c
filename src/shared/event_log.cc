#include "shared/event_log.h"

#include <algorithm>

namespace weir::shared {

void EventLog::Note(const void* who, const redis::Event& event) {
  const bool trouble = event.kind == redis::Event::Kind::kTrouble;
  bool tell = false;
  {
    const base::MutexLock lock(mutex_);
    if (trouble) {
      Seen& seen = troubles_[event.node];
      tell = std::none_of(seen.begin(), seen.end(),
                          [&](const auto& entry) { return entry.second == event.trouble; });
      seen[who] = event.trouble;
    } else if (event.kind == redis::Event::Kind::kRecovered) {
      const auto found = troubles_.find(event.node);
      if (found != troubles_.end() && found->second.erase(who) != 0 && found->second.empty()) {
        troubles_.erase(found);
        tell = true;
      }
    } else {
      std::string& last = last_[event.node];
      tell = last != event.text;  // the other clients say the same
      last = event.text;
    }
    changes_ += tell && event.kind != redis::Event::Kind::kTopology ? 1 : 0;
  }
  if (tell && hook_) {
    hook_({.trouble = trouble,
           .node = event.node,
           .cause = NameOf(event.trouble),
           .text = event.text});
  }
}

void EventLog::Forget(const void* who) {
  const base::MutexLock lock(mutex_);
  for (auto node = troubles_.begin(); node != troubles_.end();) {
    node->second.erase(who);
    node = node->second.empty() ? troubles_.erase(node) : std::next(node);
  }
}

uint64_t EventLog::changes() const {
  const base::MutexLock lock(mutex_);
  return changes_;
}

bool EventLog::away() const {
  const base::MutexLock lock(mutex_);
  return !troubles_.empty();
}

}  // namespace weir::shared
