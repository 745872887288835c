// No wake-up is lost: clients that write while they are read, and that wait for each answer. A read
// that is told of nothing left while something comes, or comes before an end, would leave one of
// them waiting for ever.
#include "net/read_operation.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// What was there before the next read was begun, of all connections of a loop.
struct Behind {
  int bytes = 0;
  int ends = 0;
};

// Answers each line with a byte, and an end with an end.
class Answering final : public Reader {
 public:
  Answering(asio::io_context& context, Socket socket, size_t room, Behind& behind)
      : socket_(std::move(socket)), operation_(*this, context), room_(room, '\0'), behind_(behind) {
    socket_.non_blocking(true);
    operation_.Prepare(socket_);
    Start(ReadOperation::First::kWait);
  }

  void OnRead(const boost::system::error_code& error, size_t bytes) override {
    if (error) {
      ended_ = true;
      boost::system::error_code ignored;
      socket_.close(ignored);
      return;
    }
    const auto lines =
        std::count(room_.begin(), room_.begin() + static_cast<ptrdiff_t>(bytes), '\n');
    const std::string answers(static_cast<size_t>(lines), 'a');
    if (lines > 0) {
      EXPECT_EQ(::send(socket_.native_handle(), answers.data(), answers.size(), MSG_NOSIGNAL),
                lines);
    }
    Look();
    Start(lines > 0 ? ReadOperation::First::kWait : ReadOperation::First::kTry);
  }
  void Close() { socket_.close(); }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void Start(ReadOperation::First first) { operation_.Start(socket_, room_, first); }
  void Look() {
    char byte = 0;
    const ssize_t there = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    behind_.bytes += there > 0 ? 1 : 0;
    behind_.ends += there == 0 ? 1 : 0;
  }

  Socket socket_;
  ReadOperation operation_;
  std::string room_;
  Behind& behind_;
  bool ended_ = false;
};

// A blocking end of a connection; gives up after a minute.
class Asking {
 public:
  explicit Asking(int descriptor) : descriptor_(descriptor) {
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Asking() { ::close(descriptor_); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  void Send(std::string_view text) {
    EXPECT_EQ(::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void EndSending() { ::shutdown(descriptor_, SHUT_WR); }
  // How many answers came, of those that were awaited.
  size_t Await(size_t answers) {
    std::array<char, 64> bytes;
    size_t came = 0;
    while (came < answers) {
      const ssize_t got =
          ::recv(descriptor_, bytes.data(), std::min(answers - came, bytes.size()), 0);
      if (got <= 0) {
        break;
      }
      came += static_cast<size_t>(got);
    }
    return came;
  }
  [[nodiscard]] bool Ended() {
    char byte = 0;
    return ::recv(descriptor_, &byte, 1, 0) == 0;
  }

 private:
  int descriptor_;
};

class ReadOperationStress : public ::testing::TestWithParam<bool> {
 protected:
  // Its other end is read from by the loop.
  std::unique_ptr<Asking> Connect(size_t room) {
    int peer = -1;
    Socket ours(context_.get_executor());
    if (GetParam()) {
      tcp::socket theirs(context_);
      theirs.connect(acceptor_.local_endpoint());
      theirs.set_option(tcp::no_delay(true));
      peer = theirs.release();
      tcp::socket accepted = acceptor_.accept();
      accepted.set_option(tcp::no_delay(true));
      ours = Socket(context_.get_executor(), asio::generic::stream_protocol(tcp::v4()),
                    accepted.release());
    } else {
      int pair[2] = {-1, -1};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      peer = pair[0];
      ours = Socket(context_.get_executor(), asio::generic::stream_protocol(AF_UNIX, 0), pair[1]);
    }
    readers_.push_back(std::make_unique<Answering>(context_, std::move(ours), room, behind_));
    return std::make_unique<Asking>(peer);
  }
  // Reads until all have heard their end, or for two minutes.
  void ReadAll() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    const auto all_have_ended = [this] {
      return std::all_of(readers_.begin(), readers_.end(),
                         [](const auto& reader) { return reader->ended(); });
    };
    while (!all_have_ended() && std::chrono::steady_clock::now() < end) {
      context_.restart();
      context_.run_one_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(all_have_ended());
    for (const auto& reader : readers_) {
      reader->Close();  // those that have not: nobody shall wait for them, or be called by them
    }
    context_.restart();
    context_.poll();
  }

  asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  tcp::acceptor acceptor_{context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  Behind behind_;
  std::vector<std::unique_ptr<Answering>> readers_;
};

// Lines of one to three pieces, one to three of them at a time: the later pieces come while the
// first ones are read.
TEST_P(ReadOperationStress, EveryLineIsAnswered) {
  constexpr int kClients = 4;
  constexpr int kTurns = 8'000;
  std::vector<std::unique_ptr<Asking>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(Connect(i % 2 == 0 ? 16'384 : 16));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&client = *clients[static_cast<size_t>(i)], i] {
      std::minstd_rand random(static_cast<unsigned>(i + 1));
      for (int turn = 0; turn < kTurns; ++turn) {
        const size_t lines = 1 + random() % 3;
        for (size_t line = 0; line < lines; ++line) {
          for (size_t pieces = random() % 3; pieces > 0; --pieces) {
            client.Send(std::string(1 + random() % 24, 'q'));
          }
          client.Send("\n");
        }
        if (const size_t came = client.Await(lines); came != lines) {
          ADD_FAILURE() << "turn " << turn << ": " << came << " answers to " << lines << " lines";
          break;
        }
      }
      client.EndSending();
      EXPECT_TRUE(client.Ended());
    });
  }
  ReadAll();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(behind_.bytes, 100) << "hardly anything came while it was read";
}

// A line and an end, nearly at once.
TEST_P(ReadOperationStress, EveryEndIsHeard) {
  constexpr int kConnections = 4'000;
  constexpr size_t kAtATime = 50;
  int heard = 0;
  for (int round = 0; round < kConnections && !HasFailure(); round += kAtATime) {
    std::vector<std::unique_ptr<Asking>> clients;
    for (size_t i = 0; i < kAtATime; ++i) {
      clients.push_back(Connect(16'384));
    }
    std::thread thread([&] {
      for (const auto& client : clients) {
        client->Send("line\n");
        client->EndSending();
      }
      for (const auto& client : clients) {
        heard += client->Await(1) == 1 && client->Ended() ? 1 : 0;
      }
    });
    ReadAll();
    thread.join();
    readers_.clear();
  }
  EXPECT_EQ(heard, kConnections);
  EXPECT_GT(behind_.ends, 100) << "hardly any end came while it was read";
}

INSTANTIATE_TEST_SUITE_P(Sockets, ReadOperationStress, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace weir::net
