// One question to Redis and where its answer goes.
//
// The caller owns it, so that nothing is allocated for a call:
//
//   class Waiter final : public redis::Call {
//     void OnReply(const codec::resp::Reply& reply) noexcept override { … event_.Set(); }
//     void OnFailure(const redis::Failure& failure) noexcept override { … event_.Set(); }
//   };
//   Waiter waiter;
//   client.Submit(waiter, {.script = &gcra, .keys = keys, .arguments = arguments});
//
// Exactly one of the two is called, once, on the client's loop and never inside Submit. A call may
// be submitted again from there. One that goes before its answer takes itself out; what Redis then
// answers is dropped by its position, and never taken for the answer to another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/time.h"

#include "codec/resp/reply_parser.h"
#include "redis/failure.h"
#include "redis/script.h"

namespace weir::redis {

struct Flight;

inline constexpr uint16_t kSlots = 16384;
// Let the client find it by the first key. Without a key it goes to whichever node is there.
inline constexpr uint16_t kSlotOfKey = 0xffff;

// All texts are copied by Submit.
struct Request {
  const Script* script = nullptr;          // nullptr: a plain command
  std::span<const std::string_view> keys;  // KEYS, all of one slot; of a command: only to route
  std::span<const std::string_view> arguments;  // ARGV; of a command: all of it, its name first
  Duration timeout{0};                          // 0: the client's own
  uint16_t slot = kSlotOfKey;
};

class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The reply is no error; it and its texts are valid until this returns.
  virtual void OnReply(const codec::resp::Reply& reply) noexcept = 0;
  virtual void OnFailure(const Failure& failure) noexcept = 0;

  [[nodiscard]] bool pending() const noexcept { return flight_ != nullptr; }
  // Nobody wants its answer any more. On the loop; does nothing unless pending.
  void Forget() noexcept;

 protected:
  virtual ~Call() { Forget(); }

 private:
  friend class Engine;
  Flight* flight_ = nullptr;
};

}  // namespace weir::redis
