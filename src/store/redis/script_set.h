// The Lua scripts of the shared store, as Redis gets them: whole texts, put together from lua/*.lua
// when weir is built, each with the SHA-1 by which Redis knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::script {

enum class Id : uint8_t {
  // One charge of one key each.
  kBucket,   // token and leaky bucket, the queue
  kGap,      // minimum gap
  kWindow,   // fixed windows of every start, calendar quotas
  kSliding,  // sliding window counter
  kSliced,   // sliced window
  kLog,      // sliding log
  kHold,     // concurrency
  // Of any of them.
  kMany,      // several charges of one slot, all or nothing
  kGiveBack,  // several receipts of one slot
  kRenew,     // a hold's lease
  kReset,     // a key starts anew
  kSettle,    // a reservation's record is taken out, once
};

inline constexpr size_t kScripts = static_cast<size_t>(Id::kSettle) + 1;

struct Text {
  std::string_view name;  // "bucket"
  std::string_view text;
  std::string_view sha1;  // 40 hexadecimal digits, as EVALSHA takes it
};

[[nodiscard]] const Text& Get(Id id) noexcept;
[[nodiscard]] std::span<const Text, kScripts> All() noexcept;

}  // namespace weir::script
