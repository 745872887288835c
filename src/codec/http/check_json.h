// JSON bodies of the HTTP front, read without building a tree. One reader per thread; what it gives
// points into the reader or into the body, and is good until it reads again or the body goes.
//
//   {"key": "user-1"}
//   {"attributes": {"ip": "192.0.2.1", "path": "/login"}, "cost": 2, "peek": false, "id": "r-1"}
//   {"checks": [{"key": "a"}, {"key": "b", "cost": 3}]}
//
// Anything else is refused with a sentence that says what was found and what is expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "weir/rule_set.h"
#include "weir/time.h"

namespace weir::codec::http {

struct CheckQuestion {
  // As sent; numbers and booleans as their text, null left out. "key" is an attribute like others.
  std::span<const Attribute> attributes;
  uint64_t cost = 1;
  bool peek = false;    // answer, but charge nothing
  std::string_view id;  // makes a repeated question the same one; empty: none
};

struct ReserveQuestion {
  std::span<const Attribute> attributes;
  uint64_t estimate = 0;
  std::optional<Duration> lasts;
  std::string_view id;
};

struct SettleQuestion {
  std::string_view reservation;
  uint64_t actual = 0;
};

// What starts anew: the keys of these attributes, under one rule, or under all.
struct ResetQuestion {
  std::span<const Attribute> attributes;
  std::string_view rule;  // empty: all
};

// What an operator makes of a rule, and for how long.
struct SwitchQuestion {
  std::string_view rule;
  std::string_view to;
  std::optional<Duration> lasts;
};

class JsonReader {
 public:
  static constexpr size_t kChecksMax = 100;
  static constexpr size_t kIdBytesMax = 128;

  JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;
  ~JsonReader();

  // Each returns false, and error() says why, if the body is not what it should be.
  [[nodiscard]] bool ReadCheck(std::string_view body);
  [[nodiscard]] bool ReadReserve(std::string_view body);
  [[nodiscard]] bool ReadSettle(std::string_view body);
  // {"id": "…"} or {"ids": ["…", …]}
  [[nodiscard]] bool ReadRelease(std::string_view body);
  [[nodiscard]] bool ReadReset(std::string_view body);
  [[nodiscard]] bool ReadSwitch(std::string_view body);

  // After ReadCheck: one, or those of a batch.
  [[nodiscard]] std::span<const CheckQuestion> checks() const noexcept;
  [[nodiscard]] bool is_batch() const noexcept;
  [[nodiscard]] const ReserveQuestion& reserve() const noexcept;
  [[nodiscard]] const SettleQuestion& settle() const noexcept;
  [[nodiscard]] const ResetQuestion& reset() const noexcept;
  [[nodiscard]] const SwitchQuestion& change() const noexcept;
  [[nodiscard]] std::span<const std::string_view> released() const noexcept;

  [[nodiscard]] std::string_view error() const noexcept;

  struct State;  // for the files that make up the reader

 private:
  std::unique_ptr<State> state_;
};

}  // namespace weir::codec::http
