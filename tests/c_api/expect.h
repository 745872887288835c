// What the C tests share: expectations, and a small store.
#ifndef WEIR_TESTS_EXPECT_H
#define WEIR_TESTS_EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/weir.h"

static int failures = 0;

#define EXPECT(condition)                                                                        \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, weir_last_error()); \
      ++failures;                                                                                \
    }                                                                                            \
  } while (0)

// The call fails for its arguments, and the message begins with the argument's name.
#define EXPECT_INVALID(call, argument)                                   \
  do {                                                                   \
    EXPECT((call) == WEIR_INVALID_ARGUMENT);                             \
    EXPECT(strncmp(weir_last_error(), argument, strlen(argument)) == 0); \
  } while (0)

static weir_store_options small(void) {
  weir_store_options options = {0};
  options.struct_size = sizeof options;
  options.budget_bytes = 1 << 20;
  return options;
}

static weir_limiter* make_with(const char* quota, const weir_store_options* options,
                               const weir_limiter_options* own) {
  weir_limiter* limiter = NULL;
  if (weir_limiter_create_with(quota, NULL, options, own, &limiter) != WEIR_OK) {
    printf("%s: %s\n", quota, weir_last_error());
    exit(1);
  }
  return limiter;
}

#endif  // WEIR_TESTS_EXPECT_H
