// A tour as one page to show to a colleague: no script, style, font or picture from elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "apps/weir/simulate/tour.h"

namespace weir::simulate {

// The most parts into which time is cut: about three pixels each on a wide screen.
inline constexpr size_t kHtmlBins = 120;

// Well-formed as XML as well, which is what the test parses it as. REQUIRES: plan.bins > 0.
[[nodiscard]] std::string Html(const Tour& tour);

// Text that is safe as content and as a quoted attribute.
[[nodiscard]] std::string EscapeHtml(std::string_view text);

// The style sheet and the script of the page (html_assets.cc); neither holds '<' or '&'.
[[nodiscard]] std::string_view HtmlStyle() noexcept;
[[nodiscard]] std::string_view HtmlScript() noexcept;

}  // namespace weir::simulate
