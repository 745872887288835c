// What a read hears, and after which edges. The reactor is edge-triggered: what lies behind a read
// is heard only if the read says so, or if an edge that nobody has taken yet is still to come.
// Tests of the first kind take the edge away first.
#include "net/read_operation.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

namespace {

int kernel_reads = 0;
// Called once, between the next read of the kernel that brings bytes and what is made of it.
std::function<void()> behind_the_read;

}  // namespace

// In place of the C library's: every read of an operation passes here.
extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  ++kernel_reads;
  const ssize_t got = ::syscall(SYS_recvmsg, socket, message, flags);
  if (got > 0 && behind_the_read) {
    std::exchange(behind_the_read, nullptr)();
  }
  return got;
}

namespace weir::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Reads on and on, and keeps what came and how it ended.
class Listening final : public Reader {
 public:
  using First = ReadOperation::First;

  Listening(asio::io_context& context, Socket socket, size_t room, First first = First::kWait)
      : socket_(std::move(socket)), operation_(*this, context), room_(room, '\0'), first_(first) {
    socket_.non_blocking(true);
    operation_.Prepare(socket_);
  }

  void Start() {
    under_way_ = true;
    operation_.Start(socket_, room_, first_);
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
  void set_first(First first) { first_ = first; }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::optional<error_code>& ended() const { return ended_; }
  [[nodiscard]] int reads() const { return reads_; }
  [[nodiscard]] bool under_way() const { return under_way_; }

 private:
  Socket socket_;
  ReadOperation operation_;
  std::string room_;
  First first_;
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
  ~ReadOperationTest() override {
    behind_the_read = nullptr;
    HangUp();
  }

  void Say(std::string_view text) {
    EXPECT_EQ(::send(peer_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Bytes of which the first read gets a part only: before an urgent byte, or with a descriptor,
  // the kernel ends a read though there is room and more is there.
  void SayInTwoReads(std::string_view first, std::string_view second) {
    if (GetParam()) {
      Say(first);
      EXPECT_EQ(::send(peer_, "!", 1, MSG_NOSIGNAL | MSG_OOB), 1);
    } else {
      SayWithDescriptor(first, STDERR_FILENO);
    }
    Say(second);
  }
  void SayWithDescriptor(std::string_view text, int descriptor) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    iovec bytes{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    EXPECT_EQ(::sendmsg(peer_, &message, MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // What has come so far wakes nobody any more.
  void TakeEdges() {
    context_.restart();
    context_.poll();
  }
  void HangUpByReset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(peer_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    HangUp();
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
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  int peer_ = -1;
  Socket ours_{context_.get_executor()};
};

TEST_P(ReadOperationTest, HearsEachMessage) {
  Listening reader(context_, std::move(ours_), 1024);
  kernel_reads = 0;
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
#if WEIR_OWN_READS
  // Where nobody tells what is left, every message is followed by a read that finds nothing.
  EXPECT_EQ(kernel_reads, GetParam() ? 1 + 1000 : 1 + 2000);
#endif
  HangUp();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

// The edge of both is still to come when the first read is tried.
TEST_P(ReadOperationTest, AnEndThatCameWithTheLastBytesIsHeard) {
  Say("all");
  ::shutdown(peer_, SHUT_WR);
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

// Nothing will wake us again.
TEST_P(ReadOperationTest, AnEndWhoseEdgeIsPastIsHeard) {
  Say("all");
  ::shutdown(peer_, SHUT_WR);
  TakeEdges();
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

// One edge for bytes and end, and the bytes are read for it.
TEST_P(ReadOperationTest, AnEndThatCameWhileWaitingIsHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  Say("all");
  ::shutdown(peer_, SHUT_WR);
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

TEST_P(ReadOperationTest, BytesBehindAShortReadWhoseEdgeIsPastAreHeard) {
  SayInTwoReads("first", "second");
  TakeEdges();
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.text() == "firstsecond"; })) << reader.text();
  EXPECT_EQ(reader.reads(), 2);
  reader.Close();
  ASSERT_TRUE(Until([&] { return !reader.under_way(); }));
}

TEST_P(ReadOperationTest, BytesBehindAShortReadThatCameWhileWaitingAreHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  SayInTwoReads("first", "second");
  ASSERT_TRUE(Until([&] { return reader.text() == "firstsecond"; })) << reader.text();
  EXPECT_EQ(reader.reads(), 2);
  reader.Close();
  ASSERT_TRUE(Until([&] { return !reader.under_way(); }));
}

// It was told that nothing is left, and something is by the time it says so.
TEST_P(ReadOperationTest, BytesThatComeRightBehindAReadAreHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  behind_the_read = [this] { Say("second"); };
  Say("first");
  ASSERT_TRUE(Until([&] { return reader.text() == "firstsecond"; })) << reader.text();
  reader.Close();
  ASSERT_TRUE(Until([&] { return !reader.under_way(); }));
}

TEST_P(ReadOperationTest, AnEndThatComesRightBehindAReadIsHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  behind_the_read = [this] { ::shutdown(peer_, SHUT_WR); };
  Say("all");
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
  EXPECT_EQ(*reader.ended(), asio::error::eof);
}

TEST_P(ReadOperationTest, AResetThatComesRightBehindAReadIsHeard) {
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  behind_the_read = [this] { HangUpByReset(); };
  Say("all");
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
}

// A reset is not told of: those who have written nothing have to look.
TEST_P(ReadOperationTest, AResetBehindBytesThatCameWhileWaitingIsHeard) {
  Listening reader(context_, std::move(ours_), 1024, ReadOperation::First::kTry);
  reader.Start();
  Say("all");
  HangUpByReset();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
}

TEST_P(ReadOperationTest, AResetWhoseEdgeIsPastIsHeard) {
  Say("all");
  HangUpByReset();
  TakeEdges();
  Listening reader(context_, std::move(ours_), 1024, ReadOperation::First::kTry);
  reader.Start();
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.text(), "all");
}

// Found by the first look behind a read, more than there is room for: the next does not look.
TEST_P(ReadOperationTest, WhatALookFindsIsReadToItsEnd) {
  const std::string all(10'000, 'x');
  Listening reader(context_, std::move(ours_), 1000, ReadOperation::First::kTry);
  reader.Start();
  behind_the_read = [&] { Say(all); };
  Say("first");
  ASSERT_TRUE(Until([&] { return reader.text().size() == 5; }));
  reader.set_first(ReadOperation::First::kWait);
  ASSERT_TRUE(Until([&] { return reader.text() == "first" + all; })) << reader.text().size();
  ::shutdown(peer_, SHUT_WR);
  ASSERT_TRUE(Until([&] { return reader.ended().has_value(); }));
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
  HangUpByReset();
  EXPECT_TRUE(Until([&] { return reader.ended().has_value(); }));
}

// Descriptors that a peer sends along are not kept.
TEST_P(ReadOperationTest, TakesNoDescriptors) {
  if (GetParam()) {
    return;  // TCP has none
  }
  const auto open = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  Listening reader(context_, std::move(ours_), 1024);
  reader.Start();
  const auto before = open();
  for (size_t i = 1; i <= 10; ++i) {
    SayWithDescriptor("x", STDERR_FILENO);
    ASSERT_TRUE(Until([&] { return reader.text().size() == i; }));
  }
  EXPECT_EQ(open(), before);
  reader.Close();
  ASSERT_TRUE(Until([&] { return !reader.under_way(); }));
}

INSTANTIATE_TEST_SUITE_P(Sockets, ReadOperationTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace weir::net
