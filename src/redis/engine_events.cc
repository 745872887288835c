// What the engine tells: one line when a trouble begins, with its cause and what to do about it,
// and one when it is over.
#include <algorithm>
#include <utility>

#include "redis/engine.h"

namespace weir::redis {

namespace {

// Ends with a connection that is ready; the others end with a call that is answered.
bool IsOfConnecting(Trouble trouble) {
  switch (trouble) {
    case Trouble::kUnresolved:
    case Trouble::kRefused:
    case Trouble::kUnreachable:
    case Trouble::kSilent:
    case Trouble::kLost:
    case Trouble::kTls:
    case Trouble::kTlsToPlain:
    case Trouble::kPlainToTls:
    case Trouble::kNotRedis:
    case Trouble::kPassword:
    case Trouble::kNoMaster:
    case Trouble::kNoCluster:
      return true;
    default:
      return false;
  }
}

// One state for whoever reads the log: it is not there. How that shows may change every second.
bool IsAway(Trouble trouble) {
  return trouble == Trouble::kRefused || trouble == Trouble::kUnreachable ||
         trouble == Trouble::kSilent || trouble == Trouble::kLost;
}

constexpr Duration kWell = std::chrono::seconds(1);

struct Lines {
  std::string_view cause;
  std::string_view fix;
};

Lines LinesOf(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone:
      return {"nothing", ""};
    case Trouble::kUnresolved:
      return {"its name is not known", "check the host in the Redis URL and the name servers"};
    case Trouble::kRefused:
      return {"nobody listens there", "start Redis, or check host and port in the Redis URL"};
    case Trouble::kUnreachable:
      return {"cannot connect", "check address, port, firewall and Redis's maxclients"};
    case Trouble::kSilent:
      return {"connected, but no answer", "see whether that Redis hangs or the network drops"};
    case Trouble::kLost:
      return {"the connection was lost", "see that Redis's log; connecting again"};
    case Trouble::kTls:
      return {"TLS failed", "check ca, cert, key and server-name in the Redis URL"};
    case Trouble::kTlsToPlain:
      return {"it does not answer TLS",
              "a plain port wants redis://, else give the port of tls-port"};
    case Trouble::kPlainToTls:
      return {"it wants TLS", "write rediss:// in place of redis://, or give the plain port"};
    case Trouble::kNotRedis:
      return {"what answers there is not Redis", "check host and port in the Redis URL"};
    case Trouble::kPassword:
      return {"user or password is refused",
              "check user:password@ in the Redis URL against ACL and requirepass"};
    case Trouble::kPermission:
      return {"the ACL forbids what weir needs",
              "allow the user +eval +evalsha +ping +info +hello +client|setname (in a Cluster "
              "+cluster|slots, with Sentinel +sentinel +subscribe), what the scripts call, and "
              "~weir:*"};
    case Trouble::kReadOnly:
      return {"it is a replica and takes no writes",
              "name the master, or use redis+sentinel:// or redis+cluster://"};
    case Trouble::kLoading:
      return {"it is loading its data", "nothing to do: it serves when it has finished"};
    case Trouble::kOutOfMemory:
      return {"its memory is full (maxmemory)", "raise maxmemory or add shards"};
    case Trouble::kMasterDown:
      return {"it is a replica that has lost its master", "repair the replication"};
    case Trouble::kBusy:
      return {"a script there runs for too long", "SCRIPT KILL, and find out whose it is"};
    case Trouble::kClusterDown:
      return {"the Cluster is down", "see CLUSTER INFO: slots without a master, or no majority"};
    case Trouble::kMisconfigured:
      return {"it refuses", "see the words in brackets, and that Redis's log"};
    case Trouble::kIsCluster:
      return {"it is part of a Cluster", "write redis+cluster:// in the Redis URL"};
    case Trouble::kNoCluster:
      return {"it is not part of a Cluster",
              "write redis:// or redis+list:// in the Redis URL, or set cluster-enabled yes"};
    case Trouble::kNoMaster:
      return {"the Sentinel does not know a master of that name",
              "check the name after the hosts in the Redis URL"};
    case Trouble::kEvicts:
      return {"its maxmemory-policy lets it forget counts, which gives users fresh limits",
              "set maxmemory-policy noeviction"};
    case Trouble::kPolicyUnknown:
      return {"its maxmemory-policy cannot be read, so nobody knows whether it forgets counts",
              "allow the user +info, and see that the policy is noeviction"};
    case Trouble::kWrongType:
      return {"a key of weir's holds something else",
              "somebody else writes below weir:; give weir a Redis or a database of its own"};
    case Trouble::kUnknownState:
      return {"a key of weir's holds what this version of weir cannot read",
              "a newer weir wrote it, then update this one; or somebody else writes below weir:, "
              "then give weir a Redis or a database of its own"};
    case Trouble::kError:
      return {"it answers with an error", "see the words in brackets; Redis must be 6.2 or later"};
  }
  return {};
}

}  // namespace

std::string_view NameOf(Trouble trouble) noexcept {
  constexpr std::array<std::string_view, 27> kNames = {
      "none",          "unresolved", "refused",      "unreachable",    "silent",
      "lost",          "tls",        "tls-to-plain", "plain-to-tls",   "not-redis",
      "password",      "permission", "read-only",    "loading",        "out-of-memory",
      "master-down",   "busy",       "cluster-down", "misconfigured",  "is-cluster",
      "no-cluster",    "no-master",  "evicts",       "policy-unknown", "wrong-type",
      "unknown-state", "error"};
  return kNames[std::min(static_cast<size_t>(trouble), kNames.size() - 1)];
}

