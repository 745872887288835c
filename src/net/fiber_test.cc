#include "net/fiber.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

class FiberTest : public testing::Test {
 protected:
  boost::asio::io_context context_{1};
  Fibers fibers_{context_};
  std::string told_;
};

TEST_F(FiberTest, RunsAtOnceUntilItEnds) {
  EXPECT_FALSE(InFiber());
  fibers_.Start([&] {
    EXPECT_TRUE(InFiber());
    told_ += "done";
  });
  EXPECT_EQ(told_, "done");
  EXPECT_FALSE(InFiber());
  EXPECT_EQ(fibers_.open(), 0U);
}

TEST_F(FiberTest, WaitsWhileOthersRun) {
  Event first;
  Event second;
  fibers_.Start([&] {
    told_ += "a";
    first.Wait();
    told_ += "A";
  });
  fibers_.Start([&] {
    told_ += "b";
    second.Wait();
    told_ += "B";
  });
  EXPECT_EQ(told_, "ab");
  EXPECT_EQ(fibers_.open(), 2U);
  second.Set();
  first.Set();
  EXPECT_EQ(told_, "ab") << "nobody goes on within Set";
  context_.run();
  EXPECT_EQ(told_, "abBA");
  EXPECT_EQ(fibers_.open(), 0U);
}

TEST_F(FiberTest, AnEventThatWasSetIsNotWaitedFor) {
  fibers_.Start([&] {
    Event event;
    event.Set();
    event.Wait();
    told_ += "on";
  });
  EXPECT_EQ(told_, "on");
}

TEST_F(FiberTest, AnEventHappensAgain) {
  Event event;
  fibers_.Start([&] {
    for (int i = 0; i < 3; ++i) {
      event.Wait();
      told_ += std::to_string(i);
    }
  });
  for (int i = 0; i < 3; ++i) {
    event.Set();
    context_.restart();
    context_.run();
  }
  EXPECT_EQ(told_, "012");
}

TEST_F(FiberTest, StartsOthersFromWithin) {
  Event event;
  fibers_.Start([&] {
    fibers_.Start([&] {
      event.Wait();
      told_ += "inner";
    });
    EXPECT_TRUE(InFiber());
    told_ += "outer ";
    event.Set();
  });
  EXPECT_FALSE(InFiber());
  context_.run();
  EXPECT_EQ(told_, "outer inner");
}

TEST_F(FiberTest, ThoseThatAreBegunTogetherWaitTogether) {
  Event events[3];
  bool ended = false;
  fibers_.Start([&]() noexcept {
    ForEachTogether(3, [&](size_t i) {
      told_ += static_cast<char>('a' + i);
      if (i != 1) {
        events[i].Wait();
      }
      told_ += static_cast<char>('A' + i);
    });
    ForEachTogether(0, [](size_t) {});
    ended = true;
  });
  EXPECT_EQ(told_, "abBc");
  events[2].Set();
  context_.poll();
  context_.restart();
  EXPECT_EQ(told_, "abBcC");
  EXPECT_FALSE(ended);
  events[0].Set();
  context_.poll();
  EXPECT_EQ(told_, "abBcCA");
  EXPECT_TRUE(ended);
  EXPECT_EQ(fibers_.open(), 0U);
  // Outside of a fiber: one after the other.
  told_.clear();
  ForEachTogether(3, [&](size_t i) { told_ += static_cast<char>('a' + i); });
  EXPECT_EQ(told_, "abc");
}

TEST_F(FiberTest, LargeAndOwningWorkIsKeptAndFreed) {
  auto owned = std::make_shared<int>(7);
  Event event;
  std::array<char, 300> large{};
  std::memset(large.data(), 'x', large.size());
  fibers_.Start([&, owned, large] {
    event.Wait();
    told_.append(large.data(), 2);
    EXPECT_EQ(*owned, 7);
  });
  EXPECT_EQ(owned.use_count(), 2);
  event.Set();
  context_.run();
  EXPECT_EQ(told_, "xx");
  EXPECT_EQ(owned.use_count(), 1);
}

// Thousands at a time, each with some stack of its own in use over the wait, and used again after.
TEST_F(FiberTest, ManyWaitAtOnceAndKeepTheirStacks) {
  constexpr size_t kMany = 600;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Event>> events;
    size_t good = 0;
    for (size_t i = 0; i < kMany; ++i) {
      events.push_back(std::make_unique<Event>());
      fibers_.Start([&good, i, event = events.back().get()] {
        std::array<size_t, 1000> own{};
        own.fill(i);
        event->Wait();
        bool same = true;
        for (const size_t value : own) {
          same = same && value == i;
        }
        good += same ? 1 : 0;
      });
    }
    EXPECT_EQ(fibers_.open(), kMany);
    for (size_t i = 0; i < kMany; ++i) {
      events[(i * 7919) % kMany]->Set();
    }
    context_.restart();
    context_.run();
    EXPECT_EQ(good, kMany);
    EXPECT_EQ(fibers_.open(), 0U);
  }
}

// One that is made ready while others are run has its turn after them.
TEST_F(FiberTest, ReadyOnesMakeOthersReady) {
  Event first;
  Event second;
  fibers_.Start([&] {
    second.Wait();
    told_ += "second";
  });
  fibers_.Start([&] {
    first.Wait();
    second.Set();
    told_ += "first ";
  });
  first.Set();
  context_.run();
  EXPECT_EQ(told_, "first second");
}

}  // namespace
}  // namespace weir::net
