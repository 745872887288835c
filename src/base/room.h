// Room for up to N values, made as they are needed: arrays on the stack of a decision, most of
// which stay untouched, and clearing them would cost more than the decision.
#pragma once

#include <cstddef>
#include <type_traits>

namespace weir::base {

template <class T, size_t N>
class Room {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Room() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the values as they are

  [[nodiscard]] T* data() noexcept { return values_; }
  // REQUIRES: i < N, and for reading that it was written.
  [[nodiscard]] T& operator[](size_t i) noexcept { return values_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const noexcept { return values_[i]; }

 private:
  union {
    T values_[N];
  };
};

}  // namespace weir::base
