// WEIR_ASSERT: our own invariants, checked in debug and sanitizer builds only. Input from outside
// is never asserted: it is refused where it enters.
#pragma once

#include <cstdio>
#include <cstdlib>

#if !defined(NDEBUG)
#define WEIR_ASSERT(condition)                                                               \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: invariant broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
#else
#define WEIR_ASSERT(condition) \
  do {                         \
  } while (false)
#endif
