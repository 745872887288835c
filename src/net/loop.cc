#include "net/loop.h"

#include <pthread.h>
#include <sched.h>

#include <future>
#include <utility>

#include <boost/asio/post.hpp>

#include "net/connection.h"

namespace weir::net {

namespace {

thread_local constinit Loop* tls_current = nullptr;

}  // namespace

Loop* Loop::Current() noexcept {
  return tls_current;
}

Loop::Loop() : work_(context_.get_executor()), timer_(context_.get_executor()) {}

Loop::~Loop() {
  Stop();
}

void Loop::Start(const std::string& thread_name, int cpu) {
  thread_ = std::thread([this, thread_name, cpu] {
    pthread_setname_np(pthread_self(), thread_name.substr(0, 15).c_str());
    if (cpu >= 0) {
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(static_cast<unsigned>(cpu), &only);
      // A container may forbid it; then it runs where it is put.
      (void)pthread_setaffinity_np(pthread_self(), sizeof only, &only);
    }
    tls_current = this;
    Tick();
    context_.run();
  });
}

void Loop::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  Post([this] {
    timer_.cancel();
    // Each takes itself out of the list, now or when its last operation has called back.
    const std::vector<Connection*> all = connections_;
    for (Connection* const connection : all) {
      connection->Abort();
    }
    Finish();
  });
  thread_.join();
}

// Those that wait for something are let end first: they wait for milliseconds.
void Loop::Finish() {
  if (fibers_.open() != 0) {
    timer_.expires_after(std::chrono::milliseconds(1));
    timer_.async_wait([this](const boost::system::error_code&) { Finish(); });
    return;
  }
  for (const std::function<void()>& end : std::exchange(ends_, {})) {
    end();
  }
  work_.reset();
}

void Loop::Post(std::function<void()> work) {
  boost::asio::post(context_, std::move(work));
}

void Loop::Run(const std::function<void()>& work) {
  if (!thread_.joinable()) {
    work();  // nobody else is there
    return;
  }
  std::promise<void> done;
  Post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void Loop::Add(Connection& connection) {
  connection.index_ = connections_.size();
  connections_.push_back(&connection);
  counters_.open.store(connections_.size(), std::memory_order_relaxed);
}

void Loop::Remove(Connection& connection) {
  deadlines_.Remove(connection);
  connections_.back()->index_ = connection.index_;
  connections_[connection.index_] = connections_.back();
  connections_.pop_back();
  counters_.open.store(connections_.size(), std::memory_order_relaxed);
}

void Loop::Drain() {
  draining_ = true;
  for (Connection* const connection : connections_) {
    connection->Drain();
  }
}

void Loop::Tick() {
  timer_.expires_after(std::chrono::seconds(1));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) {
      return;
    }
    ++now_;
    deadlines_.Advance(
        now_, [](Deadlines::Entry& entry) { static_cast<Connection&>(entry).OnDeadline(); });
    Tick();
  });
}

}  // namespace weir::net
