// Work that may wait without holding its loop up: it runs on a stack of its own, and while it waits
// the loop does other things. So what asks a store over the network is written as straight code.
//
//   fibers.Start([this] {
//     Event answered;
//     Ask(question, [&answered] { answered.Set(); });
//     answered.Wait();   // others run meanwhile
//     Answer();
//   });
//
// A fiber stays on its loop, so nothing here locks. Locks must not be held over a wait: who wants
// one may be the next on the same thread.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace weir::net {

class Fibers;
class FiberStack;

// Whether the caller may wait for an Event. If not it is a thread, which has to block.
[[nodiscard]] bool InFiber() noexcept;

// Happens once, or again after Wait has returned. For one that waits, on the same loop.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Who waits goes on soon: not within this call. On the loop.
  void Set() noexcept;
  // REQUIRES: InFiber().
  void Wait() noexcept;

 private:
  FiberStack* waiter_ = nullptr;
  bool set_ = false;
};

// Those of one loop.
class Fibers {
 public:
  explicit Fibers(boost::asio::io_context& context) noexcept;
  // REQUIRES: none waits.
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Runs `work` at once, until it ends or waits. Small work is kept without memory of its own.
  template <class Work>
  void Start(Work work) {
    static_assert(std::is_nothrow_move_constructible_v<Work>);
    Task task;
    if constexpr (sizeof(Work) <= kTaskBytes && alignof(Work) <= alignof(std::max_align_t)) {
      new (task.room) Work(std::move(work));
      task.run = [](void* room) noexcept {
        Work* const own = std::launder(static_cast<Work*>(room));
        (*own)();
        own->~Work();
      };
    } else {
      new (task.room) Work*(new Work(std::move(work)));
      task.run = [](void* room) noexcept {
        const std::unique_ptr<Work> own(*std::launder(static_cast<Work**>(room)));
        (*own)();
      };
    }
    Begin(task);
  }

  // Those of the fiber that calls; nullptr outside of one.
  [[nodiscard]] static Fibers* Current() noexcept;

  // Begun and not ended yet.
  [[nodiscard]] size_t open() const noexcept { return open_; }

 private:
  friend class Event;
  friend class FiberStack;

  static constexpr size_t kTaskBytes = 64;

  struct Task {
    void (*run)(void* room) noexcept = nullptr;
    alignas(std::max_align_t) char room[kTaskBytes];
  };

  void Begin(const Task& task);
  // Lets it go on after whatever runs now.
  void MakeReady(FiberStack& fiber);
  void RunReady();
  void Recycle(FiberStack& fiber);

  boost::asio::io_context& context_;
  std::vector<std::unique_ptr<FiberStack>> idle_;
  std::vector<FiberStack*> ready_;
  std::vector<FiberStack*> running_;  // those of ready_ that are being run, so that both keep room
  size_t open_ = 0;
};

// work(0), work(1), … up to count: begun in this order and, in a fiber, each in one of its own, so
// that what they wait for they wait for together. Returns when all have ended.
template <class Work>
void ForEachTogether(size_t count, const Work& work) {
  Fibers* const fibers = Fibers::Current();
  if (fibers == nullptr || count == 1) {
    for (size_t i = 0; i < count; ++i) {
      work(i);
    }
    return;
  }
  size_t left = count;
  Event all_ended;
  for (size_t i = 0; i < count; ++i) {
    fibers->Start([&work, &left, &all_ended, i]() noexcept {
      work(i);
      if (--left == 0) {
        all_ended.Set();
      }
    });
  }
  if (count != 0) {
    all_ended.Wait();
  }
}

}  // namespace weir::net
