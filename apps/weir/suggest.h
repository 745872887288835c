// "Did you mean ...?", for any command that takes names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::app {

// The candidate nearest to `typed`: one of which it is the beginning or a part, or one at most a
// third of its length in typing errors away.
[[nodiscard]] std::optional<std::string_view> Nearest(std::string_view typed,
                                                      std::span<const std::string_view> candidates);

// "unknown traffic 'posson': did you mean 'poisson'? Allowed: steady, poisson, ..."
[[nodiscard]] std::string UnknownName(std::string_view what, std::string_view typed,
                                      std::span<const std::string_view> candidates);

}  // namespace weir::app
