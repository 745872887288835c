// Every function of weir.h from C99, with good and bad arguments. Quotas are by the hour, so that
// nothing comes back while the test runs; what must come back is asked for at a later now_ns.
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "weir/weir.h"

#include "expect.h"

static const int64_t kSecond = 1000000000;

static weir_limiter* make(const char* quota) {
  const weir_store_options options = small();
  return make_with(quota, &options, NULL);
}

static void test_names(void) {
  EXPECT(weir_abi_version() == WEIR_ABI_VERSION);
  EXPECT(strchr(weir_version(), '.') != NULL);
  EXPECT(strcmp(weir_status_name(WEIR_OK), "ok") == 0);
  EXPECT(strcmp(weir_status_name(WEIR_INTERNAL), "internal") == 0);
  EXPECT(strcmp(weir_status_name(-6), "unknown") == 0);
  EXPECT(strcmp(weir_status_name(1), "unknown") == 0);
  EXPECT(strcmp(weir_status_name(INT_MIN), "unknown") == 0);
  EXPECT(strcmp(weir_outcome_name(WEIR_REFUSED), "refused") == 0);
  EXPECT(strcmp(weir_outcome_name(3), "unknown") == 0);
  EXPECT(strcmp(weir_outcome_name(-1), "unknown") == 0);
  EXPECT(strcmp(weir_problem_name(WEIR_PROBLEM_NOW_TOO_FAR), "now_too_far") == 0);
  EXPECT(strcmp(weir_problem_name(WEIR_PROBLEM_MAX_WAIT_TOO_SHORT), "max_wait_too_short") == 0);
  EXPECT(strstr(weir_problem_text(WEIR_PROBLEM_MAX_WAIT_TOO_SHORT), "max_wait_ns:") != NULL);
  EXPECT(strcmp(weir_problem_name(WEIR_PROBLEM_NO_RECORDS), "no_records") == 0);
  EXPECT(strncmp(weir_problem_text(WEIR_PROBLEM_NO_RECORDS), "record_percent:", 15) == 0);
  EXPECT(strcmp(weir_problem_name(11), "unknown") == 0);
  EXPECT(strncmp(weir_problem_text(WEIR_PROBLEM_KEY_EMPTY), "key:", 4) == 0);
  EXPECT(strcmp(weir_basis_name(WEIR_BASIS_CLOSED), "closed") == 0);
  EXPECT(strcmp(weir_basis_name(WEIR_BASIS_LEASE), "lease") == 0);
  EXPECT(strcmp(weir_basis_name(5), "unknown") == 0);
}

static void test_store_options(void) {
  weir_store* store = NULL;
  EXPECT_INVALID(weir_store_create(NULL, NULL), "store:");

  weir_store_options options = small();
  options.struct_size =
      offsetof(weir_store_options, record_percent) - 1;  // the first version less 1
  EXPECT_INVALID(weir_store_create(&options, &store), "store_options.struct_size");
  options = small();
  options.overflow = 3;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.overflow");
  options = small();
  options.keys = 2;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.keys");
  options = small();
  options.huge_pages = 2;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.huge_pages");
  options = small();
  options.reserved = 1;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.reserved");
  options = small();
  options.budget_bytes = 1;
  EXPECT_INVALID(weir_store_create(&options, &store), "budget_bytes");
  options.budget_bytes = UINT64_MAX;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.budget_bytes");
  options = small();
  options.record_percent = 101;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.record_percent");
  options = small();
  options.wide_percent = 101;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.wide_percent");
  options = small();
  options.sketch_percent = 51;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.sketch_percent");
  options = small();
  options.hot_keys = 2;
  EXPECT_INVALID(weir_store_create(&options, &store), "options.hot_keys");
  options = small();
  options.max_skew_ns = -1;
  EXPECT_INVALID(weir_store_create(&options, &store), "max_skew");
  EXPECT(store == NULL);

  // A caller of a later version: fields that are unknown here may only be at their default.
  struct {
    weir_store_options known;
    uint64_t added;
  } later = {small(), 0};
  later.known.struct_size = sizeof later;
  EXPECT(weir_store_create(&later.known, &store) == WEIR_OK);
  weir_store_free(store);
  later.added = 1;
  EXPECT_INVALID(weir_store_create(&later.known, &store), "options:");
  EXPECT(store == NULL);
  weir_store_free(NULL);
}

