// An event loop on a thread of its own, and the connections on it. Nothing here is shared between
// loops, so nothing here locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/byte_buffer.h"
#include "net/deadlines.h"
#include "net/fiber.h"

namespace weir::net {

class Connection;

using Executor = boost::asio::io_context::executor_type;

// Written by the loop, read by anybody. Relaxed: each number stands alone.
struct LoopCounters {
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};    // for want of room
  std::atomic<uint64_t> timed_out{0};  // a message or its answer took too long
  std::atomic<uint64_t> open{0};
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }

  // Runs until Stop, on a thread of its own; `cpu` below 0 leaves it where the system puts it.
  void Start(const std::string& thread_name, int cpu);
  // Ends every connection, and the thread. From outside the loop.
  void Stop();
  // Runs once, on the loop, when all its connections have gone: whoever has operations of its own
  // under way there ends them, or Stop would wait for them. On the loop.
  void OnStop(std::function<void()> end) { ends_.push_back(std::move(end)); }
  // The one that the calling thread runs; none elsewhere.
  [[nodiscard]] static Loop* Current() noexcept;
  // Runs it on the loop, soon.
  void Post(std::function<void()> work);
  // Runs it on the loop and waits for that; at once if the loop does not run. From outside it.
  void Run(const std::function<void()>& work);

  // Sessions may wait: each answers in a fiber. Before anything is opened.
  void LetSessionsWait() noexcept { sessions_wait_ = true; }
  [[nodiscard]] bool sessions_wait() const noexcept { return sessions_wait_; }
  [[nodiscard]] Fibers& fibers() noexcept { return fibers_; }

  // Of the loop's own clock, good to a second, for deadlines.
  [[nodiscard]] Deadlines::Seconds now() const noexcept { return now_; }
  [[nodiscard]] Deadlines& deadlines() noexcept { return deadlines_; }
  [[nodiscard]] LoopCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const LoopCounters& counters() const noexcept { return counters_; }

  // Memory for answers, lent to whoever answers: as a rule all use the same bytes, one after the
  // other, which never leave the processor's cache.
  [[nodiscard]] base::ByteBuffer& spare_output() noexcept { return spare_output_; }

  // On the loop only.
  void Add(Connection& connection);
  void Remove(Connection& connection);
  [[nodiscard]] size_t connection_count() const noexcept { return connections_.size(); }
  // Tells every session that the server is going.
  void Drain();
  [[nodiscard]] bool draining() const noexcept { return draining_; }

 private:
  void Tick();
  void Finish();

  // Its sockets are touched on its own thread only, so they need no locks.
  boost::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  boost::asio::executor_work_guard<Executor> work_;
  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>, Executor>
      timer_;
  Deadlines deadlines_;
  Deadlines::Seconds now_ = 1;
  std::vector<Connection*> connections_;
  std::vector<std::function<void()>> ends_;
  LoopCounters counters_;
  base::ByteBuffer spare_output_;
  bool draining_ = false;
  bool sessions_wait_ = false;
  Fibers fibers_{context_};
  std::thread thread_;
};

}  // namespace weir::net
