// The load itself: one thread, one epoll, no allocation for a request.
//
// Open loop (rate > 0): requests leave at their scheduled times, whatever the answers do, as long
// as some connection has less than `pipeline` of them under way; those that find none leave as soon
// as there is one, and their wait counts in their latency. Closed loop (rate 0): each connection
// sends `pipeline` requests, waits for all their answers, and begins again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

#include "apps/weir/bench/connection.h"
#include "apps/weir/bench/key_source.h"
#include "apps/weir/bench/message.h"
#include "apps/weir/bench/schedule.h"
#include "apps/weir/bench/tally.h"
#include "apps/weir/target.h"

namespace weir::bench {

struct LoadPlan {
  app::Target target;
  std::string command;  // of RESP
  uint64_t rate = 0;    // requests a second; 0: closed loop
  Duration warmup{};
  Duration duration{};
  Duration patience = std::chrono::seconds(5);  // for connections, and for the last answers
  size_t connections = 1;
  size_t pipeline = 1;
};

class Load {
 public:
  // `stop` ends the sending early; what was asked is still waited for.
  Load(const LoadPlan& plan, const Message& message, const KeySource& keys, const Clock& clock,
       const std::atomic<bool>& stop);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // What was counted, or why the server could not be asked. To be called once.
  Result<std::unique_ptr<Tally>> Run();

 private:
  Result<void> OpenAll();
  Result<void> Open(size_t index);
  Result<void> Reopen(size_t index);
  Result<void> Watch(size_t index);
  Result<void> SendDue(Timestamp now);
  Result<void> Fill(size_t index);
  Result<void> Serve(size_t index, uint32_t events);
  Result<void> Receive(size_t index);
  Result<void> WaitAndServe(int timeout_ms);
  [[nodiscard]] Connection& NextWithRoom();
  [[nodiscard]] bool IsSending() const;
  [[nodiscard]] bool IsWaiting() const;
  [[nodiscard]] int TimeoutMs(Timestamp now) const;

  LoadPlan plan_;
  Message message_;
  KeySource keys_;
  const Clock& clock_;
  const std::atomic<bool>& stop_;
  app::Address address_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> watched_;  // what epoll looks for, for each connection
  std::vector<size_t> touched_;    // have something new to send
  size_t turn_ = 0;
  size_t opening_ = 0;
  std::unique_ptr<Schedule> schedule_;  // of the open loop
  Timestamp end_;                       // of the sending
  bool running_ = false;
  std::unique_ptr<Tally> tally_;
};

}  // namespace weir::bench
