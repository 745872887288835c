// The client of Redis on one event loop. Everything here happens on that loop; nothing locks.
//
//   auto client = redis::Client::Create(loop.context(), options, on_event);
//   (*client)->Start();
//   (*client)->Submit(call, {.script = &script, .keys = keys, .arguments = arguments});
//
// All calls of one turn of the loop leave in one write to each connection. Redis may be absent:
// then calls fail at once, and the client connects by itself when it is there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "weir/result.h"

#include "redis/call.h"
#include "redis/options.h"
#include "redis/slots.h"
#include "redis/status.h"

namespace weir::redis {

// On the client's loop; may not call the client.
using EventHook = std::function<void(const Event&)>;

class Client {
 public:
  // The error names a file of TLS that cannot be used.
  static Result<std::unique_ptr<Client>> Create(boost::asio::io_context& context,
                                                const Options& options, EventHook on_event);
  // On the loop, or when it does not run any more. Calls under way fail (kStopped).
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Begins to connect.
  void Start();

  // REQUIRES: !call.pending().
  void Submit(Call& call, const Request& request);

  // Keys of one group can be asked for in one script: of one slot in a Cluster, of one instance in
  // a list, any elsewhere.
  [[nodiscard]] uint32_t GroupOf(std::string_view key) const noexcept;
  // Whether there are several groups at all.
  [[nodiscard]] bool is_divided() const noexcept;
  // Every slot has a node that answers. Cheap; for readiness and for "is it worth a try".
  [[nodiscard]] bool ready() const noexcept;
  // Whether a call to that slot would be sent now.
  [[nodiscard]] bool IsUsable(uint16_t slot) const noexcept;

  // Whether its node has only just been found well again, so that other clients may not know yet;
  // and, for next to nothing, whether there is any such node.
  [[nodiscard]] bool IsSettling(std::string_view key) const noexcept;
  [[nodiscard]] bool settling() const noexcept;

  [[nodiscard]] Status status() const;
  [[nodiscard]] const Options& options() const noexcept;

 private:
  class State;
  explicit Client(std::shared_ptr<State> state);

  // Shared with what the loop still has to run.
  const std::shared_ptr<State> state_;
};

}  // namespace weir::redis
