#include "net/read_operation.h"

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Reads on and on, and keeps what came and how it ended.
class Listening final : public Reader {
 public:
  Listening(asio::io_context& context, Socket socket, size_t room)
      : socket_(std::move(socket)), operation_(*this, context), room_(room, '\0') {
    socket_.non_blocking(true);
    ReadOperation::Prepare(socket_);
  }

  void Start() {
    under_way_ = true;
    operation_.Start(socket_, room_);
  }
  void OnRead(const error_code& error, size_t bytes) override {
    under_way_ = false;
    ++reads_;
    text_.append(room_.data(), bytes);
    if (error) {
      ended_ = error;
    } else {
      Start();
    }
  }
  void Close() { socket_.close(); }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::optional<error_code>& ended() const { return ended_; }
  [[nodiscard]] int reads() const { return reads_; }
  [[nodiscard]] bool under_way() const { return under_way_; }

 private:
  Socket socket_;
  ReadOperation operation_;
  std::string room_;
  std::string text_;
  std::optional<error_code> ended_;
  int reads_ = 0;
  bool under_way_ = false;
};

class ReadOperationTest : public ::testing::TestWithParam<bool> {
 protected:
  ReadOperationTest() {
    if (GetParam()) {
      tcp::acceptor acceptor(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
      tcp::socket peer(context_);
      peer.connect(acceptor.local_endpoint());
      tcp::socket ours = acceptor.accept();
      peer_ = peer.release();
      ours_ = Socket(context_.get_executor(), asio::generic::stream_protocol(tcp::v4()),
                     ours.release());
    } else {
      int pair[2] = {-1, -1};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
      peer_ = pair[0];
      ours_ = Socket(context_.get_executor(), asio::generic::stream_protocol(AF_UNIX, 0), pair[1]);
    }
  }
  ~ReadOperationTest() override { HangUp(); }

  void Say(std::string_view text) {
    EXPECT_EQ(::send(peer_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void HangUp() {
    if (peer_ >= 0) {
      ::close(peer_);
      peer_ = -1;
    }
  }
  template <class Condition>
  bool Until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      context_.restart();
      context_.run_one_for(std::chrono::milliseconds(100));
    }
    return condition();
  }

  asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  int peer_ = -1;
  Socket ours_{context_.get_executor()};
};

TEST_P(ReadOperationTest, HearsEachMessage) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  std::string said;
  for (int i = 0; i < 1000; ++i) {
    const std::string message = "message " + std::to_string(i) + "\n";
    said += message;
    Say(message);
    ASSERT_TRUE(Until([&] { return reader.text().size() == said.size(); })) << i;
  }
  EXPECT_EQ(reader.text(), said);
  EXPECT_EQ(reader.reads(), 1000);
  HangUp();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

// The end comes with the last bytes, before anybody has read those: nothing will wake us again.
TEST_P(ReadOperationTest, AnEndThatCameWithTheLastBytesIsHeard) {
  Say("all");
  ::shutdown(peer_, SHUT_WR);
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

TEST_P(ReadOperationTest, AnEndThatCameWhileWaitingIsHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  Say("all");
  ::shutdown(peer_, SHUT_WR);
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

TEST_P(ReadOperationTest, MoreThanThereIsRoomForComesInParts) {
  const std::string all(100'000, 'x');
  Say(all);
  Listening reader(context_, std::move(ours_), 1000);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.text().size() == all.size(); }));
  EXPECT_GE(reader.reads(), 100);
  Say("more");
  ASSERT_TRUE(Until([&] { return reader.text().size() == all.size() + 4; }));
  reader.Close();
  ASSERT_TRUE(Until([&] { return !reader.under_way(); }));
}

TEST_P(ReadOperationTest, ClosingEndsWhatIsUnderWay) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  EXPECT_TRUE(reader.under_way());
  reader.Close();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(*reader.ended(), asio::error::operation_aborted);
  EXPECT_FALSE(reader.under_way());
}

TEST_P(ReadOperationTest, APeerThatIsCutOffIsAnEnd) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  Say("a");
  ASSERT_TRUE(Until([&] { return reader.text() == "a"; }));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(peer_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  HangUp();
  EXPECT_TRUE(Until([&] { return reader.ended().has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Sockets, ReadOperationTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace weir::net
