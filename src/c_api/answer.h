// Handing a decision to a C caller, and looking at what he passed.
#pragma once

#include <cstddef>
#include <cstring>

#include "weir/decision.h"
#include "weir/weir.h"

#include "c_api/failure.h"

namespace weir::c_api {

// The C struct is the C++ one with the byte at its end put to use, so that handing out an answer is
// a copy of 32 bytes.
static_assert(sizeof(weir_decision) == sizeof(Decision));
static_assert(offsetof(weir_decision, retry_after_ns) == offsetof(Decision, retry_after));
static_assert(offsetof(weir_decision, reset_after_ns) == offsetof(Decision, reset_after));
static_assert(offsetof(weir_decision, limit) == offsetof(Decision, limit));
static_assert(offsetof(weir_decision, remaining) == offsetof(Decision, remaining));
static_assert(offsetof(weir_decision, charged) == offsetof(Decision, charged));
static_assert(offsetof(weir_decision, outcome) == offsetof(Decision, outcome));
static_assert(offsetof(weir_decision, basis) == offsetof(Decision, basis));
static_assert(offsetof(weir_decision, problem) == offsetof(Decision, problem));

inline void HandOut(const Decision& decision, weir_decision* out) noexcept {
  std::memcpy(out, &decision, sizeof *out);
  out->allowed = decision.allowed() ? 1 : 0;
}

// 1 if it is allowed, 0 if not. `out` may be nullptr, here and below.
inline int Answer(const Decision& decision, weir_decision* out) noexcept {
  if (out != nullptr) {
    HandOut(decision, out);
  }
  return decision.allowed() ? 1 : 0;
}

// What a caller finds who does not look at the status: nothing is allowed.
inline int AnswerFailure(int status, weir_decision* out) noexcept {
  if (out != nullptr) {
    Decision nothing;
    nothing.outcome = Outcome::kRefused;
    HandOut(nothing, out);
  }
  return status;
}

inline int FailKey() noexcept {
  return Fail(WEIR_INVALID_ARGUMENT,
              "key: NULL with a key_length above 0 is not allowed; pass the key's bytes");
}

// WEIR_OK, or the failure. An empty key is the library's to refuse.
inline int CheckArguments(const weir_limiter* limiter, const char* key,
                          size_t key_length) noexcept {
  if (limiter == nullptr) [[unlikely]] {
    return FailNull("limiter");
  }
  if (key == nullptr && key_length > 0) [[unlikely]] {
    return FailKey();
  }
  return WEIR_OK;
}

}  // namespace weir::c_api
