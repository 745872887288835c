// What the client's core asks of the world around it: connections, time and somebody who listens.
// The core itself opens no socket and reads no clock, so that tests drive it byte by byte.
#pragma once

#include <memory>
#include <string_view>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "redis/options.h"
#include "redis/status.h"

namespace weir::redis {

// One connection, opening or open. Ends with the object; then nothing more is heard of it.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // Takes all of it. An error is told by OnClosed, later.
  virtual void Send(base::ByteBuffer& output) = 0;
  // What it suffers from if it has not opened by now.
  [[nodiscard]] virtual Trouble stuck() const noexcept { return Trouble::kUnreachable; }
};

// Who is told about a connection; each may end the channel.
class ChannelUser {
 public:
  virtual void OnOpened() = 0;
  // Takes what it understands from the front.
  virtual void OnBytes(base::ByteBuffer& input) = 0;
  virtual void OnClosed(Trouble why, std::string_view text) = 0;

 protected:
  ~ChannelUser() = default;
};

class Host {
 public:
  // Calls back later, never from inside.
  virtual std::unique_ptr<Channel> Open(const Address& address, ChannelUser& user) = 0;
  // Engine::OnTurnEnd is to be called once what is ready to run has run.
  virtual void WantTurnEnd() = 0;
  // Engine::OnTime is to be called then; replaces what was wanted before.
  virtual void WantTime(Timestamp at) = 0;
  virtual void Tell(const Event& event) = 0;

 protected:
  ~Host() = default;
};

}  // namespace weir::redis
