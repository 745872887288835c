#include "c_api/failure.h"

#include <algorithm>
#include <cstring>

namespace weir::c_api {

namespace {

// Of a fixed size, so that telling of a failure cannot fail, nor does a thread leave anything to be
// destroyed. Messages are a line; the longest quote a quota's text, and are cut.
thread_local char last_error[512] = "";

void Append(size_t& length, std::string_view text) noexcept {
  const size_t room = sizeof last_error - 1 - length;
  const size_t fitting = std::min(room, text.size());
  std::memcpy(last_error + length, text.data(), fitting);
  length += fitting;
  last_error[length] = '\0';
}

weir_status StatusOf(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return WEIR_INVALID_ARGUMENT;
    case ErrorCode::kUnavailable:
      return WEIR_UNAVAILABLE;
    case ErrorCode::kDeadlineExceeded:
      return WEIR_DEADLINE_EXCEEDED;
    case ErrorCode::kOverloaded:
      return WEIR_OVERLOADED;
    case ErrorCode::kInternal:
      return WEIR_INTERNAL;
  }
  return WEIR_INTERNAL;
}

}  // namespace

int Fail(weir_status status, std::string_view message) noexcept {
  size_t length = 0;
  Append(length, message);
  return status;
}

int Fail(const Error& error) noexcept {
  return Fail(StatusOf(error.code), error.message);
}

int FailNull(std::string_view argument) noexcept {
  size_t length = 0;
  Append(length, argument);
  Append(length, ": NULL is not allowed");
  return WEIR_INVALID_ARGUMENT;
}

}  // namespace weir::c_api

const char* weir_last_error(void) {
  return weir::c_api::last_error;
}