std::string_view NameOf(BreakerState state) noexcept {
  switch (state) {
    case BreakerState::kClosed:
      return "closed";
    case BreakerState::kOpen:
      return "open";
    case BreakerState::kProbing:
      return "probing";
  }
  return "unknown";
}

Trouble TroubleOf(ServerError error) noexcept {
  switch (error) {
    case ServerError::kReadOnly:
      return Trouble::kReadOnly;
    case ServerError::kLoading:
      return Trouble::kLoading;
    case ServerError::kOutOfMemory:
      return Trouble::kOutOfMemory;
    case ServerError::kMasterDown:
      return Trouble::kMasterDown;
    case ServerError::kBusy:
      return Trouble::kBusy;
    case ServerError::kNoPermission:
      return Trouble::kPermission;
    case ServerError::kNoAuth:
      return Trouble::kPassword;
    case ServerError::kClusterDown:
      return Trouble::kClusterDown;
    case ServerError::kMisconfigured:
      return Trouble::kMisconfigured;
    case ServerError::kWrongType:
      return Trouble::kWrongType;
    case ServerError::kUnknownState:
      return Trouble::kUnknownState;
    case ServerError::kCrossSlot:
    case ServerError::kOther:
      return Trouble::kError;
    default:
      return Trouble::kNone;
  }
}

namespace {

Event EventOf(Event::Kind kind, const Node& node, Trouble trouble, std::string_view why) {
  const Lines lines = LinesOf(trouble);
  std::string text = std::string(node.is_sentinel ? "Sentinel " : "Redis ") + node.name + ": " +
                     std::string(lines.cause);
  if (!why.empty()) {
    text += " [" + std::string(why.substr(0, 200)) + "]";
  }
  text += "; " + std::string(lines.fix);
  return {.kind = kind, .trouble = trouble, .node = node.name, .text = std::move(text)};
}

}  // namespace

void Engine::SetTrouble(Node& node, Trouble trouble, std::string_view why) {
  node.trouble_seen = now_;
  if (node.trouble == trouble || (IsAway(node.trouble) && IsAway(trouble))) {
    return;
  }
  if (node.trouble == Trouble::kNone) {
    node.trouble_since = now_;
  }
  node.trouble = trouble;
  host_.Tell(EventOf(Event::Kind::kTrouble, node, trouble, why));
}

void Engine::WarnOnce(Node& node, Trouble trouble, std::string_view why) {
  const uint32_t bit = uint32_t{1} << static_cast<uint32_t>(trouble);
  if ((node.warned & bit) == 0) {
    node.warned |= bit;
    host_.Tell(EventOf(Event::Kind::kWarning, node, trouble, why));
  }
}

void Engine::TellError(Node& node, ServerError error, std::string_view why) {
  const Trouble trouble = TroubleOf(error);
  if (IsWarning(trouble)) {
    WarnOnce(node, trouble, why);
  } else if (trouble != Trouble::kNone) {
    SetTrouble(node, trouble, why);
  }
}

// A connection alone does not show that calls are served again. Answers to some do, if for a while
// no other is refused: a full Redis still answers those that write nothing.
void Engine::Recovered(Node& node, By by) {
  if (node.trouble == Trouble::kNone || (by == By::kConnection && !IsOfConnecting(node.trouble)) ||
      (by == By::kAnswer && now_ - node.trouble_seen < kWell)) {
    return;
  }
  const Trouble over = std::exchange(node.trouble, Trouble::kNone);
  const auto away =
      std::chrono::duration_cast<std::chrono::milliseconds>(now_ - node.trouble_since);
  host_.Tell({.kind = Event::Kind::kRecovered,
              .trouble = over,
              .node = node.name,
              .text = std::string(node.is_sentinel ? "Sentinel " : "Redis ") + node.name +
                      ": well again after " + std::to_string(away.count()) + " ms (" +
                      std::string(NameOf(over)) + ")"});
}

void Engine::TellBreaker(Node& node) {
  const bool opened = !node.breaker.closed();
  std::string text = "Redis " + node.name + ": breaker " + (opened ? "open" : "closed");
  if (opened) {
    const auto pause = std::chrono::floor<std::chrono::seconds>(node.breaker.probe_at() - now_);
    text += " after repeated failures; not asked for " + std::to_string(pause.count()) +
            " s or more, rules decide by their on-store-failure meanwhile";
  }
  host_.Tell({.kind = opened ? Event::Kind::kOpened : Event::Kind::kClosed,
              .trouble = node.trouble,
              .node = node.name,
              .text = std::move(text)});
}

void Engine::TellTopology(const std::string& text) {
  host_.Tell({.kind = Event::Kind::kTopology, .trouble = Trouble::kNone, .node = {}, .text = text});
}

Status Engine::status() const {
  Status status;
  status.topology_changes = topology_changes_;
  status.refreshes = refreshes_;
  status.ready = ready();
  for (const auto& node : nodes_) {
    if (node->is_sentinel || node->retired) {
      continue;
    }
    NodeStatus& one = status.nodes.emplace_back(node->counts);
    one.address = node->name;
    one.ready = node->ready();
    one.breaker = node->breaker.state();
    one.breaker_transitions = node->breaker.transitions();
    one.trouble = node->trouble;
    one.in_flight = node->in_flight;
    one.slots = node->slots;
  }
  return status;
}

}  // namespace weir::redis
