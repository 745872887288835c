// Sends the statistics of Envoy's service to a statsd server over UDP, every so often.
#pragma once

#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "weir/time.h"

#include "envoy/rls_stats.h"

namespace weir::server {

class StatsdSender {
 public:
  struct Options {
    std::string host = "localhost";
    uint16_t port = 8125;
    Duration every = std::chrono::seconds(10);
    envoy::StatsdReport::Options report{};
  };

  StatsdSender(boost::asio::io_context& context, const envoy::RlsStats& stats,
               const Options& options);

  StatsdSender(const StatsdSender&) = delete;
  StatsdSender& operator=(const StatsdSender&) = delete;

  // Sends what has not been sent, and no more after that.
  void Close();

 private:
  void Wait();
  void Send();

  const envoy::RlsStats& stats_;
  const Options options_;
  envoy::StatsdReport report_;
  boost::asio::ip::udp::socket socket_;
  boost::asio::steady_timer timer_;
};

}  // namespace weir::server
