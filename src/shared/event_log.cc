#include "shared/event_log.h"

#include <algorithm>
#include <utility>

namespace weir::shared {

bool EventLog::IsNews(const void* who, const redis::Event& event) {
  switch (event.kind) {
    case redis::Event::Kind::kTrouble: {
      Seen& seen = troubles_[event.node];
      const bool news = std::none_of(seen.begin(), seen.end(), [&](const auto& entry) {
        return entry.second == event.trouble;
      });
      seen[who] = event.trouble;
      return news;
    }
    case redis::Event::Kind::kRecovered: {
      const auto found = troubles_.find(event.node);
      if (found == troubles_.end() || found->second.erase(who) == 0 || !found->second.empty()) {
        return false;
      }
      troubles_.erase(found);
      return true;
    }
    case redis::Event::Kind::kWarning:
      return warned_.emplace(event.node, event.trouble).second;
    case redis::Event::Kind::kOpened: {
      std::set<const void*>& open = open_[event.node];
      open.insert(who);
      return open.size() == 1;
    }
    case redis::Event::Kind::kClosed: {
      std::set<const void*>& open = open_[event.node];
      return open.erase(who) != 0 && open.empty();
    }
    case redis::Event::Kind::kTopology:
      return std::exchange(topology_, event.text) != event.text;  // the other clients say the same
  }
  return false;
}

void EventLog::Note(const void* who, const redis::Event& event) {
  bool tell = false;
  {
    const base::MutexLock lock(mutex_);
    tell = IsNews(who, event);
    changes_ += tell && event.kind != redis::Event::Kind::kTopology &&
                        event.kind != redis::Event::Kind::kWarning
                    ? 1
                    : 0;
  }
  if (tell && hook_) {
    hook_({.trouble = event.kind == redis::Event::Kind::kTrouble ||
                      event.kind == redis::Event::Kind::kWarning,
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
  for (auto& [node, open] : open_) {
    open.erase(who);
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
