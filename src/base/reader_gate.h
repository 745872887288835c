// A lock for what is read all the time and changed once in a while. Readers count themselves in a
// stripe that they share with few others, so they do not meet; who changes closes the gate, waits
// until those inside have left, and has it to itself.
//
// Readers may come in again while they are inside, even if the gate has been closed meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/thread_index.h"

namespace weir::base {

class ReaderGate {
 public:
  ReaderGate() = default;
  ReaderGate(const ReaderGate&) = delete;
  ReaderGate& operator=(const ReaderGate&) = delete;

  // Returns what Leave wants back. Waits while the gate is closed.
  [[nodiscard]] const void* Enter() noexcept {
    std::atomic<uint32_t>& inside = Stripe();
    const void* const outer = tls_inside;
    // Sequentially consistent, as is the other side: either this sees that the gate is closed, or
    // the one who closed it sees this.
    inside.fetch_add(1, std::memory_order_seq_cst);
    while (closed_.load(std::memory_order_seq_cst) && outer != this) [[unlikely]] {
      inside.fetch_sub(1, std::memory_order_release);
      closed_.wait(true, std::memory_order_acquire);
      inside.fetch_add(1, std::memory_order_seq_cst);
    }
    tls_inside = this;
    return outer;
  }

  // In the thread that entered, the last that came in first.
  void Leave(const void* outer) noexcept {
    tls_inside = outer;
    Stripe().fetch_sub(1, std::memory_order_release);
  }

  // Whether the calling thread is inside. May not know it of one that is inside another gate too.
  [[nodiscard]] bool IsInside() const noexcept { return tls_inside == this; }

  // Runs `change` while nobody is inside. One at a time. REQUIRES: !IsInside().
  template <class Change>
  void Exclusively(Change change) {
    const Closing closing(*this);
    change();
  }

 private:
  static constexpr size_t kStripes = 64;

  struct alignas(64) Counter {
    std::atomic<uint32_t> readers{0};
  };

  class Closing {
   public:
    explicit Closing(ReaderGate& gate) noexcept : gate_(gate) {
      // seq_cst, both: a reader counts itself and then looks at closed_; we close and then look at
      // the counts. In one order of all four, one of us sees the other.
      gate_.closed_.store(true, std::memory_order_seq_cst);
      for (Counter& stripe : gate_.stripes_) {
        while (stripe.readers.load(std::memory_order_seq_cst) != 0) {
          std::this_thread::yield();  // they are inside for microseconds
        }
      }
    }
    ~Closing() {
      gate_.closed_.store(false, std::memory_order_seq_cst);
      gate_.closed_.notify_all();
    }
    Closing(const Closing&) = delete;
    Closing& operator=(const Closing&) = delete;

   private:
    ReaderGate& gate_;
  };

  [[nodiscard]] std::atomic<uint32_t>& Stripe() noexcept {
    return stripes_[ThreadIndex() % kStripes].readers;
  }

  // The gate that this thread entered last and is still inside of.
  static inline thread_local constinit const void* tls_inside = nullptr;

  std::array<Counter, kStripes> stripes_;
  std::atomic<bool> closed_{false};
};

}  // namespace weir::base
