// The load against servers that behave as the test wants: on a free port, in a thread of its own.
#include "apps/weir/bench/load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "apps/weir/bench/report.h"
#include "apps/weir/text.h"

namespace weir::bench {

using app::FormatCount;
using app::Protocol;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kRequest = "*2\r\n$4\r\nINCR\r\n$5\r\nkey:0\r\n";

// Serves one connection after the other until it is told to end. `serve` returns false to end the
// connection at once.
class Server {
 public:
  using Serve = std::function<bool(int connection, size_t requests)>;

  explicit Server(Serve serve) : serve_(std::move(serve)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  ~Server() {
    shutdown(listener_, SHUT_RDWR);  // wakes accept
    thread_.join();
    close(listener_);
  }

  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  void Run() {
    while (true) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) {
        return;
      }
      char bytes[65536];
      size_t rest = 0;
      while (true) {
        const ssize_t got = recv(connection, bytes, sizeof bytes, 0);
        if (got <= 0) {
          break;
        }
        rest += static_cast<size_t>(got);
        const size_t requests = rest / kRequest.size();
        rest %= kRequest.size();
        if (!serve_(connection, requests)) {
          break;
        }
      }
      close(connection);
    }
  }

  Serve serve_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

bool Send(int connection, size_t requests, std::string_view answer) {
  std::string bytes;
  for (size_t i = 0; i < requests; ++i) {
    bytes += answer;
  }
  return send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

struct Ask {
  uint64_t rate = 0;
  size_t pipeline = 1;
  Duration patience = seconds(30);
};

Result<std::unique_ptr<Tally>> Measure(const Server& server, const Ask& ask) {
  LoadPlan plan;
  plan.target = {.protocol = Protocol::kResp,
                 .host = "127.0.0.1",
                 .port = server.port(),
                 .path = "/",
                 .authority = "server"};
  plan.command = "INCR {key}";
  plan.rate = ask.rate;
  plan.duration = milliseconds(50);
  plan.patience = ask.patience;
  plan.pipeline = ask.pipeline;
  const KeySource keys(10, 0, 1);
  const std::atomic<bool> stop = false;
  return Load(plan, *Message::Resp(plan.command, keys.key_bytes()), keys, SystemClock(), stop)
      .Run();
}

TEST(Load, AnOpenLoopSendsEveryRequestOfItsScheduleOnce) {
  const Server server([](int fd, size_t n) { return Send(fd, n, ":1\r\n"); });
  const auto tally = Measure(server, {.rate = 20'000, .pipeline = 64});
  ASSERT_TRUE(tally) << tally.error().message;
  EXPECT_EQ((*tally)->sent(), 1000U);
  EXPECT_EQ((*tally)->answers(), 1000U);
  EXPECT_EQ((*tally)->count(Answer::kAllowed), 1000U);
  EXPECT_EQ((*tally)->latency().count(), 1000U);
}

TEST(Load, AClosedLoopSendsWholeBatches) {
  const Server server([](int fd, size_t n) { return Send(fd, n, ":1\r\n"); });
  const auto tally = Measure(server, {.pipeline = 16});
  ASSERT_TRUE(tally) << tally.error().message;
  EXPECT_GT((*tally)->answers(), 0U);
  EXPECT_EQ((*tally)->answers() % 16, 0U);
  EXPECT_EQ((*tally)->unanswered(), 0U);
  EXPECT_EQ((*tally)->late(), 0U);
}

TEST(Load, CountsErrorsApartAndKeepsTheFirstsWords) {
  const Server server([](int fd, size_t n) { return Send(fd, n, "-ERR no\r\n"); });
  const auto tally = Measure(server, {.rate = 1000, .pipeline = 8});
  ASSERT_TRUE(tally) << tally.error().message;
  EXPECT_EQ((*tally)->count(Answer::kError), 50U);
  EXPECT_EQ((*tally)->error(), "ERR no");
}

TEST(Load, SaysThatTheServerWentAway) {
  size_t served = 0;
  const Server server([&served](int fd, size_t n) {
    served += n;
    return served < 10 && Send(fd, n, ":1\r\n");
  });
  const auto tally = Measure(server, {.rate = 20'000, .pipeline = 64});
  ASSERT_FALSE(tally);
  EXPECT_EQ(tally.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(tally.error().message.find("the connection ended"), std::string::npos);
  EXPECT_NE(tally.error().message.find("requests unanswered"), std::string::npos);
}

TEST(Load, SaysThatTheAnswersAreOfAnotherProtocol) {
  const Server server([](int fd, size_t n) { return Send(fd, n, "HTTP/1.1 400 No\r\n\r\n"); });
  const auto tally = Measure(server, {.rate = 1000});
  ASSERT_FALSE(tally);
  EXPECT_NE(tally.error().message.find("server: not an answer"), std::string::npos);
}

TEST(Load, CountsWhatIsNeverAnswered) {
  const Server server([](int, size_t) { return true; });
  const auto tally = Measure(server, {.rate = 1000, .pipeline = 8, .patience = milliseconds(200)});
  ASSERT_TRUE(tally) << tally.error().message;
  // Eight are under way, and no more find room.
  EXPECT_EQ((*tally)->sent(), 8U);
  EXPECT_EQ((*tally)->unanswered(), 8U);
  EXPECT_EQ((*tally)->unsent(), 42U);
}

TEST(Load, SaysWhyItCannotConnect) {
  std::string port;
  {
    const Server gone([](int, size_t) { return false; });
    port = gone.port();
  }
  LoadPlan plan;
  plan.target = {.host = "127.0.0.1", .port = port, .path = "/", .authority = "nobody"};
  plan.duration = milliseconds(50);
  const KeySource keys(1, 0, 1);
  const std::atomic<bool> stop = false;
  const auto tally =
      Load(plan, *Message::Resp("PING", keys.key_bytes()), keys, SystemClock(), stop).Run();
  ASSERT_FALSE(tally);
  EXPECT_EQ(tally.error().message, "nobody: cannot connect: Connection refused");
}

TEST(Report, DrawsEveryStepThatHasValues) {
  base::Histogram histogram;
  histogram.Record(900, 300);
  histogram.Record(1'900'000, 1);
  const std::string picture = Picture(histogram, {.width = 80});
  EXPECT_NE(picture.find("1.00 us  ####"), std::string::npos) << picture;
  EXPECT_NE(picture.find("2.00 ms  #  "), std::string::npos) << picture;
  EXPECT_EQ(Picture({}, {}), "");
}

TEST(Report, WritesNumbersForPeople) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatNs(950, {}), "950 ns");
  EXPECT_EQ(FormatNs(12'345, {}), "12.3 us");
  EXPECT_EQ(FormatNs(2'500'000'000, {}), "2.50 s");
}

}  // namespace
}  // namespace weir::bench
