// A client on a loop of the test's own, beside a real Redis.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "weir/time.h"

#include "redis/client.h"
#include "testing/fault_proxy.h"
#include "testing/redis_process.h"

namespace weir::redis {

inline constexpr Duration kPatience = std::chrono::seconds(60);

// What became of the calls of a crowd.
struct Tally {
  uint64_t good = 0;
  uint64_t failed = 0;
  uint64_t mismatched = 0;  // answers to another's question
  uint64_t may_have_run = 0;
  std::vector<uint64_t> by_kind = std::vector<uint64_t>(kFailureKinds);
  std::string last_text;
  Duration slowest{0};
};

class ClientTest : public ::testing::Test {
 protected:
  void Make(const std::string& url) {
    Result<Options> options = Options::Parse(url);
    ASSERT_TRUE(options) << options.error().message;
    Make(*options);
  }
  void Make(const Options& options) {
    auto made =
        Client::Create(context, options, [this](const Event& event) { events.push_back(event); });
    ASSERT_TRUE(made) << made.error().message;
    client = *std::move(made);
    client->Start();
  }
  ~ClientTest() override {
    client.reset();
    context.poll();
  }

  // Runs the loop until it holds.
  template <class Condition>
  bool Until(Condition condition, Duration patience = kPatience) {
    const Timestamp end = SystemClock().Now() + patience;
    while (!condition() && SystemClock().Now() < end) {
      context.restart();
      context.run_one_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
  void RunFor(Duration time) {
    (void)Until([] { return false; }, time);
  }
  bool Saw(Trouble trouble) const {
    for (const Event& event : events) {
      if (event.trouble == trouble &&
          (event.kind == Event::Kind::kTrouble || event.kind == Event::Kind::kWarning)) {
        return true;
      }
    }
    return false;
  }
  bool Recovered() const {
    return !events.empty() && events.back().kind == Event::Kind::kRecovered;
  }
  // One command and its answer, or "-kind text".
  struct One final : Call {
    void OnReply(const codec::resp::Reply& reply) noexcept override {
      answer = reply.type == codec::resp::ReplyType::kNull ? "(null)" : std::string(reply.text);
      done = true;
    }
    void OnFailure(const Failure& failure) noexcept override {
      answer = "-" + std::string(NameOf(failure.kind)) + " " + std::string(failure.text);
      done = true;
    }
    std::string answer;
    bool done = false;
  };
  void Submit(One& one, const std::vector<std::string>& words, Duration timeout) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    const std::span<const std::string_view> all(views);
    client->Submit(one, {.keys = all.subspan(std::min<size_t>(1, all.size() - 1)),
                         .arguments = all,
                         .timeout = timeout});
  }
  std::string Ask(const std::vector<std::string>& words) {
    One one;
    Submit(one, words, std::chrono::seconds(2));
    EXPECT_TRUE(Until([&] { return one.done; }));
    return one.answer;
  }

  boost::asio::io_context context{1};
  std::vector<Event> events;
  std::unique_ptr<Client> client;
};

// Calls that go on and on: each charges a key of its own and gets its own number back, so that an
// answer to somebody else's question is found out.
class Crowd {
 public:
  Crowd(boost::asio::io_context& context, Client& client, size_t size, Tally& tally,
        Duration timeout = Duration(0));
  ~Crowd();
  void Stop() noexcept { stopped_ = true; }
  [[nodiscard]] size_t busy() const noexcept { return busy_; }
  // How often each key was charged with an answer, and without one.
  struct Books {
    uint64_t answered = 0;
    uint64_t unknown = 0;
  };
  [[nodiscard]] const std::vector<Books>& books() const noexcept { return books_; }
  [[nodiscard]] static std::string KeyOf(size_t index) {
    return "weir:{" + std::to_string(index * 7919) + "}";
  }

 private:
  class Member;
  static const Script& Echo();
  void RestThenGo();

  Client& client_;
  Tally& tally_;
  const Duration timeout_;
  bool stopped_ = false;
  size_t busy_ = 0;
  std::vector<Books> books_;
  std::vector<std::unique_ptr<Member>> members_;
  // Who has failed rests a moment: Redis needs the processor to come back.
  boost::asio::steady_timer timer_;
  std::vector<Member*> resting_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  // for what the loop still has to run
};

}  // namespace weir::redis