static void test_store(void) {
  weir_store_options options = small();
  options.huge_pages = WEIR_HUGE_PAGES_NEVER;
  options.keys = WEIR_KEYS_BINARY;
  weir_store* store = NULL;
  EXPECT(weir_store_create(&options, &store) == WEIR_OK);
  weir_limiter* minute = NULL;
  weir_limiter* hour = NULL;
  EXPECT(weir_limiter_create_on("3/h burst 3", store, &minute) == WEIR_OK);
  EXPECT(weir_limiter_create_on("5/h burst 5", store, &hour) == WEIR_OK);
  weir_limiter* none = minute;
  EXPECT_INVALID(weir_limiter_create_on("3/h", NULL, &none), "store:");
  EXPECT(none == NULL);  // A failed create leaves no handle.
  EXPECT_INVALID(weir_limiter_create_on("3/h", store, NULL), "limiter:");

  // Binary keys: what follows the NUL counts.
  EXPECT(weir_check(minute, "a\0b", 3, 3, NULL) == 1);
  EXPECT(weir_check(minute, "a\0c", 3, 3, NULL) == 1);
  EXPECT(weir_check(minute, "a\0b", 3, 1, NULL) == 0);
  EXPECT(weir_check(minute, "", 0, 1, NULL) == 0);

  weir_stats stats = {0};
  EXPECT_INVALID(weir_store_stats(store, &stats), "stats.struct_size");
  stats.struct_size = sizeof stats;
  EXPECT(weir_store_stats(store, &stats) == WEIR_OK);
  EXPECT(stats.struct_size == sizeof stats);
  EXPECT(stats.decisions == 3 && stats.denials == 1 && stats.refusals == 1);
  EXPECT(stats.budget_bytes == 1 << 20 && stats.live_slots == 2 && stats.huge_pages == 0);
  EXPECT_INVALID(weir_store_stats(NULL, &stats), "store:");
  EXPECT_INVALID(weir_store_stats(store, NULL), "stats:");
  EXPECT(weir_store_maintain(store) == WEIR_OK);
  EXPECT_INVALID(weir_store_maintain(NULL), "store:");

  // The limiter keeps its store.
  weir_store_free(store);
  EXPECT(weir_check(minute, "later", 5, 1, NULL) == 1);
  weir_limiter_free(hour);
  weir_limiter_free(minute);
}

static void test_overflow(void) {
  weir_store_options options = small();
  options.budget_bytes = 64 << 10;
  options.overflow = WEIR_OVERFLOW_DENY;
  weir_limiter* limiter = NULL;
  EXPECT(weir_limiter_create("1/h burst 1", &options, &limiter) == WEIR_OK);
  int closed = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    char key[16];
    const int length = snprintf(key, sizeof key, "%u", i);
    weir_decision decision;
    weir_check(limiter, key, (size_t)length, 1, &decision);
    closed += decision.basis == WEIR_BASIS_CLOSED && !decision.allowed;
  }
  EXPECT(closed > 0);
  weir_stats stats = {0};
  stats.struct_size = sizeof stats;
  EXPECT(weir_limiter_stats(limiter, &stats) == WEIR_OK);
  EXPECT(stats.overflow == (uint64_t)closed);
  EXPECT_INVALID(weir_limiter_stats(NULL, &stats), "limiter:");
  EXPECT_INVALID(weir_limiter_stats(limiter, NULL), "stats:");
  weir_limiter_free(limiter);
}

