// Connections over real sockets: what arrives, what does when the other side is slow or gone.
#include "net/loop.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/listener.h"

namespace weir::net {
namespace {

// What sessions wait for, if they are told to; on the loop.
std::vector<Event*> waiting;

// Answers each line with itself; "big" with a megabyte, "bye" with an end, "wait" when all that
// wait are told to go on.
class Echo final : public Session {
 public:
  Progress OnBytes(std::span<char> input, base::ByteBuffer& output) override {
    const std::string_view text(input.data(), input.size());
    size_t consumed = 0;
    while (true) {
      const size_t end = text.find('\n', consumed);
      if (end == std::string_view::npos) {
        return {consumed, consumed == text.size() ? Next::kIdle : Next::kMessage};
      }
      const std::string_view line = text.substr(consumed, end - consumed);
      consumed = end + 1;
      if (line == "big") {
        output.Append(std::string(1 << 20, 'x') + "\n");
        return {consumed, Next::kAgain};
      }
      if (line == "wait") {
        Event event;
        waiting.push_back(&event);
        event.Wait();
      }
      output.Append(std::string(line) + "\n");
      if (line == "bye" || draining_) {
        return {consumed, Next::kClose};
      }
    }
  }
  void OnTimeout(base::ByteBuffer& output) override { output.Append("too slow\n"); }
  void OnDrain() override { draining_ = true; }

