// Waiting for one's turn in a queue, for users of Boost.Asio (1.77 or later; weir itself needs no
// Boost, and no other header of weir includes this one).
//
//   auto quota = weir::Quota::Parse("10/s burst 21 queue");
//   ...
//   const weir::Decision d =
//       co_await weir::AsyncWait(limiter, key, {.max_wait = 500ms}, boost::asio::use_awaitable);
//   if (!d.allowed()) co_return Reply429(d.retry_after);
//
// Works with any quota: where nothing waits, it is a check whose answer arrives by the executor.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include "weir/decision.h"
#include "weir/limiter.h"
#include "weir/time.h"

namespace weir {

struct WaitOptions {
  Cost cost = 1;
  // What could not start within this is denied at once.
  Duration max_wait = Duration::max();
};

namespace asio_internal {

// The composed operation: asked once, then woken once, by the executor or by the timer.
class WaitOperation {
 public:
  WaitOperation(Limiter& limiter, std::string_view key, const WaitOptions& options)
      : limiter_(&limiter), key_(key), options_(options) {}

  template <class Self>
  void operator()(Self& self, boost::system::error_code error = {}) {
    if (asked_) {
      Finish(self, error);
      return;
    }
    asked_ = true;
    self.reset_cancellation_state(boost::asio::enable_total_cancellation());
    decision_ = limiter_->Check(
        key_,
        CheckOptions{.cost = options_.cost, .receipt = &receipt_, .max_wait = options_.max_wait});
    const Duration wait = decision_.start_after();
    if (wait == Duration::zero()) {
      boost::asio::post(std::move(self));
      return;
    }
    timer_ = std::make_unique<boost::asio::steady_timer>(self.get_executor());
    timer_->expires_after(wait);
    // This object moves into the handler, and the timer with it.
    boost::asio::steady_timer& timer = *timer_;
    timer.async_wait(std::move(self));
  }

 private:
  template <class Self>
  void Finish(Self& self, boost::system::error_code error) {
    timer_.reset();
    if (self.cancelled() != boost::asio::cancellation_type::none) {
      error = boost::asio::error::operation_aborted;
    }
    if (error) {
      limiter_->GiveBack(receipt_);
      decision_.outcome = Outcome::kDenied;
      decision_.charged = 0;
      decision_.retry_after = Duration::zero();
    } else if (decision_.allowed()) {
      decision_.retry_after = Duration::zero();  // it has been waited for
    }
    const Decision decision = decision_;
    self.complete(error, decision);
  }

  Limiter* limiter_;
  std::string key_;  // a token may start the operation later, when the caller's text has gone
  WaitOptions options_;
  Decision decision_;
  Receipt receipt_;
  std::unique_ptr<boost::asio::steady_timer> timer_;
  bool asked_ = false;
};

}  // namespace asio_internal

// Charges `key` and completes when what was charged may start, with void(error_code, Decision):
//
//   allowed             at its start, which for most quotas is at once
//   denied, refused     at once, no error: the decision says why and when to come back
//   cancelled           operation_aborted. The charge is given back as far as Limiter::GiveBack
//                       gives; the decision is denied. Any kind of cancellation will do.
//
// Never completes inside the call, and always on the executor that belongs to the completion
// handler: that of the coroutine, or of bind_executor. Without one, and with use_future, that is
// Asio's system_executor, whose threads are its own.
// A wait that is destroyed with its executor keeps its place in the queue.
// REQUIRES: the limiter outlives the operation.
template <class Token>
auto AsyncWait(Limiter& limiter, std::string_view key, const WaitOptions& options, Token&& token) {
  return boost::asio::async_compose<Token, void(boost::system::error_code, Decision)>(
      asio_internal::WaitOperation(limiter, key, options), token);
}

// The same with another executor for handlers that bring none.
template <class Executor, class Token>
auto AsyncWait(const Executor& executor, Limiter& limiter, std::string_view key,
               const WaitOptions& options, Token&& token) {
  return boost::asio::async_compose<Token, void(boost::system::error_code, Decision)>(
      asio_internal::WaitOperation(limiter, key, options), token, executor);
}

}  // namespace weir
