// Lets one wait until several answers are there: a fiber, a thread, or a function that is called
// then. Everything but Wait happens on the loop that answers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

#include "net/fiber.h"

namespace weir::shared {

class Completion {
 public:
  enum class Waiter { kFiber, kThread };

  explicit Completion(Waiter waiter) noexcept : waiter_(waiter) {}
  explicit Completion(std::function<void()> then)
      : waiter_(Waiter::kThread), then_(std::move(then)) {}

  // One more answer is awaited.
  void Add() noexcept { ++open_; }

  // One is there. After the last of them *this may be gone.
  void Done() noexcept {
    if (--open_ != 0) {
      return;
    }
    if (then_) {
      const std::function<void()> then = std::move(then_);
      then();
    } else if (waiter_ == Waiter::kFiber) {
      fiber_.Set();
    } else {
      // Told under the lock: who waits cannot be gone before this lets go of it.
      const std::lock_guard lock(mutex_);
      done_ = true;
      told_.notify_one();
    }
  }

  void Wait() noexcept {
    if (waiter_ == Waiter::kFiber) {
      fiber_.Wait();
    } else {
      std::unique_lock lock(mutex_);
      told_.wait(lock, [this] { return done_; });
    }
  }

 private:
  const Waiter waiter_;
  size_t open_ = 0;
  net::Event fiber_;
  std::mutex mutex_;  // plain, for the condition variable
  std::condition_variable told_;
  bool done_ = false;
  std::function<void()> then_;
};

}  // namespace weir::shared
