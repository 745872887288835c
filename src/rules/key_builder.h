// What a request is counted by under a rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rules/compiled_set.h"
#include "rules/request_view.h"

namespace weir::rules {

// Values above this go into a key as their beginning and a hash of the whole.
inline constexpr size_t kMaxKeyPartBytes = 128;

// Whether every part of the key is there.
[[nodiscard]] bool HasKey(const CompiledRule& rule, const RequestView& request) noexcept;

// Writes the key into `out` and returns its size; 0: there is no room. A part that is missing is
// written as shared (rules/key_text.h).
[[nodiscard]] size_t BuildKey(const CompiledRule& rule, const PathPattern* pattern,
                              const RequestView& request, unsigned ipv6_bits,
                              std::span<char> out) noexcept;

}  // namespace weir::rules
