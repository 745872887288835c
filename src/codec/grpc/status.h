// How a call ends: gRPC's codes, and a message for people.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace weir::codec::grpc {

// gRPC's numbers; those that we give.
enum class Code : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

struct Status {
  Code code = Code::kOk;
  std::string message;

  [[nodiscard]] bool ok() const noexcept { return code == Code::kOk; }
};

}  // namespace weir::codec::grpc
