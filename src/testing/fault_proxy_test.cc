#include "testing/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "weir/time.h"

#include "testing/redis_process.h"

namespace weir::testing {
namespace {

// A client that says what it reads, byte for byte.
class Raw {
 public:
  explicit Raw(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(port);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
  }
  ~Raw() { ::close(socket_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  void Send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Until `size` bytes have come, the connection has ended or that long has passed.
  std::string Read(size_t size, int timeout_ms = 10'000) {
    std::string bytes;
    while (bytes.size() < size) {
      pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
      char room[4096];
      const ssize_t got =
          ::poll(&polled, 1, timeout_ms) == 1 ? ::recv(socket_, room, sizeof room, 0) : -2;
      ended_ = got == 0 || got == -1;
      if (got <= 0) {
        break;
      }
      bytes.append(room, static_cast<size_t>(got));
    }
    return bytes;
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  int socket_;
  bool connected_ = false;
  bool ended_ = false;
};

class FaultProxyTest : public ::testing::Test {
 protected:
  RedisProcess redis_{{}};
  FaultProxy proxy_{{.upstream = redis_.address()}};
};

TEST_F(FaultProxyTest, PassesCommandsAndRepliesAndCountsThem) {
  Raw client(proxy_.port());
  client.Send("PING\r\nSET k v\r\nGET k\r\n");
  EXPECT_EQ(client.Read(19), "+PONG\r\n+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(proxy_.counts().replies, 3U);
  EXPECT_EQ(proxy_.counts().delivered, 3U);
  EXPECT_EQ(proxy_.counts().accepted, 1U);
}

TEST_F(FaultProxyTest, PassesAUnixSocket) {
  FaultProxy proxy({.upstream = "unix:" + redis_.unix_path()});
  Raw client(proxy.port());
  client.Send("PING\r\n");
  EXPECT_EQ(client.Read(7), "+PONG\r\n");
}

TEST_F(FaultProxyTest, DelaysAReplyAndAllBehindIt) {
  proxy_.Set({.delay_share = 1, .delay_min_ms = 150, .delay_max_ms = 150});
  Raw client(proxy_.port());
  client.Send("PING\r\n");
  EXPECT_EQ(client.Read(7, 50), "");
  EXPECT_FALSE(client.ended());
  proxy_.Set({});
  client.Send("ECHO a\r\n");
  EXPECT_EQ(client.Read(14), "+PONG\r\n$1\r\na\r\n");  // order is kept
  EXPECT_EQ(proxy_.counts().delayed, 1U);
}

TEST_F(FaultProxyTest, LosesAReplyAfterTheServerHasDoneItsWork) {
  Raw client(proxy_.port());
  client.Send("INCR n\r\n");
  EXPECT_EQ(client.Read(4), ":1\r\n");
  proxy_.Set({.drop_share = 1});
  client.Send("INCR n\r\nINCR n\r\n");
  EXPECT_EQ(client.Read(4), "");
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(redis_.Ask({"GET", "n"}), "3");
  EXPECT_EQ(proxy_.counts().dropped, 1U);
  EXPECT_EQ(proxy_.counts().cut, 1U);
}

TEST_F(FaultProxyTest, DropsTheShareThatItIsTold) {
  proxy_.Set({.drop_share = 0.2});
  for (int i = 0; i < 300; ++i) {
    Raw client(proxy_.port());
    client.Send("PING\r\n");
    (void)client.Read(7);
  }
  EXPECT_GT(proxy_.counts().dropped, 30U);
  EXPECT_LT(proxy_.counts().dropped, 95U);
}

TEST_F(FaultProxyTest, AHalfOpenConnectionStaysSilentForEver) {
  Raw client(proxy_.port());
  client.Send("PING\r\n");
  EXPECT_EQ(client.Read(7), "+PONG\r\n");
  proxy_.Set({.half_open = true});
  client.Send("SET k v\r\n");
  EXPECT_EQ(client.Read(5, 50), "");
  EXPECT_FALSE(client.ended());
  EXPECT_EQ(redis_.Ask({"GET", "k"}), "(null)");
  proxy_.Set({});
  client.Send("PING\r\n");
  EXPECT_EQ(client.Read(7, 50), "");
  EXPECT_FALSE(client.ended());
  Raw fresh(proxy_.port());
  fresh.Send("PING\r\n");
  EXPECT_EQ(fresh.Read(7), "+PONG\r\n");
}

TEST_F(FaultProxyTest, MutesRepliesWhileCommandsAreDone) {
  proxy_.Set({.mute_replies = true});
  Raw client(proxy_.port());
  client.Send("SET k v\r\n");
  EXPECT_EQ(client.Read(5, 50), "");
  EXPECT_EQ(redis_.Ask({"GET", "k"}), "v");
}

TEST_F(FaultProxyTest, CutsAndGoesDownAndComesBack) {
  Raw first(proxy_.port());
  first.Send("PING\r\n");
  EXPECT_EQ(first.Read(7), "+PONG\r\n");
  proxy_.Cut();
  EXPECT_EQ(first.Read(1), "");
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(proxy_.counts().cut, 1U);
  proxy_.Down();
  EXPECT_FALSE(Raw(proxy_.port()).connected());
  proxy_.Up();
  Raw second(proxy_.port());
  second.Send("PING\r\n");
  EXPECT_EQ(second.Read(7), "+PONG\r\n");
}

TEST_F(FaultProxyTest, LetsOneConnectionOvertakeAnother) {
  Raw slow(proxy_.port());
  Raw quick(proxy_.port());
  slow.Send("PING\r\n");
  quick.Send("PING\r\n");
  EXPECT_EQ(slow.Read(7), "+PONG\r\n");
  EXPECT_EQ(quick.Read(7), "+PONG\r\n");
  proxy_.Set({.reorder_share = 1, .reorder_max_ms = 60'000});
  slow.Send("ECHO a\r\n");
  EXPECT_EQ(slow.Read(7, 50), "");
  proxy_.Set({});
  quick.Send("ECHO b\r\n");
  EXPECT_EQ(quick.Read(7), "$1\r\nb\r\n");
  EXPECT_EQ(slow.Read(7), "$1\r\na\r\n");
  EXPECT_EQ(proxy_.counts().reordered, 1U);
}

TEST_F(FaultProxyTest, ObeysLinesOfText) {
  EXPECT_EQ(proxy_.Command("delay 0.25 10 30"), "ok");
  EXPECT_EQ(proxy_.faults().delay_share, 0.25);
  EXPECT_EQ(proxy_.faults().delay_max_ms, 30U);
  EXPECT_EQ(proxy_.Command("drop 0.05"), "ok");
  EXPECT_EQ(proxy_.faults().delay_share, 0.25);  // the others stay
  EXPECT_EQ(proxy_.Command("half-open on"), "ok");
  EXPECT_TRUE(proxy_.faults().half_open);
  EXPECT_EQ(proxy_.Command("clear"), "ok");
  EXPECT_FALSE(proxy_.faults().half_open);
  EXPECT_EQ(proxy_.Command("down"), "ok");
  EXPECT_FALSE(Raw(proxy_.port()).connected());
  EXPECT_EQ(proxy_.Command("up"), "ok");
  EXPECT_TRUE(proxy_.Command("stats").starts_with("ok accepted=0 open=0 replies=0"));
  EXPECT_EQ(proxy_.Command("drop"), "error expected: drop SHARE");
  EXPECT_EQ(proxy_.Command("mute maybe"), "error expected: mute on|off");
  EXPECT_TRUE(proxy_.Command("explode").starts_with("error unknown command 'explode'"));
}

}  // namespace
}  // namespace weir::testing
