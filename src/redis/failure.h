// Why a call has no answer, by what the caller does next.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

enum class FailureKind : uint8_t {
  kTimeout,       // no answer within the call's deadline
  kDisconnected,  // no connection, or it was lost while the call was under way
  kOverloaded,    // as many calls are in flight to that node as may be
  kBreakerOpen,   // the node has failed too often; it is left alone for a while
  kNoNode,        // nobody is known to serve the key's slot
  kTooLarge,      // the call's arguments exceed the limit
  kServer,        // the server answered with an error
  kStopped,       // the client ended
};

// Which error the server answered with.
enum class ServerError : uint8_t {
  kNone,
  kOutOfMemory,   // OOM: maxmemory is reached
  kLoading,       // it reads its data after a start
  kReadOnly,      // it is a replica
  kMasterDown,    // a replica without its master
  kBusy,          // a script runs for too long
  kNoPermission,  // the ACL forbids the command or the key
  kNoAuth,        // it wants a password, or another one
  kWrongType,     // the key holds something that is not ours
  kUnknownState,  // WEIRSTATE: the key holds a state of another version, or a text of somebody's
  kNoScript,      // answered by sending the text; a caller does not see it
  kMoved,         // redirected more often than a call may be
  kAsk,
  kTryAgain,  // the slot is on its way to another node, still after three tries
  kClusterDown,
  kCrossSlot,
  kMisconfigured,  // MISCONF, NOREPLICAS: it refuses writes
  kOther,
};

struct Failure {
  FailureKind kind = FailureKind::kDisconnected;
  ServerError server = ServerError::kNone;  // of kServer
  // The call may have run although nobody knows its outcome. False: it certainly did not.
  bool may_have_run = false;
  std::string_view text;  // the server's words, or ours; valid during OnFailure only
};

[[nodiscard]] std::string_view NameOf(FailureKind kind) noexcept;
[[nodiscard]] std::string_view NameOf(ServerError error) noexcept;

// By the first word of an error's text.
[[nodiscard]] ServerError ServerErrorOf(std::string_view text) noexcept;
// Whether an error of that kind and in these words proves that nothing was changed.
[[nodiscard]] bool ProvesNothingRan(ServerError error, std::string_view text) noexcept;
// Whether it says that the node cannot serve anybody at present, so that the breaker counts it.
[[nodiscard]] bool IsNodesFault(ServerError error) noexcept;

}  // namespace weir::redis
