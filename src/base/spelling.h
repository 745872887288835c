// Words in error messages: what was probably meant, and text from outside made safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::base {

inline constexpr size_t kMaxWordBytes = 64;

// Edit distance (insert, delete, replace) without regard to ASCII case, for "did you mean".
// Words longer than kMaxWordBytes are infinitely far from everything.
[[nodiscard]] size_t SpellingDistance(std::string_view a, std::string_view b) noexcept;

// `text` in double quotes, safe for one line of a log: other than printable ASCII is shown as \xNN,
// and what exceeds `max_bytes` as "...".
[[nodiscard]] std::string Quoted(std::string_view text, size_t max_bytes = 80);

}  // namespace weir::base
