// A limiter's own options, its most frequent keys, and the counters that came later.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/weir.h"

#include "expect.h"

static weir_limiter_options own_options(void) {
  weir_limiter_options own = {0};
  own.struct_size = sizeof own;
  return own;
}

static weir_stats stats_of(const weir_limiter* limiter) {
  weir_stats stats = {0};
  stats.struct_size = sizeof stats;
  EXPECT(weir_limiter_stats(limiter, &stats) == WEIR_OK);
  return stats;
}

static int create(const weir_limiter_options* own) {
  const weir_store_options options = small();
  weir_limiter* limiter = NULL;
  const int status = weir_limiter_create_with("10/min burst 5", NULL, &options, own, &limiter);
  EXPECT((status == WEIR_OK) == (limiter != NULL));
  weir_limiter_free(limiter);
  return status;
}

static void test_bad_options(void) {
  weir_limiter_options own = own_options();
  EXPECT(create(&own) == WEIR_OK);
  EXPECT(create(NULL) == WEIR_OK);
  own.struct_size = sizeof own - 1;
  EXPECT_INVALID(create(&own), "limiter_options.struct_size");
  own = own_options();
  own.precision = 2;
  EXPECT_INVALID(create(&own), "options.precision");
  own = own_options();
  own.top_keys = 4097;
  EXPECT_INVALID(create(&own), "top_keys:");
  own = own_options();
  own.top_keys_sample = 3;
  EXPECT_INVALID(create(&own), "top_keys_sample:");
  own = own_options();
  own.reserved = 1;
  EXPECT_INVALID(create(&own), "options.reserved");

  struct {
    weir_limiter_options known;
    uint64_t added;
  } later = {own_options(), 0};
  later.known.struct_size = sizeof later;
  EXPECT(create(&later.known) == WEIR_OK);
  later.added = 1;
  EXPECT_INVALID(create(&later.known), "options:");

  // A store has options of its own.
  const weir_store_options options = small();
  weir_store* store = NULL;
  EXPECT(weir_store_create(&options, &store) == WEIR_OK);
  weir_limiter* limiter = NULL;
  own = own_options();
  EXPECT_INVALID(weir_limiter_create_with("1/h", store, &options, &own, &limiter), "options:");
  EXPECT(limiter == NULL);
  EXPECT(weir_limiter_create_with("1/h", store, NULL, &own, &limiter) == WEIR_OK);
  weir_limiter_free(limiter);
  weir_store_free(store);
}

static void test_top_keys(void) {
  const weir_store_options options = small();
  weir_limiter_options own = own_options();
  own.top_keys = 8;
  own.top_keys_sample = 1;
  weir_limiter* limiter = make_with("5/h fixed-window", &options, &own);
  char long_key[100];
  memset(long_key, 'x', sizeof long_key);
  for (int i = 0; i < 9; ++i) {
    weir_check(limiter, "often", 5, 1, NULL);
  }
  for (int i = 0; i < 3; ++i) {
    weir_check(limiter, long_key, sizeof long_key, 1, NULL);
  }
  weir_check(limiter, "once", 4, 1, NULL);

  weir_top_key top[8];
  EXPECT(weir_top_keys(limiter, top, 8) == 3);
  EXPECT(top[0].key_length == 5 && memcmp(top[0].key, "often", 5) == 0 && top[0].cut == 0);
  EXPECT(top[0].count == 9 && top[0].denied == 4 && top[0].error == 0);
  EXPECT(top[1].key_length == 64 && memcmp(top[1].key, long_key, 64) == 0 && top[1].cut == 1);
  EXPECT(top[1].count == 3 && top[1].denied == 0);
  memset(top, 0xff, sizeof top);
  EXPECT(weir_top_keys(limiter, top, 1) == 1);
  EXPECT(top[0].count == 9 && top[1].count == UINT64_MAX);  // no more than there is room for
  EXPECT(weir_top_keys(limiter, NULL, 0) == 0);
  EXPECT_INVALID(weir_top_keys(limiter, NULL, 1), "keys:");
  EXPECT_INVALID(weir_top_keys(NULL, top, 1), "limiter:");
  weir_limiter_free(limiter);

  limiter = make_with("5/h fixed-window", &options, NULL);
  weir_check(limiter, "often", 5, 1, NULL);
  EXPECT(weir_top_keys(limiter, top, 8) == 0);  // nothing is noted unless asked for
  weir_limiter_free(limiter);
}

