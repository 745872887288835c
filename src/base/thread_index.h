// A small number for the calling thread, unique among living threads and handed on when a thread
// ends, so that per-thread counters can be plain arrays.
#pragma once

#include <cstdint>

namespace weir::base {

inline constexpr uint32_t kNoThreadIndex = ~uint32_t{0};

// Constant-initialised, so that reading it needs no guard. In the static block of the thread, so
// that reading it from a shared library needs no call.
extern thread_local constinit uint32_t tls_thread_index [[gnu::tls_model("initial-exec")]];

[[nodiscard]] uint32_t AssignThreadIndex() noexcept;

[[nodiscard]] inline uint32_t ThreadIndex() noexcept {
  const uint32_t index = tls_thread_index;
  return index != kNoThreadIndex ? index : AssignThreadIndex();
}

}  // namespace weir::base
