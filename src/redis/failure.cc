#include "redis/failure.h"

#include <array>
#include <utility>

namespace weir::redis {

std::string_view NameOf(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::kTimeout:
      return "timeout";
    case FailureKind::kDisconnected:
      return "disconnected";
    case FailureKind::kOverloaded:
      return "overloaded";
    case FailureKind::kBreakerOpen:
      return "breaker-open";
    case FailureKind::kNoNode:
      return "no-node";
    case FailureKind::kTooLarge:
      return "too-large";
    case FailureKind::kServer:
      return "server";
    case FailureKind::kStopped:
      return "stopped";
  }
  return "unknown";
}

namespace {

struct Word {
  std::string_view word;
  ServerError error;
  std::string_view name;
};

// The first of an error is its name; -ERR and all that is not here are kOther.
constexpr std::array kWords = {
    Word{"NOSCRIPT", ServerError::kNoScript, "no-script"},
    Word{"MOVED", ServerError::kMoved, "moved"},
    Word{"ASK", ServerError::kAsk, "ask"},
    Word{"TRYAGAIN", ServerError::kTryAgain, "try-again"},
    Word{"CLUSTERDOWN", ServerError::kClusterDown, "cluster-down"},
    Word{"CROSSSLOT", ServerError::kCrossSlot, "cross-slot"},
    Word{"OOM", ServerError::kOutOfMemory, "out-of-memory"},
    Word{"LOADING", ServerError::kLoading, "loading"},
    Word{"READONLY", ServerError::kReadOnly, "read-only"},
    Word{"MASTERDOWN", ServerError::kMasterDown, "master-down"},
    Word{"BUSY", ServerError::kBusy, "busy"},
    Word{"NOPERM", ServerError::kNoPermission, "no-permission"},
    Word{"NOAUTH", ServerError::kNoAuth, "no-auth"},
    Word{"WRONGPASS", ServerError::kNoAuth, "no-auth"},
    Word{"WRONGTYPE", ServerError::kWrongType, "wrong-type"},
    Word{"WEIRSTATE", ServerError::kUnknownState, "unknown-state"},
    Word{"MISCONF", ServerError::kMisconfigured, "misconfigured"},
    Word{"NOREPLICAS", ServerError::kMisconfigured, "misconfigured"},
    Word{"UNKILLABLE", ServerError::kBusy, "busy"},
};

}  // namespace

std::string_view NameOf(ServerError error) noexcept {
  for (const Word& word : kWords) {
    if (word.error == error) {
      return word.name;
    }
  }
  return error == ServerError::kNone ? "none" : "other";
}

ServerError ServerErrorOf(std::string_view text) noexcept {
  const std::string_view first = text.substr(0, text.find(' '));
  for (const Word& word : kWords) {
    if (word.word == first) {
      return word.error;
    }
  }
  // What a script met is told in other words by some versions.
  if (text.find("WRONGTYPE") != std::string_view::npos) {
    return ServerError::kWrongType;
  }
  if (text.find("-OOM ") != std::string_view::npos) {
    return ServerError::kOutOfMemory;
  }
  if (text.find("can't run this command") != std::string_view::npos ||
      text.find("can't access at least one of the keys") != std::string_view::npos) {
    return ServerError::kNoPermission;
  }
  return ServerError::kOther;
}

bool ProvesNothingRan(ServerError error, std::string_view text) noexcept {
  switch (error) {
    case ServerError::kNone:
    case ServerError::kWrongType:  // met by a script that may have written before
    case ServerError::kUnknownState:
    case ServerError::kOther:
      return false;
    case ServerError::kNoPermission:  // of the call itself, or of what its script called
      return text.starts_with("NOPERM") && text.find("in script") == std::string_view::npos;
    case ServerError::kOutOfMemory:  // a script is refused its first write, and no later one
    default:
      return true;
  }
}

bool IsNodesFault(ServerError error) noexcept {
  switch (error) {
    case ServerError::kOutOfMemory:
    case ServerError::kLoading:
    case ServerError::kReadOnly:
    case ServerError::kMasterDown:
    case ServerError::kBusy:
    case ServerError::kNoPermission:
    case ServerError::kNoAuth:
    case ServerError::kClusterDown:
    case ServerError::kMisconfigured:
      return true;
    default:
      return false;
  }
}

}  // namespace weir::redis
