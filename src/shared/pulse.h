// Does something now and then on a loop, for as long as it lives. On that loop.
#pragma once

#include <functional>
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
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {  // else *this may be gone
        Wait(beat_());
      }
    });
  }

  boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, net::Executor>
      timer_;
  std::function<Duration()> beat_;
};

}  // namespace weir::shared