static void test_limiter(void) {
  weir_limiter* limiter = NULL;
  EXPECT_INVALID(weir_limiter_create("3/h", NULL, NULL), "limiter:");
  EXPECT_INVALID(weir_limiter_create(NULL, NULL, &limiter), "quota:");
  EXPECT(weir_limiter_create("three an hour", NULL, &limiter) == WEIR_INVALID_ARGUMENT);
  EXPECT(strlen(weir_last_error()) > 10);
  char endless[2000];  // A message about it must be cut, and end.
  memset(endless, 'x', sizeof endless);
  endless[sizeof endless - 1] = '\0';
  EXPECT(weir_limiter_create(endless, NULL, &limiter) == WEIR_INVALID_ARGUMENT);
  EXPECT(strlen(weir_last_error()) < 512);
  EXPECT(limiter == NULL);
  weir_limiter_free(NULL);

  limiter = make("3/h burst 3");
  char text[64] = "";
  const int length = weir_limiter_quota(limiter, text, sizeof text);
  EXPECT(length == (int)strlen(text) && length > 0);
  char cut[3];
  EXPECT(weir_limiter_quota(limiter, cut, sizeof cut) == length);
  EXPECT(strncmp(cut, text, 2) == 0 && cut[2] == '\0');
  EXPECT(weir_limiter_quota(limiter, NULL, 0) == length);
  EXPECT_INVALID(weir_limiter_quota(limiter, NULL, 1), "text:");
  EXPECT_INVALID(weir_limiter_quota(NULL, text, sizeof text), "limiter:");

  // What has been taken stays taken.
  EXPECT(weir_check(limiter, "k", 1, 3, NULL) == 1);
  EXPECT(weir_limiter_update(limiter, "30/h burst 30") == WEIR_OK);
  weir_decision decision;
  EXPECT(weir_check(limiter, "k", 1, 0, &decision) == 1);
  EXPECT(decision.limit == 30 && decision.remaining < 30 && decision.remaining >= 27);
  EXPECT_INVALID(weir_limiter_update(NULL, "3/h"), "limiter:");
  EXPECT_INVALID(weir_limiter_update(limiter, NULL), "quota:");
  EXPECT(weir_limiter_update(limiter, "") == WEIR_INVALID_ARGUMENT);
  weir_limiter_free(limiter);
}

static void test_check(void) {
  weir_limiter* limiter = make("2/h burst 2");
  weir_decision decision;
  EXPECT(weir_check(limiter, "k", 1, 1, &decision) == 1);
  EXPECT(decision.allowed == 1 && decision.outcome == WEIR_ALLOWED);
  EXPECT(decision.limit == 2 && decision.remaining == 1 && decision.charged == 1);
  EXPECT(decision.basis == WEIR_BASIS_STORE && decision.problem == WEIR_PROBLEM_NONE);
  EXPECT(decision.reset_after_ns > 1790 * kSecond && decision.reset_after_ns <= 1800 * kSecond);
  EXPECT(weir_check(limiter, "k", 1, 1, NULL) == 1);
  EXPECT(weir_check(limiter, "k", 1, 1, &decision) == 0);
  EXPECT(decision.allowed == 0 && decision.outcome == WEIR_DENIED && decision.charged == 0);
  EXPECT(decision.retry_after_ns > 1790 * kSecond && decision.retry_after_ns <= 1800 * kSecond);
  // The length says where a key ends.
  EXPECT(weir_check(limiter, "kk", 2, 1, NULL) == 1);

  // Questions that have no answer.
  const char* nul = "a\0b";
  static char long_key[65536];
  memset(long_key, 'x', sizeof long_key);
  const struct {
    const char* key;
    size_t length;
    uint64_t cost;
    int problem;
  } refused[] = {
      {"k", 1, 3, WEIR_PROBLEM_COST_ABOVE_BURST},
      {"k", 1, (uint64_t)-1, WEIR_PROBLEM_COST_TOO_LARGE},
      {NULL, 0, 1, WEIR_PROBLEM_KEY_EMPTY},
      {long_key, sizeof long_key, 1, WEIR_PROBLEM_KEY_TOO_LONG},
      {nul, 3, 1, WEIR_PROBLEM_KEY_HAS_NUL},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    EXPECT(weir_check(limiter, refused[i].key, refused[i].length, refused[i].cost, &decision) == 0);
    EXPECT(decision.outcome == WEIR_REFUSED && decision.problem == refused[i].problem);
    EXPECT(decision.allowed == 0 && decision.charged == 0);
  }

  // Calls that are wrong; whoever does not look at the status is not let through.
  memset(&decision, 0xff, sizeof decision);
  EXPECT_INVALID(weir_check(NULL, "k", 1, 1, &decision), "limiter:");
  EXPECT(decision.allowed == 0 && decision.outcome == WEIR_REFUSED && decision.remaining == 0);
  EXPECT_INVALID(weir_check(limiter, NULL, 1, 1, &decision), "key:");
  EXPECT_INVALID(weir_check(NULL, "k", 1, 1, NULL), "limiter:");
  weir_limiter_free(limiter);
}

