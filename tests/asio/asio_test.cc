// Waiting by Boost.Asio: on a real io_context and its steady timer, with intervals of milliseconds.
// Nothing here depends on how fast the machine is: only on what comes before what.
#include "weir/asio.h"

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

namespace weir {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::hours;
using std::chrono::milliseconds;

Limiter Make(const char* quota) {
  MemoryOptions options;
  options.budget_bytes = MemoryStore::kMinBudgetBytes;
  options.huge_pages = false;
  return *Limiter::Create(*Quota::Parse(quota), options);
}

struct Completion {
  error_code error;
  Decision decision;
};

// A callback that notes what it was called with.
auto Into(std::optional<Completion>& place) {
  return [&place](error_code error, const Decision& decision) {
    EXPECT_FALSE(place.has_value()) << "completed twice";
    place = Completion{error, decision};
  };
}

TEST(AsioWait, CompletesInOrderAndNotBeforeItsTurn) {
  asio::io_context io;
  Limiter limiter = Make("200/s burst 4 queue");
  const Timestamp begun = limiter.Now();
  std::vector<int> order;
  std::vector<Timestamp> started;
  for (int i = 0; i < 4; ++i) {
    AsyncWait(io.get_executor(), limiter, "key", {}, [&, i](error_code error, Decision decision) {
      EXPECT_FALSE(error);
      EXPECT_TRUE(decision.allowed());
      EXPECT_EQ(decision.start_after(), Duration::zero()) << "it has been waited for";
      order.push_back(i);
      started.push_back(limiter.Now());
    });
  }
  EXPECT_TRUE(order.empty()) << "never inside the call";
  io.run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  for (size_t i = 0; i < started.size(); ++i) {
    // 5 ms each, from the first charge, which came after `begun`.
    EXPECT_GE(started[i] - begun, milliseconds(5) * static_cast<int64_t>(i));
  }
}

TEST(AsioWait, TurnsAwayAtOnceWhatDoesNotFitOrWouldWaitTooLong) {
  asio::io_context io;
  Limiter limiter = Make("1/h burst 2 queue");
  std::optional<Completion> first;
  std::optional<Completion> impatient;
  std::optional<Completion> bad;
  AsyncWait(io.get_executor(), limiter, "key", {}, Into(first));
  AsyncWait(io.get_executor(), limiter, "key", {.max_wait = milliseconds(1)}, Into(impatient));
  AsyncWait(io.get_executor(), limiter, "", {}, Into(bad));
  EXPECT_FALSE(impatient.has_value() || bad.has_value()) << "never inside the call";
  io.run();  // returns: nobody waits for an hour
  EXPECT_TRUE(first->decision.allowed());
  EXPECT_FALSE(impatient->error);
  EXPECT_EQ(impatient->decision.outcome, Outcome::kDenied);
  EXPECT_GT(impatient->decision.retry_after, milliseconds(1));
  EXPECT_FALSE(bad->error);
  EXPECT_EQ(bad->decision.problem, Problem::kKeyEmpty);
  EXPECT_EQ(limiter.Check("key", 0).remaining, 1U) << "only the first was charged";
}

TEST(AsioWait, GivesItsPlaceBackWhenCancelled) {
  for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                          asio::cancellation_type::total}) {
    asio::io_context io;
    Limiter limiter = Make("1/h burst 3 queue");
    ASSERT_TRUE(limiter.Check("key").allowed());
    std::optional<Completion> waiting;
    asio::cancellation_signal signal;
    AsyncWait(io.get_executor(), limiter, "key", {.cost = 2},
              asio::bind_cancellation_slot(signal.slot(), Into(waiting)));
    EXPECT_EQ(limiter.Check("key", 0).remaining, 0U);
    io.poll();
    EXPECT_FALSE(waiting.has_value());
    signal.emit(type);
    io.run();
    ASSERT_TRUE(waiting.has_value());
    EXPECT_EQ(waiting->error, asio::error::operation_aborted);
    EXPECT_FALSE(waiting->decision.allowed());
    EXPECT_EQ(waiting->decision.charged, 0U);
    EXPECT_EQ(limiter.Check("key", 0).remaining, 2U);
  }
}

