// For engines without code that decides eight keys at once (eight_avx512.h has some).
#pragma once

namespace weir::store {

template <class Layout, class Algo>
struct NoEights {
  static constexpr bool kHashes = false;
  static constexpr bool kDecides = false;
  struct Question {};
  struct Found {};
};

}  // namespace weir::store
