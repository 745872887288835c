// A small number for the calling thread, unique among living threads and handed on when a thread
// ends, so that per-thread counters can be plain arrays.
#pragma once

#include <cstdint>

namespace weir::base {

inline constexpr uint32_t kNoThreadIndex = ~uint32_t{0};

// Constant-initialised, so that reading it needs no guard. In the static block of the thread, so
// that reading it from a shared library needs no call.
extern thread_local constinit uint32_t tls_thread_index [[gnu::tls_model("initial-exec")]];

// The same number for a thread that has nothing to look after but the question at hand, else
// kNoThreadIndex: one look tells the short way both. A thread that holds leases has something
// (store/memory/lease.h).
extern thread_local constinit uint32_t tls_free_index [[gnu::tls_model("initial-exec")]];

// The number of a thread whose own one has been handed on: it is ending.
inline constexpr uint32_t kPastThreadIndex = kNoThreadIndex - 1;

[[nodiscard]] uint32_t AssignThreadIndex() noexcept;

[[nodiscard]] inline uint32_t ThreadIndex() noexcept {
  const uint32_t index = tls_thread_index;
  return index != kNoThreadIndex ? index : AssignThreadIndex();
}

}  // namespace weir::base
