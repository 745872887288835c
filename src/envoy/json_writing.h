// Pieces of JSON appended to a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::envoy {

// With its quotes. What is not UTF-8 becomes U+FFFD, so that the text always is.
void AppendJsonString(std::string& out, std::string_view text);

// Whole numbers without a fraction, others in the fewest digits that read back the same. What JSON
// cannot say, NaN and the infinities, as proto3 JSON has it: as a string.
void AppendJsonNumber(std::string& out, double number);

void AppendJsonNumber(std::string& out, uint64_t number);

// How many bytes the UTF-8 sequence at the front has; 0 if there is none.
[[nodiscard]] size_t Utf8Length(std::string_view text) noexcept;

}  // namespace weir::envoy
