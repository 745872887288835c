#include "server/statsd_sender.h"

#include <vector>

#include <boost/asio/buffer.hpp>

#include "server/log.h"

namespace weir::server {

namespace {

// What fits a packet of any network.
constexpr size_t kPacketBytes = 1400;

}  // namespace

StatsdSender::StatsdSender(boost::asio::io_context& context, const envoy::RlsStats& stats,
                           const Options& options)
    : stats_(stats), options_(options), report_(options.report), socket_(context), timer_(context) {
  using boost::asio::ip::udp;
  boost::system::error_code error;
  udp::resolver resolver(context);
  const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
  if (error || found.empty()) {
    Log(LogLevel::kWarning, "statsd: no such host; nothing is sent",
        {{"host", options.host}, {"error", error.message()}});
    return;
  }
  const udp::endpoint endpoint = *found.begin();
  socket_.open(endpoint.protocol(), error);
  socket_.connect(endpoint, error);
  socket_.non_blocking(true, error);
  Wait();
}

void StatsdSender::Close() {
  timer_.cancel();
  if (socket_.is_open()) {
    Send();
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
}

void StatsdSender::Wait() {
  timer_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(options_.every));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Send();
      Wait();
    }
  });
}

// Nobody need listen: what cannot be sent is gone.
void StatsdSender::Send() {
  std::string packet;
  const auto send = [this, &packet] {
    boost::system::error_code ignored;
    socket_.send(boost::asio::buffer(packet), 0, ignored);
    packet.clear();
  };
  for (const std::string& line : report_.Next(stats_)) {
    if (!packet.empty() && packet.size() + line.size() >= kPacketBytes) {
      send();
    }
    packet += packet.empty() ? "" : "\n";
    packet += line;
  }
  if (!packet.empty()) {
    send();
  }
}

}  // namespace weir::server
