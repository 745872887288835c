// A proxy between a client and a server of the Redis protocol that makes a network misbehave: it
// delays replies, loses them after the server has done its work, goes silent, cuts connections and
// lets connections overtake one another.
//
//   FaultProxy proxy({.upstream = "127.0.0.1:6379"});
//   Connect(proxy.port());
//   proxy.Set({.delay_share = 0.01, .delay_min_ms = 10, .delay_max_ms = 30});
//   proxy.Cut();
//
// It knows where one reply ends, so that faults hit replies and not bytes. TCP keeps order, so a
// delayed reply delays those behind it on its connection, and a lost one is the last of its
// connection. Bytes that are no replies (TLS) are passed as they come, each read taken for one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::testing {

struct Faults {
  double delay_share = 0;  // of replies
  uint32_t delay_min_ms = 0;
  uint32_t delay_max_ms = 0;
  // The server has answered, nobody hears it: the connection ends just before that reply.
  double drop_share = 0;
  // The reply waits until a later one of another connection has passed, this long at most.
  double reorder_share = 0;
  uint32_t reorder_max_ms = 20;
  // Connections live and nothing comes through any more, in either direction or only of replies.
  bool half_open = false;
  bool mute_replies = false;
};

struct FaultCounts {
  uint64_t accepted = 0;
  uint64_t open = 0;
  uint64_t replies = 0;  // read from the server; pushes are not counted
  uint64_t delivered = 0;
  uint64_t delayed = 0;
  uint64_t dropped = 0;
  uint64_t reordered = 0;  // that another connection's reply did overtake
  uint64_t cut = 0;        // connections ended by Cut, Down or a lost reply
  uint64_t swallowed_bytes = 0;
};

// Runs on a thread of its own. Thread-safe.
class FaultProxy {
 public:
  struct Options {
    std::string upstream;  // "127.0.0.1:6379", "unix:/path"
    uint16_t port = 0;     // to listen on, at 127.0.0.1; 0: any that is free
    uint64_t seed = 1;     // of all that is left to chance
  };

  // Ends the program with a message if it cannot listen: tests have no use for going on.
  explicit FaultProxy(const Options& options);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] uint16_t port() const noexcept;
  // For replies to come.
  void Set(const Faults& faults);
  [[nodiscard]] Faults faults() const;
  // Each of these has happened when it returns.
  void Cut();   // every connection ends; new ones are taken
  void Down();  // and nobody listens any more, until
  void Up();
  [[nodiscard]] FaultCounts counts() const;

  // The same by one line of text, for programs: `delay SHARE MIN_MS MAX_MS`, `drop SHARE`,
  // `reorder SHARE MAX_MS`, `half-open on|off`, `mute on|off`, `cut`, `down`, `up`, `clear`,
  // `stats`. Answers "ok", "ok name=count …" or "error …", without a line end.
  [[nodiscard]] std::string Command(std::string_view line);

 private:
  class State;
  const std::unique_ptr<State> state_;
};

}  // namespace weir::testing