static void test_sketch_precision(void) {
  weir_store_options options = small();
  options.sketch_percent = 25;
  weir_limiter_options own = own_options();
  own.precision = WEIR_PRECISION_SKETCH;
  weir_limiter* limiter = make_with("100/h fixed-window", &options, &own);
  weir_decision decision;
  EXPECT(weir_check(limiter, "few", 3, 1, &decision) == 1 && decision.basis == WEIR_BASIS_SKETCH);
  int admitted = 0;
  for (int i = 0; i < 200; ++i) {
    admitted += weir_check(limiter, "many", 4, 1, &decision);
  }
  EXPECT(admitted > 50 && admitted <= 100);
  EXPECT(decision.basis == WEIR_BASIS_STORE);
  const weir_stats stats = stats_of(limiter);
  EXPECT(stats.promotions == 1 && stats.live_slots == 1 && stats.records == 0);
  weir_limiter_free(limiter);
}

// The caller's struct ends where the first version's did.
static void test_stats_of_an_older_caller(void) {
  const weir_store_options options = small();
  weir_limiter* limiter = make_with("5/h", &options, NULL);
  weir_stats stats;
  memset(&stats, 0xff, sizeof stats);
  stats.struct_size = offsetof(weir_stats, records);
  EXPECT(weir_limiter_stats(limiter, &stats) == WEIR_OK);
  EXPECT(stats.budget_bytes == 1 << 20);
  EXPECT(stats.records == UINT64_MAX && stats.lease_units_returned == UINT64_MAX);
  weir_limiter_free(limiter);
}

static void* contend(void* limiter) {
  for (int i = 0; i < 200000; ++i) {
    weir_check(limiter, "hot", 3, 1, NULL);
  }
  return NULL;
}

// Two threads that contend for one key, until leases are out; or for as long as it takes to be sure
// that there are none.
static weir_stats contended(uint32_t hot_keys, int rounds) {
  weir_store_options options = small();
  options.hot_keys = hot_keys;
  weir_limiter* limiter = make_with("4000000000/min burst 4000000000", &options, NULL);
  weir_stats stats = stats_of(limiter);
  for (int i = 0; i < rounds && stats.leases == 0; ++i) {
    pthread_t threads[2];
    for (int t = 0; t < 2; ++t) {
      EXPECT(pthread_create(&threads[t], NULL, contend, limiter) == 0);
    }
    for (int t = 0; t < 2; ++t) {
      EXPECT(pthread_join(threads[t], NULL) == 0);
    }
    stats = stats_of(limiter);
  }
  weir_limiter_free(limiter);
  return stats;
}

static void test_hot_keys(void) {
  EXPECT(contended(WEIR_HOT_KEYS_PLAIN, 5).leases == 0);
  const weir_stats stats = contended(WEIR_HOT_KEYS_LEASED, 1000);
  EXPECT(stats.leases > 0);
  // A thread that ends gives back what is left.
  EXPECT(stats.leases_returned <= stats.leases);
  // Of a lease whose time is over nothing is left to give.
  EXPECT(stats.lease_units_returned == 0 || stats.leases_returned != 0);
}

int main(void) {
  test_bad_options();
  test_top_keys();
  test_sketch_precision();
  test_stats_of_an_older_caller();
  test_hot_keys();
  printf("limiter_options: %d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