 private:
  bool draining_ = false;
};

class Echoes final : public SessionFactory {
 public:
  std::unique_ptr<Session> Open(const Peer& peer) override {
    EXPECT_EQ(peer.address, "127.0.0.1");
    EXPECT_TRUE(peer.local);
    return std::make_unique<Echo>();
  }
};

class Client {
 public:
  explicit Client(const Endpoint& to)
      : descriptor_(::socket(to.address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto* const address = static_cast<const sockaddr*>(to.address.data());
    EXPECT_EQ(::connect(descriptor_, address, static_cast<socklen_t>(to.address.size())), 0);
  }
  ~Client() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Send(std::string_view text) {
    ASSERT_EQ(::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Until there are that many bytes, or the other side has ended.
  std::string Receive(size_t size) {
    std::string text;
    while (text.size() < size) {
      pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20'000) != 1) {
        ADD_FAILURE() << "nothing came in 20 s";
        break;
      }
      char bytes[65536];
      const ssize_t got = ::recv(descriptor_, bytes, std::min(sizeof bytes, size - text.size()), 0);
      if (got <= 0) {
        break;
      }
      text.append(bytes, static_cast<size_t>(got));
    }
    return text;
  }

  [[nodiscard]] bool Ended() { return Receive(1).empty(); }
  void EndSending() { ::shutdown(descriptor_, SHUT_WR); }
  void Reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

class Server : public ::testing::Test {
 protected:
  void Start(const ListenerLimits& limits = {}) {
    const int descriptor = *Listener::Bind(*Endpoint::Parse("127.0.0.1:0"));
    endpoint_ = Listener::BoundTo(descriptor);
    listener_ = std::make_unique<Listener>(loop_, descriptor, std::make_unique<Echoes>(), limits);
    loop_.Start("echo", -1);
    loop_.Run([this] { listener_->Start(); });
  }
  void TearDown() override {
    loop_.Run([this] { listener_->Close(); });
    loop_.Stop();
    EXPECT_EQ(loop_.connection_count(), 0U);
  }

  [[nodiscard]] size_t Connections() {
    size_t count = 0;
    loop_.Run([&] { count = loop_.connection_count(); });
    return count;
  }
  // Long before a limit of time would end them.
  [[nodiscard]] bool AllGo() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Connections() != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return Connections() == 0;
  }

  Loop loop_;
  Endpoint endpoint_;
  std::unique_ptr<Listener> listener_;
};

// Sessions that wait for something else.
class WaitingServer : public Server {
 protected:
  void SetUp() override {
    loop_.LetSessionsWait();
    Start({.connection = {.idle_s = 1, .message_s = 1}});
  }

  // Until that many wait.
  void AwaitWaiting(size_t count) {
    for (size_t now = 0; now < count;) {
      loop_.Run([&now] { now = waiting.size(); });
    }
  }
  void LetGoOn() {
    loop_.Run([] {
      for (Event* const event : std::exchange(waiting, {})) {
        event->Set();
      }
    });
  }
};

TEST_F(WaitingServer, OthersAreAnsweredMeanwhile) {
  Client first(endpoint_);
  Client second(endpoint_);
  Client third(endpoint_);
  first.Send("wait\nafter\n");
  second.Send("wait\n");
  AwaitWaiting(2);
  third.Send("here\n");
  EXPECT_EQ(third.Receive(5), "here\n");
  LetGoOn();
  EXPECT_EQ(first.Receive(11), "wait\nafter\n");
  EXPECT_EQ(second.Receive(5), "wait\n");
  second.Send("again\n");
  EXPECT_EQ(second.Receive(6), "again\n");
}

// Neither limit counts while we are the ones who are slow; it does again afterwards.
TEST_F(WaitingServer, NobodyIsCutOffForOurWaiting) {
  Client client(endpoint_);
  client.Send("wait\n");
  AwaitWaiting(1);
  pollfd nothing{};
  (void)::poll(&nothing, 0, 3500);
  LetGoOn();
  EXPECT_EQ(client.Receive(5), "wait\n");
  EXPECT_TRUE(client.Ended()) << "idle for too long";
}

TEST_F(WaitingServer, APeerMayGoMeanwhile) {
  {
    Client gone(endpoint_);
    gone.Send("wait\n");
    AwaitWaiting(1);
  }
  LetGoOn();
  Client other(endpoint_);
  other.Send("here\n");
  EXPECT_EQ(other.Receive(5), "here\n");
}

TEST_F(WaitingServer, DrainingLetsThemEnd) {
  Client client(endpoint_);
  client.Send("wait\n");
  AwaitWaiting(1);
  loop_.Run([this] { loop_.Drain(); });
  LetGoOn();
  EXPECT_EQ(client.Receive(5), "wait\n");
  EXPECT_TRUE(client.Ended());
}

TEST_F(WaitingServer, StoppingWaitsForThemAndThenForTheOthers) {
  Client client(endpoint_);
  client.Send("wait\n");
  AwaitWaiting(1);
  std::atomic<bool> ended = false;
  std::atomic<bool> stopped = false;
  loop_.Run([&] {
    listener_->Close();
    loop_.OnStop([&ended] { ended = true; });
  });
  std::thread stopping([&] {
    loop_.Stop();
    stopped = true;
  });
  EXPECT_TRUE(client.Ended()) << "cut off without an answer";
  EXPECT_FALSE(ended);
  EXPECT_FALSE(stopped);
  loop_.Post([] {
    for (Event* const event : std::exchange(waiting, {})) {
      event->Set();
    }
  });
  stopping.join();
  EXPECT_TRUE(ended);
  EXPECT_EQ(loop_.connection_count(), 0U);
}

TEST_F(Server, AnswersWholeAndSplitMessages) {
  Start();
  Client client(endpoint_);
  client.Send("one\ntwo\nthr");
  EXPECT_EQ(client.Receive(8), "one\ntwo\n");
  client.Send("ee\n");
  EXPECT_EQ(client.Receive(6), "three\n");
}

// On the loop, so that what a client does in there comes as one event.
TEST_F(Server, AnEndRightBehindAMessageIsHeard) {
  Start({.connection = {.idle_s = 3600, .message_s = 3600}});
  Client whole(endpoint_);
  Client part(endpoint_);
  whole.Send("a\n");
  part.Send("b\n");
  EXPECT_EQ(whole.Receive(2), "a\n");
  EXPECT_EQ(part.Receive(2), "b\n");
  loop_.Run([&] {
    whole.Send("whole\n");
    whole.EndSending();
    part.Send("par");
    part.EndSending();
  });
  EXPECT_EQ(whole.Receive(7), "whole\n");
  EXPECT_TRUE(part.Ended());
  EXPECT_TRUE(AllGo());
}

TEST_F(Server, AResetRightBehindAMessageIsNoticed) {
  Start({.connection = {.idle_s = 3600, .message_s = 3600}});
  Client whole(endpoint_);
  Client part(endpoint_);
  whole.Send("a\n");
  part.Send("b\n");
  EXPECT_EQ(whole.Receive(2), "a\n");
  EXPECT_EQ(part.Receive(2), "b\n");
  EXPECT_EQ(Connections(), 2U);
  loop_.Run([&] {
    whole.Send("whole\n");
    whole.Reset();
    part.Send("par");
    part.Reset();
  });
  EXPECT_TRUE(AllGo());
}

TEST_F(Server, EndsAfterTheLastWordThoughMoreWasSent) {
  Start();
  Client client(endpoint_);
  client.Send("bye\n" + std::string(200'000, 'z'));
  EXPECT_EQ(client.Receive(5), "bye\n");
}

TEST_F(Server, APeerThatDoesNotReadGetsNothingMoreUntilItDoes) {
  Start();
  Client slow(endpoint_);
  std::string asked;
  constexpr size_t kTimes = 40;
  for (size_t i = 0; i < kTimes; ++i) {
    asked += "big\n";
  }
  slow.Send(asked + "done\n");
  Client other(endpoint_);
  other.Send("hello\n");
  EXPECT_EQ(other.Receive(6), "hello\n") << "the others do not wait";
  const std::string all = slow.Receive(kTimes * ((1 << 20) + 1) + 5);
  EXPECT_EQ(all.size(), kTimes * ((1 << 20) + 1) + 5);
  EXPECT_TRUE(all.ends_with("\ndone\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(all.begin(), all.end(), 'x')), kTimes << 20)
      << "what others are answered goes elsewhere";
}

TEST_F(Server, AMessageHasToBeWholeInTime) {
  Start({.connection = {.idle_s = 300, .message_s = 1}});
  Client idle(endpoint_);
  Client slow(endpoint_);
  slow.Send("never");
  EXPECT_EQ(slow.Receive(100), "too slow\n");
  idle.Send("here\n");
  EXPECT_EQ(idle.Receive(5), "here\n");
  EXPECT_EQ(loop_.counters().timed_out.load(), 1U);
}

TEST_F(Server, DrippingBytesDoesNotBuyTime) {
  Start({.connection = {.message_s = 1}});
  Client slow(endpoint_);
  // A byte whenever none has come back for a while, for as long as it is listened to.
  std::string answer;
  for (int i = 0; i < 200 && answer.empty(); ++i) {
    slow.Send("x");
    int ready = 0;
    loop_.Run([&ready] { ready = 1; });
    pollfd wait{};
    (void)::poll(&wait, 0, 50);
    if (loop_.counters().timed_out.load() != 0) {
      answer = slow.Receive(9);
    }
  }
  EXPECT_EQ(answer, "too slow\n");
}

TEST_F(Server, IdleConnectionsEnd) {
  Start({.connection = {.idle_s = 1}});
  Client client(endpoint_);
  client.Send("a\n");
  EXPECT_EQ(client.Receive(2), "a\n");
  EXPECT_TRUE(client.Ended());
}

TEST_F(Server, TakesNoMoreConnectionsThanItMay) {
  Start({.connection = {}, .connections_max = 2});
  Client first(endpoint_);
  Client second(endpoint_);
  first.Send("a\n");
  second.Send("b\n");
  EXPECT_EQ(first.Receive(2), "a\n");
  EXPECT_EQ(second.Receive(2), "b\n");
  Client third(endpoint_);
  EXPECT_TRUE(third.Ended());
  EXPECT_EQ(loop_.counters().refused.load(), 1U);
}

TEST_F(Server, DrainsAfterTheNextAnswer) {
  Start();
  Client client(endpoint_);
  client.Send("a\n");
  EXPECT_EQ(client.Receive(2), "a\n");
  loop_.Run([this] { loop_.Drain(); });
  client.Send("b\n");
  EXPECT_EQ(client.Receive(2), "b\n");
  EXPECT_TRUE(client.Ended());
}

TEST_F(Server, StopsWithConnectionsOpen) {
  Start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint_));
    clients.back()->Send(i % 2 == 0 ? "whole\n" : "par");
  }
}

TEST(Listener, SaysWhyItCannotListen) {
  const auto taken = Listener::Bind(*Endpoint::Parse("192.0.2.1:80"));
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("192.0.2.1:80"), std::string::npos);
}

}  // namespace
}  // namespace weir::net
