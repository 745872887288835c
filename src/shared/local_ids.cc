#include "shared/local_ids.h"

#include <utility>

namespace weir::shared {

void LocalIds::Turn(int64_t now_ns) {
  if (now_ns - turned_ns_ < memory_ns_) {
    return;
  }
  // Twice the time: both are over.
  old_ = now_ns - turned_ns_ < 2 * memory_ns_ ? std::move(young_) : Answers();
  young_ = Answers();
  turned_ns_ = now_ns;
  any_.store(!old_.empty(), std::memory_order_relaxed);
}

std::optional<LocalIds::Answer> LocalIds::Find(const script::Digest& id, const script::Digest& key,
                                               int64_t now_ns) {
  const base::MutexLock lock(mutex_);
  Turn(now_ns);
  for (const Answers* const answers : {&young_, &old_}) {
    const auto found = answers->find(NameOf(id, key));
    if (found != answers->end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

void LocalIds::Add(const script::Digest& id, const script::Digest& key, const Answer& answer,
                   int64_t now_ns) {
  const base::MutexLock lock(mutex_);
  Turn(now_ns);
  if (young_.size() + old_.size() < kMost) {
    young_.insert_or_assign(NameOf(id, key), answer);
    any_.store(true, std::memory_order_relaxed);
  }
}

void LocalIds::Remove(const script::Digest& id, const script::Digest& key) {
  const base::MutexLock lock(mutex_);
  young_.erase(NameOf(id, key));
  old_.erase(NameOf(id, key));
}

}  // namespace weir::shared
