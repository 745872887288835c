// How a call of the C interface fails: a negative status, and a message kept for the thread.
#pragma once

#include <string_view>

#include "weir/result.h"
#include "weir/weir.h"

#ifdef __cpp_exceptions
#include <new>
#endif

namespace weir::c_api {

// Each keeps its message for weir_last_error and returns the status. None allocates.
int Fail(weir_status status, std::string_view message) noexcept;
int Fail(const Error& error) noexcept;
// "limiter: NULL is not allowed"
int FailNull(std::string_view argument) noexcept;

// Runs what may allocate. The library throws nothing of its own, but the C++ runtime throws when
// the system has no memory left, and a caller in C could not catch that.
template <class Body>
int WithoutExceptions(Body body) noexcept {
#ifdef __cpp_exceptions
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(WEIR_OVERLOADED, "the system has no memory left");
  } catch (...) {
    return Fail(WEIR_INTERNAL, "an unexpected exception; please report this");
  }
#else
  return body();
#endif
}

}  // namespace weir::c_api
