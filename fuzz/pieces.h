// For targets that feed a parser: the input cut into pieces that the input
// itself chooses, so that a finding repeats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/require.h"

namespace weir::fuzz {

// Sizes from 1 to 17, from a generator seeded by the content.
class Pieces {
 public:
  explicit Pieces(std::string_view seed) {
    for (const char byte : seed) {
      state_ = (state_ ^ static_cast<uint8_t>(byte)) * 0x100000001b3U;
    }
  }

  size_t Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return 1 + (state_ >> 33) % 17;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325U;
};

// Feeds `input` in pieces of next_size() bytes. `take(kept)` gets what has come and was not
// consumed yet, in memory of its own, so that a reader which looks behind it is found out; it says
// how much it has consumed, or nothing to end.
template <class NextSize, class Take>
void Feed(std::string_view input, NextSize next_size, Take take) {
  std::string kept;
  for (size_t fed = 0; fed < input.size();) {
    const size_t size = std::min<size_t>(next_size(), input.size() - fed);
    kept = std::string(kept).append(input.substr(fed, size));
    fed += size;
    const std::optional<size_t> consumed = take(kept);
    if (!consumed) {
      return;
    }
    Require(*consumed <= kept.size());
    kept.erase(0, *consumed);
  }
}

// The outcome of parse(next_size) for all of the input at once, for pieces and for single bytes,
// which must be the same.
template <class Parse>
auto SameInPieces(std::string_view input, Parse parse) {
  const auto whole = parse([&input] { return input.size(); });
  Pieces pieces(input);
  Require(parse([&pieces] { return pieces.Next(); }) == whole);
  Require(parse([] { return size_t{1}; }) == whole);
  return whole;
}

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace weir::fuzz
