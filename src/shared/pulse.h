// Does something now and then on a loop, for as long as it lives. On that loop.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "weir/time.h"

#include "net/loop.h"

namespace weir::shared {

class Pulse {
 public:
  // `beat` says how long until the next.
  Pulse(boost::asio::io_context& context, std::function<Duration()> beat)
      : timer_(context.get_executor()), beat_(std::move(beat)) {
    Wait(Duration::zero());
  }

 private:
  void Wait(Duration pause) {
    timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(pause));
    // A beat that was due when *this went is still called, and without an error.
    timer_.async_wait(
        [this, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code& error) {
          if (!error && !alive.expired()) {
            Wait(beat_());
          }
        });
  }

  boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, net::Executor>
      timer_;
  std::function<Duration()> beat_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weir::shared
