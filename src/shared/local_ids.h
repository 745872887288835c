// What was admitted by this node alone, by the request's id: a client that asks again under it is
// answered alike and charged nothing, also once the store, which never met that id, is back.
//
// Bounded, and forgotten after one to two times as long as the store remembers ids. What finds no
// room is not remembered: asked again, it is charged again. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "weir/decision.h"

#include "base/mutex.h"
#include "shared/key_book.h"
#include "store/redis/key_name.h"

namespace weir::shared {

class LocalIds {
 public:
  static constexpr size_t kMost = 65536;  // in all; about 100 bytes each

  explicit LocalIds(uint64_t memory_ms) noexcept
      : memory_ns_(static_cast<int64_t>(memory_ms) * 1'000'000) {}

  struct Answer {
    Decision decision;
    LocalReceipt receipt;
  };

  // Whether there can be any: what a request with an id pays while the store is well.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  // Of one quota's key under a request's id.
  [[nodiscard]] std::optional<Answer> Find(const script::Digest& id, const script::Digest& key,
                                           int64_t now_ns);
  void Add(const script::Digest& id, const script::Digest& key, const Answer& answer,
           int64_t now_ns);
  void Remove(const script::Digest& id, const script::Digest& key);

 private:
  // Both are digests under the fleet's secret, so nobody chooses what they come to.
  using Name = uint64_t;
  using Answers = std::unordered_map<Name, Answer>;

  static Name NameOf(const script::Digest& id, const script::Digest& key) noexcept {
    return id[0] ^ (key[0] * 0x9e3779b97f4a7c15U);
  }
  void Turn(int64_t now_ns) WEIR_REQUIRES(mutex_);

  const int64_t memory_ns_;
  std::atomic<bool> any_{false};
  base::Mutex mutex_;
  Answers young_ WEIR_GUARDED_BY(mutex_);
  Answers old_ WEIR_GUARDED_BY(mutex_);
  int64_t turned_ns_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::shared
