// What a client tells about itself: a snapshot for metrics, and events for the log.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "redis/failure.h"

namespace weir::redis {

enum class BreakerState : uint8_t { kClosed, kOpen, kProbing };

// What is wrong with a node, by cause and fix. Told once when it begins and once when it is over.
enum class Trouble : uint8_t {
  kNone,
  kUnresolved,   // the name is unknown
  kRefused,      // nobody listens
  kUnreachable,  // connecting takes too long or fails otherwise
  kSilent,       // connected, and no answer
  kLost,         // the connection ended
  kTls,          // the handshake failed
  kTlsToPlain,   // it does not answer TLS
  kPlainToTls,   // it answers TLS
  kNotRedis,     // it answers something else
  kPassword,     // wrong, or missing
  kPermission,   // the ACL forbids what we need
  kReadOnly,     // a replica where a master is needed
  kLoading,
  kOutOfMemory,
  kMasterDown,
  kBusy,
  kClusterDown,
  kMisconfigured,
  kIsCluster,      // asked as a single server, it is part of a Cluster
  kNoCluster,      // asked as a Cluster, it is none
  kNoMaster,       // no Sentinel knows the master's name
  kEvicts,         // maxmemory-policy lets it forget state
  kPolicyUnknown,  // nobody says whether it forgets state
  kWrongType,      // a key of ours holds something else
  kUnknownState,   // a key of ours holds a state that we cannot read
  kError,          // an error that has no name of its own here
};

// Told once, and not of a node that is away: others of its keys are served.
[[nodiscard]] constexpr bool IsWarning(Trouble trouble) noexcept {
  return trouble >= Trouble::kEvicts;
}
// What an error of the server's says about it; kNone: nothing.
[[nodiscard]] Trouble TroubleOf(ServerError error) noexcept;

[[nodiscard]] std::string_view NameOf(Trouble trouble) noexcept;
[[nodiscard]] std::string_view NameOf(BreakerState state) noexcept;

// One line for the log: what, where, why, and what to do about it.
struct Event {
  enum class Kind : uint8_t { kTrouble, kWarning, kRecovered, kOpened, kClosed, kTopology };
  Kind kind = Kind::kTrouble;
  Trouble trouble = Trouble::kNone;
  std::string node;  // its address
  std::string text;  // the whole line
};

inline constexpr size_t kFailureKinds = 8;

struct NodeStatus {
  std::string address;
  bool ready = false;  // connected and greeted
  BreakerState breaker = BreakerState::kClosed;
  Trouble trouble = Trouble::kNone;
  std::string policy;   // maxmemory-policy; empty: not known
  bool evicts = false;  // by that policy, and with a maxmemory set
  std::string version;  // of the server
  uint32_t in_flight = 0;
  uint32_t slots = 0;  // that it serves; of a single server all
  uint64_t calls = 0;
  uint64_t replies = 0;
  std::array<uint64_t, kFailureKinds> failures{};  // by FailureKind
  uint64_t late_replies = 0;                       // dropped: their calls had timed out
  uint64_t no_script = 0;                          // calls sent again with the script's text
  uint64_t redirects = 0;                          // MOVED and ASK that led here
  uint64_t retries = 0;                            // TRYAGAIN, CLUSTERDOWN
  uint64_t connects = 0;                           // tried
  uint64_t disconnects = 0;
  uint64_t writes = 0;
  uint64_t breaker_transitions = 0;  // to open and to closed
};

struct Status {
  std::vector<NodeStatus> nodes;
  uint64_t topology_changes = 0;
  uint64_t refreshes = 0;  // of a Cluster's slots, of Sentinel's answer
  bool ready = false;      // every slot has a node that can be asked
};

}  // namespace weir::redis
