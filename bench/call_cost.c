// What a call costs from C: prints "<case> <ns>" lines for bench/call_cost.py.
#define _POSIX_C_SOURCE 199309L  // clock_gettime
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir/weir.h"

enum { kKeys = 1000, kCalls = 2000000, kRuns = 5, kBatch = 100 };

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static char text[kKeys][24];
static weir_key keys[kKeys];

static void check_each(weir_limiter* limiter) {
  for (int i = 0; i < kCalls; ++i) {
    weir_decision decision;
    const weir_key* key = &keys[i % kKeys];
    if (weir_check(limiter, key->bytes, key->length, 1, &decision) != 1) {
      exit(1);
    }
  }
}

static void check_batches(weir_limiter* limiter) {
  weir_decision decisions[kBatch];
  for (int i = 0; i < kCalls; i += kBatch) {
    if (weir_check_many(limiter, &keys[i % kKeys], kBatch, 1, decisions) != WEIR_OK) {
      exit(1);
    }
  }
}

// The best run counts: on a shared machine a disturbance only ever lengthens one.
static void measure(const char* name, weir_limiter* limiter, void (*work)(weir_limiter*)) {
  double best = 1e300;
  for (int run = 0; run < kRuns; ++run) {
    const double began = now_ns();
    work(limiter);
    const double each = (now_ns() - began) / kCalls;
    best = each < best ? each : best;
  }
  printf("%s %.1f\n", name, best);
}

int main(void) {
  for (int i = 0; i < kKeys; ++i) {
    keys[i].bytes = text[i];
    keys[i].length = (size_t)snprintf(text[i], sizeof text[i], "user:%d", i);
  }
  weir_limiter* limiter = NULL;
  if (weir_limiter_create("1000000/s burst 4000000000", NULL, &limiter) != WEIR_OK) {
    puts(weir_last_error());
    return 1;
  }
  measure("weir_check", limiter, check_each);
  measure("weir_check_many", limiter, check_batches);
  weir_limiter_free(limiter);
  return 0;
}
