#include <stdio.h>

#include "weir/weir.h"

int main(void) {
  weir_limiter* limiter = NULL;
  if (weir_limiter_create("2/h burst 2", NULL, &limiter) != WEIR_OK) {
    puts(weir_last_error());
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    weir_decision decision;
    const int allowed = weir_check(limiter, "user:42", 7, 1, &decision);
    printf("%s remaining=%u\n", allowed == 1 ? "allowed" : "denied", decision.remaining);
  }
  weir_limiter_free(limiter);
  return 0;
}
