// One limit by key from C: cc basic.c $(pkg-config --cflags --libs weir-c)
#include <stdio.h>
#include <string.h>

#include "weir/weir.h"

int main(void) {
  weir_limiter* limiter = NULL;
  if (weir_limiter_create("5/s burst 3", NULL, &limiter) != WEIR_OK) {
    puts(weir_last_error());
    return 1;
  }
  const char* user = "user:42";
  for (int i = 1; i <= 5; ++i) {
    weir_decision decision;
    if (weir_check(limiter, user, strlen(user), 1, &decision) == 1) {
      printf("request %d: allowed, %u left\n", i, decision.remaining);
    } else {
      printf("request %d: denied, try again in %lld ms\n", i,
             (long long)(decision.retry_after_ns / 1000000));
    }
  }
  weir_limiter_free(limiter);
  return 0;
}
