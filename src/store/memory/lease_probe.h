// Leases from outside, for tests: has a thread take one without a race, and plays several threads
// on one.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "weir/limiter.h"

#include "base/thread_index.h"
#include "store/memory/lease.h"
#include "store/memory/shared_state.h"
#include "store/memory/table_probe.h"

namespace weir::store {

// Asks as a thread would that has just lost as many races for the key as it takes. The last of the
// answers. `quota` counts the limiters of the store from 1 in the order of their making.
inline Decision CheckAsHot(Limiter& limiter, std::string_view key, Timestamp now, uint64_t cost = 1,
                           uint64_t* admitted = nullptr, uint32_t quota = 1) {
  SharedState& shared = limiter.store()->state();
  auto& binding = const_cast<Binding&>(*shared.BindingOf(quota));
  Decision decision;
  for (int i = 0; i < 4 && decision.basis != Basis::kLease; ++i) {
    uint64_t now_ns = 0;
    if (!shared.Admit(now, now_ns)) {
      break;
    }
    tls_lost_race = true;
    binding.ops.check(binding, key, cost, now_ns, decision);
    if (admitted != nullptr) {
      *admitted += decision.charged;
    }
  }
  tls_lost_race = false;
  return decision;
}

// Whether the calling thread looks for leases at all.
inline bool HoldsLeases() {
  return base::tls_free_index == base::kNoThreadIndex;
}

// A thread that is only played. Give each another number, from kFirst on; real threads are given
// the lowest.
class PlayedThread {
 public:
  static constexpr uint32_t kFirst = 200;

  // Leaves over what a player of this number held in stores that are gone.
  explicit PlayedThread(uint32_t number) : index_(kFirst + number) {
    LeaseDesk* const own = tls_desk;
    const uint32_t own_index = std::exchange(base::tls_thread_index, index_);
    const uint32_t own_free_index = base::tls_free_index;
    tls_desk = LeaseOffice::no_desk();
    if (LeaseOffice::Join()) {
      desk_ = tls_desk;
    }
    LeaseOffice::Tidy();
    tls_desk = own;
    base::tls_thread_index = own_index;
    base::tls_free_index = own_free_index;
  }

  // While it lives, the calling thread is the played one.
  class As {
   public:
    explicit As(PlayedThread& thread)
        : thread_(thread),
          index_(base::tls_thread_index),
          free_index_(base::tls_free_index),
          desk_(tls_desk) {
      base::tls_thread_index = thread.index_;
      base::tls_free_index = thread.free_index_;
      tls_desk = thread.desk_;
    }
    ~As() {
      thread_.free_index_ = base::tls_free_index;
      base::tls_thread_index = index_;
      base::tls_free_index = free_index_;
      tls_desk = desk_;
    }
    As(const As&) = delete;
    As& operator=(const As&) = delete;

   private:
    PlayedThread& thread_;
    uint32_t index_;
    uint32_t free_index_;
    LeaseDesk* desk_;
  };

 private:
  uint32_t index_;
  uint32_t free_index_ = index_;
  LeaseDesk* desk_ = nullptr;
};

}  // namespace weir::store