static void test_time(void) {
  weir_store_options options = small();
  options.max_skew_ns = 600 * kSecond;
  weir_limiter* limiter = NULL;
  EXPECT(weir_limiter_create("1/min burst 1", &options, &limiter) == WEIR_OK);
  int64_t now = 0;
  EXPECT(weir_now(limiter, &now) == WEIR_OK);
  EXPECT_INVALID(weir_now(NULL, &now), "limiter:");
  EXPECT_INVALID(weir_now(limiter, NULL), "now_ns:");

  weir_decision decision;
  EXPECT(weir_check_at(limiter, "k", 1, 1, now, &decision) == 1);
  EXPECT(weir_check_at(limiter, "k", 1, 1, now, &decision) == 0);
  EXPECT(decision.retry_after_ns == 60 * kSecond);
  EXPECT(weir_check_at(limiter, "k", 1, 1, now + 59 * kSecond, NULL) == 0);
  EXPECT(weir_check_at(limiter, "k", 1, 1, now + 60 * kSecond, NULL) == 1);
  EXPECT(weir_check_at(limiter, "k", 1, 1, now + 700 * kSecond, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_NOW_TOO_FAR);
  EXPECT_INVALID(weir_check_at(NULL, "k", 1, 1, now, &decision), "limiter:");
  EXPECT_INVALID(weir_check_at(limiter, NULL, 1, 1, now, &decision), "key:");

  weir_receipt receipt;
  EXPECT(weir_charge_at(limiter, "c", 1, 1, WEIR_ADMIT, now, &receipt, &decision) == 1);
  EXPECT(weir_charge_at(limiter, "c", 1, 1, WEIR_ADMIT, now + 60 * kSecond, NULL, NULL) == 1);
  EXPECT_INVALID(weir_charge_at(NULL, "c", 1, 1, WEIR_ADMIT, now, NULL, NULL), "limiter:");
  weir_limiter_free(limiter);
}

static void test_queue(void) {
  weir_limiter* limiter = make("1/min burst 4 queue");
  weir_decision decision;
  weir_receipt receipts[3];
  for (int i = 0; i < 3; ++i) {
    EXPECT(weir_charge(limiter, "k", 1, 1, WEIR_ADMIT, &receipts[i], &decision) == 1);
    // The clock runs meanwhile.
    EXPECT(decision.retry_after_ns <= i * 60 * kSecond);
    EXPECT(decision.retry_after_ns > i * 60 * kSecond - 10 * kSecond);
  }
  EXPECT(weir_charge_within(limiter, "k", 1, 1, WEIR_ADMIT, 60 * kSecond, &receipts[0],
                            &decision) == 0);
  EXPECT(decision.outcome == WEIR_DENIED && decision.charged == 0);
  EXPECT(decision.retry_after_ns > 100 * kSecond && decision.retry_after_ns <= 120 * kSecond);
  EXPECT(weir_give_back(limiter, &receipts[2]) == 1);
  EXPECT(weir_charge_within(limiter, "k", 1, 1, WEIR_ADMIT, 120 * kSecond, NULL, &decision) == 1);
  EXPECT(weir_charge_within(limiter, "k", 1, 3, WEIR_ADMIT, 60 * kSecond, NULL, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_MAX_WAIT_TOO_SHORT);
  EXPECT_INVALID(weir_charge_within(limiter, "k", 1, 1, WEIR_ADMIT, -1, &receipts[0], &decision),
                 "max_wait_ns:");
  EXPECT(decision.allowed == 0 && weir_give_back(limiter, &receipts[0]) == 0);
  EXPECT_INVALID(weir_charge_within(NULL, "k", 1, 1, WEIR_ADMIT, 0, NULL, NULL), "limiter:");
  weir_limiter_free(limiter);
}

static void test_many(void) {
  weir_limiter* limiter = make("2/h burst 2");
  enum { kCount = 150 };  // More than two pieces of 64.
  char text[kCount][8];
  weir_key keys[kCount];
  weir_decision decisions[kCount];
  for (int i = 0; i < kCount; ++i) {
    const int length = snprintf(text[i], sizeof text[i], "k%d", i % 50);  // each three times
    keys[i].bytes = text[i];
    keys[i].length = (size_t)length;
  }
  EXPECT(weir_check_many(limiter, keys, kCount, 1, decisions) == WEIR_OK);
  for (int i = 0; i < kCount; ++i) {
    EXPECT(decisions[i].allowed == (i < 100));
  }
  EXPECT(weir_check_many(limiter, NULL, 0, 1, NULL) == WEIR_OK);
  EXPECT_INVALID(weir_check_many(limiter, keys, 1, 1, NULL), "decisions:");
  memset(decisions, 0xff, sizeof decisions);
  EXPECT_INVALID(weir_check_many(NULL, keys, kCount, 1, decisions), "limiter:");
  EXPECT(decisions[0].allowed == 0 && decisions[kCount - 1].allowed == 0);
  EXPECT_INVALID(weir_check_many(limiter, NULL, 1, 1, decisions), "keys:");
  // One bad key, and none is charged.
  keys[0].bytes = "fresh";
  keys[0].length = 5;
  keys[1].bytes = NULL;
  EXPECT_INVALID(weir_check_many(limiter, keys, 2, 1, decisions), "key:");
  EXPECT(weir_check(limiter, "fresh", 5, 2, NULL) == 1);
  weir_limiter_free(limiter);
}

static void test_charge(void) {
  weir_limiter* limiter = make("10/h fixed-window from first-hit");
  weir_receipt receipt;
  weir_decision decision;
  EXPECT(weir_charge(limiter, "k", 1, 6, WEIR_ADMIT, &receipt, &decision) == 1);
  EXPECT(decision.charged == 6);
  EXPECT(weir_give_back(limiter, &receipt) == 6);
  EXPECT(weir_give_back(limiter, &receipt) == 0);  // once
  EXPECT(weir_check(limiter, "k", 1, 0, &decision) == 1 && decision.remaining == 10);

  EXPECT(weir_charge(limiter, "anew", 4, 6, WEIR_ADMIT, &receipt, &decision) == 1);
  EXPECT(weir_reset(limiter, "anew", 4) == 1);
  EXPECT(weir_give_back(limiter, &receipt) == 0);
  EXPECT(weir_check(limiter, "anew", 4, 0, &decision) == 1 && decision.remaining == 10);
  EXPECT(weir_reset(limiter, "never seen", 10) == 0);
  EXPECT_INVALID(weir_reset(limiter, "", 0), "key:");
  EXPECT_INVALID(weir_reset(NULL, "k", 1), "limiter:");

  EXPECT(weir_charge(limiter, "k", 1, 4, WEIR_DRY_RUN, NULL, &decision) == 1);
  EXPECT(decision.charged == 0 && decision.remaining >= 4);
  EXPECT(weir_take_up_to(limiter, "k", 1, 8, &decision) == 1 && decision.charged == 8);
  EXPECT(weir_charge(limiter, "k", 1, 8, WEIR_UP_TO, NULL, &decision) >= 0);
  EXPECT(decision.charged == 2);
  EXPECT(weir_charge(limiter, "k", 1, 5, WEIR_COUNT_ALWAYS, NULL, &decision) == 0);
  EXPECT(decision.charged == 5 && decision.outcome == WEIR_DENIED);

  const weir_receipt nothing = {{0}};
  memset(&receipt, 0xff, sizeof receipt);
  EXPECT_INVALID(weir_charge(limiter, "k", 1, 1, 4, &receipt, &decision), "mode:");
  EXPECT(memcmp(&receipt, &nothing, sizeof receipt) == 0 && decision.allowed == 0);
  EXPECT_INVALID(weir_charge(limiter, "k", 1, 1, -1, NULL, NULL), "mode:");
  EXPECT_INVALID(weir_charge(NULL, "k", 1, 1, WEIR_ADMIT, NULL, NULL), "limiter:");
  EXPECT_INVALID(weir_charge(limiter, NULL, 1, 1, WEIR_ADMIT, NULL, NULL), "key:");
  EXPECT_INVALID(weir_take_up_to(NULL, "k", 1, 1, NULL), "limiter:");
  EXPECT_INVALID(weir_give_back(NULL, &receipt), "limiter:");
  EXPECT_INVALID(weir_give_back(limiter, NULL), "receipt:");
  weir_limiter_free(limiter);
}

static void test_holds(void) {
  weir_limiter* limiter = make("concurrency 2 lease 1h");
  weir_hold first;
  weir_hold second;
  weir_hold third;
  weir_decision decision;
  EXPECT(weir_acquire(limiter, "k", 1, 1, 0, &first, &decision) == 1);
  EXPECT(decision.remaining == 1 && first.fence != 0);
  EXPECT(weir_acquire(limiter, "k", 1, 1, 60 * kSecond, &second, NULL) == 1);
  EXPECT(second.fence > first.fence);
  EXPECT(weir_acquire(limiter, "k", 1, 1, 0, &third, &decision) == 0);
  EXPECT(third.fence == 0 && decision.outcome == WEIR_DENIED);
  EXPECT(decision.retry_after_ns > 58 * kSecond && decision.retry_after_ns <= 61 * kSecond);
  EXPECT(weir_renew(limiter, &second, 0) == 1);
  EXPECT(weir_release(limiter, &first) == 1);
  EXPECT(weir_release(limiter, &first) == 0);
  EXPECT(weir_renew(limiter, &first, 0) == 0);
  EXPECT(weir_acquire(limiter, "k", 1, 1, 0, &third, NULL) == 1);

  EXPECT(weir_acquire(limiter, "k", 1, 1, 1, &third, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_LEASE_OUT_OF_RANGE);
  EXPECT_INVALID(weir_renew(limiter, &second, 1), "lease_ns:");
  EXPECT_INVALID(weir_acquire(NULL, "k", 1, 1, 0, &third, NULL), "limiter:");
  EXPECT_INVALID(weir_acquire(limiter, NULL, 1, 1, 0, &third, NULL), "key:");
  EXPECT_INVALID(weir_acquire(limiter, "k", 1, 1, 0, NULL, NULL), "hold:");
  EXPECT_INVALID(weir_release(NULL, &first), "limiter:");
  EXPECT_INVALID(weir_release(limiter, NULL), "hold:");
  EXPECT_INVALID(weir_renew(limiter, NULL, 0), "hold:");
  weir_limiter_free(limiter);
  limiter = make("10/h");
  EXPECT(weir_acquire(limiter, "k", 1, 1, 0, &third, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_WRONG_QUOTA);
  weir_limiter_free(limiter);
}

static void test_reservations(void) {
  weir_store_options options = small();
  options.record_percent = 20;
  weir_limiter* limiter = NULL;
  EXPECT(weir_limiter_create("100/day fixed-window", &options, &limiter) == WEIR_OK);
  uint64_t id = 0;
  weir_decision decision;
  weir_settlement settlement;
  EXPECT(weir_reserve(limiter, "k", 1, 40, 0, &id, &decision) == 1);
  EXPECT(id != 0 && decision.remaining == 60);
  EXPECT(weir_settle(limiter, id, 10, &settlement) == 1);
  EXPECT(settlement.outcome == WEIR_SETTLED && settlement.given_back == 30);
  EXPECT(settlement.decision.remaining == 90);
  EXPECT(weir_settle(limiter, id, 99, &settlement) == 0);
  EXPECT(settlement.outcome == WEIR_SETTLED_BEFORE && settlement.actual == 10);
  EXPECT(weir_reserve(limiter, "k", 1, 40, 60 * kSecond, &id, NULL) == 1);
  EXPECT(weir_settle(limiter, id, UINT64_MAX, &settlement) == 0);
  EXPECT(settlement.outcome == WEIR_SETTLED_REFUSED);
  EXPECT(settlement.decision.problem == WEIR_PROBLEM_COST_TOO_LARGE);
  EXPECT(weir_settle(limiter, id, 100, &settlement) == 1);
  EXPECT(settlement.charged == 60 && settlement.decision.allowed == 0);
  EXPECT(weir_reserve(limiter, "k", 1, 1, 0, &id, NULL) == 0 && id == 0);
  EXPECT(weir_settle(limiter, 12345, 1, NULL) == 0);

  EXPECT(weir_reserve(limiter, "k", 1, 1, 1, &id, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_LEASE_OUT_OF_RANGE);
  EXPECT_INVALID(weir_reserve(NULL, "k", 1, 1, 0, &id, NULL), "limiter:");
  EXPECT_INVALID(weir_reserve(limiter, NULL, 1, 1, 0, &id, NULL), "key:");
  EXPECT_INVALID(weir_reserve(limiter, "k", 1, 1, 0, NULL, NULL), "reservation:");
  EXPECT_INVALID(weir_settle(NULL, id, 1, &settlement), "limiter:");
  EXPECT(settlement.outcome == WEIR_SETTLED_REFUSED);
  weir_limiter_free(limiter);
  limiter = make("10/h");
  EXPECT(weir_reserve(limiter, "k", 1, 1, 0, &id, &decision) == 0);
  EXPECT(decision.problem == WEIR_PROBLEM_NO_RECORDS);
  weir_limiter_free(limiter);
}

static void test_check_all(void) {
  weir_store_options options = small();
  options.record_percent = 30;
  options.wide_percent = 50;
  weir_store* store = NULL;
  weir_limiter* at_once = NULL;
  weir_limiter* rate = NULL;
  EXPECT(weir_store_create(&options, &store) == WEIR_OK);
  EXPECT(weir_limiter_create_on("concurrency 2 lease 1h", store, &at_once) == WEIR_OK);
  EXPECT(weir_limiter_create_on("5/day fixed-window", store, &rate) == WEIR_OK);
  weir_part parts[2] = {{at_once, {"k", 1}, 1, WEIR_ADMIT, 0}, {rate, {"k", 1}, 2, WEIR_ADMIT, 0}};
  weir_decision decisions[2];
  weir_receipt receipts[2];
  size_t deciding = 9;
  EXPECT(weir_check_all(parts, 2, decisions, receipts, &deciding) == 1);
  EXPECT(decisions[0].remaining == 1 && decisions[1].remaining == 3);
  EXPECT(weir_check_all(parts, 2, decisions, NULL, NULL) == 1);
  EXPECT(weir_check_all(parts, 2, decisions, NULL, &deciding) == 0);
  EXPECT(decisions[1].remaining == 1);
  EXPECT(weir_give_back(at_once, &receipts[0]) == 1);
  EXPECT(weir_check_all(parts, 2, decisions, receipts, &deciding) == 0);
  EXPECT(deciding == 1);
  EXPECT(weir_check(at_once, "k", 1, 0, &decisions[0]) == 1 && decisions[0].remaining == 1);
  EXPECT(weir_check_all(NULL, 0, NULL, NULL, NULL) == 1);

  EXPECT_INVALID(weir_check_all(NULL, 2, decisions, NULL, NULL), "parts:");
  EXPECT_INVALID(weir_check_all(parts, 2, NULL, NULL, NULL), "decisions:");
  parts[1].mode = WEIR_UP_TO;
  EXPECT_INVALID(weir_check_all(parts, 2, decisions, NULL, NULL), "parts.mode:");
  parts[1].mode = WEIR_ADMIT;
  parts[1].reserved = 1;
  EXPECT_INVALID(weir_check_all(parts, 2, decisions, NULL, NULL), "parts.reserved:");
  parts[1].reserved = 0;
  parts[1].limiter = NULL;
  EXPECT_INVALID(weir_check_all(parts, 2, decisions, receipts, NULL), "limiter:");
  EXPECT(decisions[0].allowed == 0 && decisions[0].outcome == WEIR_REFUSED);
  weir_decision many[65];
  weir_part all[65];
  memset(all, 0, sizeof all);
  EXPECT_INVALID(weir_check_all(all, 65, many, NULL, NULL), "count:");
  weir_limiter_free(rate);
  weir_limiter_free(at_once);
  weir_store_free(store);
}

enum { kThreads = 4, kChecks = 20000, kLimit = 30000 };

struct worker {
  pthread_t thread;
  weir_limiter* limiter;
  int allowed;
  int own_error;
};

static void* work(void* argument) {
  struct worker* worker = argument;
  // Nobody else's error is seen here.
  worker->own_error = strcmp(weir_last_error(), "") == 0;
  for (int i = 0; i < kChecks; ++i) {
    worker->allowed += weir_check(worker->limiter, "shared", 6, 1, NULL);
  }
  return NULL;
}

static void test_threads(void) {
  weir_limiter* limiter = make("30000/day fixed-window from first-hit");
  EXPECT_INVALID(weir_limiter_update(limiter, NULL), "quota:");
  struct worker workers[kThreads];
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < kThreads; ++i) {
    workers[i].limiter = limiter;
    EXPECT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  int allowed = 0;
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(pthread_join(workers[i].thread, NULL) == 0);
    EXPECT(workers[i].own_error);
    allowed += workers[i].allowed;
  }
  EXPECT(allowed == kLimit);
  weir_limiter_free(limiter);
}

int main(void) {
  EXPECT(strcmp(weir_last_error(), "") == 0);
  test_names();
  test_store_options();
  test_store();
  test_overflow();
  test_limiter();
  test_check();
  test_time();
  test_queue();
  test_many();
  test_charge();
  test_holds();
  test_reservations();
  test_check_all();
  test_threads();
  printf("c_api: %d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