TEST(AsioWait, CancelledBeforeItWasToldGivesBackToo) {
  asio::io_context io;
  Limiter limiter = Make("1/h burst 3 queue");
  std::optional<Completion> first;
  asio::cancellation_signal signal;
  AsyncWait(io.get_executor(), limiter, "key", {},
            asio::bind_cancellation_slot(signal.slot(), Into(first)));
  signal.emit(asio::cancellation_type::total);
  io.run();
  EXPECT_EQ(first->error, asio::error::operation_aborted);
  EXPECT_EQ(limiter.Check("key", 0).remaining, 3U);
}

TEST(AsioWait, InACoroutine) {
  asio::io_context io;
  Limiter limiter = Make("200/s burst 3 queue");
  std::vector<bool> answers;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        // The key's text is gone by the time the operation starts.
        auto later =
            AsyncWait(limiter, std::string("a key of some length, so that it is on the heap"), {},
                      asio::use_awaitable);
        answers.push_back((co_await std::move(later)).allowed());
        for (int i = 0; i < 3; ++i) {
          const Decision decision = co_await AsyncWait(limiter, "key", {}, asio::use_awaitable);
          answers.push_back(decision.allowed());
        }
      },
      asio::detached);
  io.run();
  EXPECT_EQ(answers, (std::vector<bool>{true, true, true, true}));
}

TEST(AsioWait, LosesARaceAgainstATimeoutAndLeavesNothingBehind) {
  using asio::experimental::awaitable_operators::operator||;
  asio::io_context io;
  Limiter limiter = Make("1/h burst 3 queue");
  ASSERT_TRUE(limiter.Check("key").allowed());
  std::optional<size_t> winner;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        asio::steady_timer timeout(co_await asio::this_coro::executor, milliseconds(2));
        const auto result = co_await (AsyncWait(limiter, "key", {}, asio::use_awaitable) ||
                                      timeout.async_wait(asio::use_awaitable));
        winner = result.index();
      },
      asio::detached);
  io.run();
  EXPECT_EQ(winner, std::optional<size_t>(1));
  EXPECT_EQ(limiter.Check("key", 0).remaining, 2U);
}

TEST(AsioWait, TakesEveryKindOfToken) {
  asio::io_context io;
  Limiter limiter = Make("1000/s burst 8 queue");
  auto deferred = AsyncWait(io.get_executor(), limiter, "key", {}, asio::deferred);
  std::optional<Completion> done;
  std::move(deferred)(Into(done));
  bool on_strand = false;
  const auto strand = asio::make_strand(io);
  AsyncWait(limiter, "key", {}, asio::bind_executor(strand, [&](error_code, const Decision&) {
              on_strand = strand.running_in_this_thread();
            }));
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        const auto [error, decision] =
            co_await AsyncWait(limiter, "key", {}, asio::as_tuple(asio::use_awaitable));
        EXPECT_FALSE(error);
        EXPECT_TRUE(decision.allowed());
      },
      asio::detached);
  io.run();
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->decision.allowed());
  EXPECT_TRUE(on_strand);
}

// A future brings Asio's system_executor: nobody has to run an io_context for it.
TEST(AsioWait, AsFutures) {
  Limiter limiter = Make("1000/s burst 8 queue");
  std::vector<std::future<Decision>> futures;
  for (int i = 0; i < 3; ++i) {
    futures.push_back(AsyncWait(limiter, "key", {}, asio::use_future));
  }
  for (std::future<Decision>& future : futures) {
    EXPECT_TRUE(future.get().allowed());
  }
}

TEST(AsioWait, DestroyedWithItsExecutorTouchesNothing) {
  std::optional<Limiter> limiter = Make("1/h burst 3 queue");
  auto io = std::make_unique<asio::io_context>();
  bool called = false;
  for (int i = 0; i < 2; ++i) {
    AsyncWait(io->get_executor(), *limiter, "key", {},
              [&](error_code, const Decision&) { called = true; });
  }
  limiter.reset();
  io.reset();
  EXPECT_FALSE(called);
}

TEST(AsioWait, WithAQuotaThatDelaysNothingIsACheck) {
  asio::io_context io;
  Limiter limiter = Make("1/h burst 1");
  std::optional<Completion> first;
  std::optional<Completion> second;
  AsyncWait(io.get_executor(), limiter, "key", {}, Into(first));
  AsyncWait(io.get_executor(), limiter, "key", {}, Into(second));
  io.run();
  EXPECT_TRUE(first->decision.allowed());
  EXPECT_EQ(second->decision.outcome, Outcome::kDenied);
  EXPECT_GT(second->decision.retry_after, hours(0));
}

}  // namespace
}  // namespace weir
