// For engines without code that decides in vectors (eight_avx512.h and single_avx512.h are such).
#pragma once

namespace weir::store {

template <class Layout, class Algo>
struct NoEights {
  static constexpr bool kHashes = false;
  static constexpr bool kDecides = false;
  struct Question {};
  struct Found {};
};

template <class Layout, class Algo>
struct NoSingle {
  static constexpr bool kDecides = false;
};

}  // namespace weir::store
