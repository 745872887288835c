#include "weir/shared_store.h"

namespace weir {

std::string_view ToString(StoreTrouble trouble) noexcept {
  switch (trouble) {
    case StoreTrouble::kNone:
      return "none";
    case StoreTrouble::kTimeout:
      return "timeout";
    case StoreTrouble::kDisconnected:
      return "disconnected";
    case StoreTrouble::kOverloaded:
      return "overloaded";
    case StoreTrouble::kBreakerOpen:
      return "breaker_open";
    case StoreTrouble::kNoNode:
      return "no_node";
    case StoreTrouble::kOutOfMemory:
      return "out_of_memory";
    case StoreTrouble::kLoading:
      return "loading";
    case StoreTrouble::kReadOnly:
      return "read_only";
    case StoreTrouble::kMasterDown:
      return "master_down";
    case StoreTrouble::kBusy:
      return "busy";
    case StoreTrouble::kNotAllowed:
      return "not_allowed";
    case StoreTrouble::kWrongType:
      return "wrong_type";
    case StoreTrouble::kOther:
      return "other";
  }
  return "unknown";
}

}  // namespace weir
