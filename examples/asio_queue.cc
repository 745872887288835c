// Work that is spread out instead of turned away: ten callers at once, a hundred starts a second,
// nobody waits for longer than 60 ms. Needs Boost.Asio.
#include <chrono>
#include <cstdio>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "weir/asio.h"

namespace asio = boost::asio;

asio::awaitable<void> Call(weir::Limiter& limiter, int caller) {
  const weir::Decision decision = co_await weir::AsyncWait(
      limiter, "upstream", {.max_wait = std::chrono::milliseconds(60)}, asio::use_awaitable);
  if (decision.allowed()) {
    std::printf("caller %d: my turn\n", caller);
  } else {
    std::printf("caller %d: too long a queue, try again in %lld ms\n", caller,
                static_cast<long long>(decision.retry_after.count() / 1'000'000));
  }
}

int main() {
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("100/s burst 20 queue"));
  asio::io_context io;
  for (int caller = 1; caller <= 10; ++caller) {
    asio::co_spawn(io, Call(*limiter, caller), asio::detached);
  }
  io.run();
}
