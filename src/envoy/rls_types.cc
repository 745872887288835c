#include "envoy/rls_types.h"

namespace weir::envoy {

std::string_view ToString(Code code) noexcept {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kOverLimit:
      return "OVER_LIMIT";
    case Code::kUnknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace weir::envoy
