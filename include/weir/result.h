// Result<T>: a value or an Error, for what can fail: building a quota, making a limiter.
// A denial is not an error: Check returns a Decision.
//
//   auto quota = weir::Quota::Parse("100/min");
//   if (!quota) return Fail(quota.error().message);   // names the field and what is allowed
//   Use(*quota);
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace weir {

// Named for what the caller does next.
enum class ErrorCode {
  kInvalidArgument,   // fix the call
  kUnavailable,       // try again later, or apply your policy
  kDeadlineExceeded,  // took too long
  kOverloaded,        // shed load
  kInternal,          // a bug in weir: please report it
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  static Error Invalid(std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return quota;` and `return Error::Invalid("...")` both read well.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // REQUIRES: ok().
  [[nodiscard]] T& value() & noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

  // REQUIRES: !ok().
  [[nodiscard]] const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  // REQUIRES: !ok().
  [[nodiscard]] const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace weir
