// weir for C, and for every language that can call C. `man 3 weir`; docs/guide/bindings.md.
//
//   weir_limiter *limiter;
//   if (weir_limiter_create("100/min burst 20", NULL, &limiter) != WEIR_OK)
//     return fail(weir_last_error());
//   weir_decision decision;
//   if (weir_check(limiter, key, strlen(key), 1, &decision) != 1)
//     return too_many_requests(decision.retry_after_ns);
//
// Answers. Every int is 0 or more when the call was done, and a negative weir_status when it was
// not; weir_last_error() then names the argument and what is allowed. A check answers 1 (allowed)
// or 0 (denied, or refused because of a weir_problem, which is about the request and not the
// program). Where a decision or receipt is asked for, it is written in every case: after an error
// it is one that allows nothing and gives nothing back. No call throws or ends the program.
//
// Threads. Any thread may call anything at any time, on the same handles too, except that freeing a
// handle must be the last call on it. Errors are kept for each thread by itself. Checks allocate
// nothing. Once a key has been seen they take no lock, but for keys that threads contend for and
// for what is kept in records (sliding logs, sliced windows, holds, reservations): these hold a
// spin lock, shared by a few keys, for each decision.
//
// fork. The child has a copy of the state, which counts by itself from then on: a limit of 100
// shared by 8 workers admits up to 800. Locks are copied as they are, so a child of a program whose
// other threads were inside a call must not use the handles it inherited, not even to free them. A
// pre-forking server makes its limiters in each worker, after fork, with the limit divided by the
// number of workers; exec, or a child that leaves weir alone, needs no care.
//
// Signals. No function may be called from a signal handler, apart from weir_abi_version,
// weir_version and the *_name and *_text functions.
//
// ABI. Libraries with the same WEIR_ABI_VERSION (the number in libweir.so.<n>) are interchangeable:
// functions and constants are only added, and the structs without struct_size never change.
// Structs that begin with struct_size may grow at the end; set it to sizeof. A field that is 0 has
// its default, so that a struct of zeros with its size is a good one.
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

// C has no namespaces and no `using`; its names have a prefix.
// NOLINTBEGIN(readability-identifier-naming, modernize-use-using)

#include <stddef.h>
#include <stdint.h>

#define WEIR_ABI_VERSION 1

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_store weir_store;      // memory of a fixed size, for any number of limiters
typedef struct weir_limiter weir_limiter;  // a quota, counted by key in a store

// What a call came to. Named for what the caller does next.
enum weir_status {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = -1,   // fix the call
  WEIR_UNAVAILABLE = -2,        // try again later
  WEIR_DEADLINE_EXCEEDED = -3,  // took too long
  WEIR_OVERLOADED = -4,         // the system did not grant the memory
  WEIR_INTERNAL = -5            // a bug in weir: please report it
};

enum weir_outcome {
  WEIR_ALLOWED = 0,
  WEIR_DENIED = 1,  // does not fit now; it will after retry_after_ns
  WEIR_REFUSED = 2  // can never be answered as asked: see problem
};

enum weir_problem {
  WEIR_PROBLEM_NONE = 0,
  WEIR_PROBLEM_COST_ABOVE_BURST = 1,  // more than the quota admits at once on a fresh key
  WEIR_PROBLEM_COST_TOO_LARGE = 2,    // above 2^32; a negative number arrives as such
  WEIR_PROBLEM_KEY_EMPTY = 3,
  WEIR_PROBLEM_KEY_TOO_LONG = 4,        // above 65535 bytes
  WEIR_PROBLEM_KEY_HAS_NUL = 5,         // unless the store takes WEIR_KEYS_BINARY
  WEIR_PROBLEM_NOW_TOO_FAR = 6,         // now_ns is further from the store's clock than max_skew_ns
  WEIR_PROBLEM_MAX_WAIT_TOO_SHORT = 7,  // even on a fresh key it would wait longer than max_wait_ns
  WEIR_PROBLEM_WRONG_QUOTA = 8,  // weir_acquire needs a concurrency quota, weir_reserve another
  WEIR_PROBLEM_LEASE_OUT_OF_RANGE = 9,  // not from 1 us to 366 days
  WEIR_PROBLEM_NO_RECORDS = 10  // the store has no memory for reservations: see record_percent
};

// What a decision rests on.
enum weir_basis {
  WEIR_BASIS_STORE = 0,   // the key's own state
  WEIR_BASIS_SKETCH = 1,  // the table was full: a count that may be too high, never too low
  WEIR_BASIS_OPEN = 2,    // nobody counted this (WEIR_OVERFLOW_ALLOW)
  WEIR_BASIS_CLOSED = 3,  // nobody counted this (WEIR_OVERFLOW_DENY)
  WEIR_BASIS_LEASE = 4    // units of a hot key that this thread had taken ahead
};

// What a charge does when it does not fit.
enum weir_mode {
  WEIR_ADMIT = 0,         // denied, and nothing is charged
  WEIR_COUNT_ALWAYS = 1,  // counted all the same, and may go over; the outcome still says denied
  WEIR_UP_TO = 2,         // takes as much as fits, perhaps nothing
  WEIR_DRY_RUN = 3        // answers as WEIR_ADMIT would, and charges nothing
};

// What happens to a key that finds the table full of live keys. None of these is ever evicted.
enum weir_overflow {
  WEIR_OVERFLOW_SKETCH = 0,  // counted in a sketch: perhaps too high, never too low
  WEIR_OVERFLOW_DENY = 1,
  WEIR_OVERFLOW_ALLOW = 2
};

enum weir_keys {
  WEIR_KEYS_TEXT = 0,   // a NUL byte in a key is refused: it is nearly always a mistake
  WEIR_KEYS_BINARY = 1  // any byte
};

enum weir_huge_pages {
  WEIR_HUGE_PAGES_ASK = 0,  // without them the store works all the same
  WEIR_HUGE_PAGES_NEVER = 1
};

// Whether threads that contend for one key take units of it ahead. Never admits more.
enum weir_hot_keys {
  WEIR_HOT_KEYS_LEASED = 0,
  WEIR_HOT_KEYS_PLAIN = 1  // all of them meet at the key
};

// Where a key is counted before it comes near its limit.
enum weir_precision {
  WEIR_PRECISION_EXACT = 0,  // in a state of its own, from its first charge on
  WEIR_PRECISION_SKETCH = 1  // in the store's sketch, which takes no memory a key: stricter than
                             // the quota at times, never looser
};

typedef struct weir_store_options {
  size_t struct_size;     // sizeof(weir_store_options)
  uint64_t budget_bytes;  // all of it, for as long as the store lives; 0: 64 MiB. From 64 KiB
  int64_t max_skew_ns;    // how far now_ns may be from the clock; 0: 1 s. From 1 ms to 10 min
  uint64_t fleet_secret;  // shifts per-key windows; the same on every node of a fleet
  uint32_t overflow;      // weir_overflow
  uint32_t keys;          // weir_keys
  uint32_t huge_pages;    // weir_huge_pages
  uint32_t reserved;      // 0
  // Of the budget, 1 to 100: for sliding logs, sliced windows, holds and reservations. 0: none, or
  // all of it for a limiter with a store of its own whose quota needs them.
  uint32_t record_percent;
  // Of the rest, 1 to 100: for 16-byte slots (windows). 0: half, or what the quota needs.
  uint32_t wide_percent;
  // Of the budget, 1 to 50: for the sketch. 0: a 32nd with WEIR_OVERFLOW_SKETCH, else none.
  uint32_t sketch_percent;
  uint32_t hot_keys;  // weir_hot_keys
} weir_store_options;

// What is a limiter's own; weir_limiter_update keeps it.
typedef struct weir_limiter_options {
  size_t struct_size;        // sizeof(weir_limiter_options)
  uint32_t precision;        // weir_precision
  uint32_t top_keys;         // how many to keep track of, at most 4096; 0: none. 900 bytes each
  uint32_t top_keys_sample;  // one decision in this many is noted: a power of two; 0: 64
  uint32_t reserved;         // 0
} weir_limiter_options;

typedef struct weir_decision {
  // Denied: waiting this long, alone, is enough. Allowed: how long to wait before starting, which
  // is 0 unless the quota is a queue ("10/s burst 21 queue").
  int64_t retry_after_ns;
  int64_t reset_after_ns;  // until the key is as good as new
  uint32_t limit;          // the most units at once on a fresh key
  uint32_t remaining;      // units that would still be admitted now
  uint32_t charged;        // units taken by this call
  uint8_t outcome;         // weir_outcome
  uint8_t basis;           // weir_basis
  uint8_t problem;         // weir_problem
  uint8_t allowed;         // 1 if outcome is WEIR_ALLOWED, else 0
} weir_decision;

// Bytes; they need not end with a NUL and are not kept.
typedef struct weir_key {
  const char* bytes;
  size_t length;
} weir_key;

// Proof of a charge, for giving it back to the limiter that took it. All zeros: of nothing.
typedef struct weir_receipt {
  uint64_t opaque[5];
} weir_receipt;

// What is held. A copy means the same hold; only the first release of any of them counts.
typedef struct weir_hold {
  weir_receipt receipt;
  uint64_t fence;  // larger than that of any hold of its key before; 0: nothing is held
} weir_hold;

enum weir_settled {
  WEIR_SETTLED = 0,
  WEIR_SETTLED_BEFORE = 1,  // by this or another call; nothing was done
  WEIR_SETTLED_GONE = 2,    // unknown here, or ended by itself; nothing was done
  WEIR_SETTLED_REFUSED = 3  // see decision.problem; nothing was done, and it is still open
};

typedef struct weir_settlement {
  uint64_t actual;         // what it was settled with: now, or when it already was
  uint32_t given_back;     // of the estimate, by this call
  uint32_t charged;        // beyond the estimate, by this call
  uint32_t outcome;        // weir_settled
  uint32_t reserved;       // 0
  weir_decision decision;  // how the key stands now, if settled by this call
} weir_settlement;

// One of several charges that are taken together.
typedef struct weir_part {
  weir_limiter* limiter;
  weir_key key;
  uint64_t cost;
  uint32_t mode;      // WEIR_ADMIT or WEIR_COUNT_ALWAYS
  uint32_t reserved;  // 0
} weir_part;

typedef struct weir_stats {
  size_t struct_size;  // sizeof(weir_stats), set by the caller; fields beyond it are not written
  uint64_t decisions;
  uint64_t denials;     // refusals for a problem are not counted here
  uint64_t refusals;    // checks with a problem
  uint64_t overflow;    // decisions that found no slot: the budget is too small for the live keys
  uint64_t reclaims;    // slots of keys that had become fresh, taken for new keys
  uint64_t lost_races;  // attempts that another thread made necessary to repeat
  uint64_t slots;
  uint64_t live_slots;  // sampled on large tables
  uint64_t budget_bytes;
  uint64_t huge_pages;            // 1 if the system granted them
  uint64_t records;               // in use: logs, slices, holds, reservations
  uint64_t promotions;            // keys that left the sketch for a slot (WEIR_PRECISION_SKETCH)
  uint64_t leases;                // of units of hot keys, taken by threads
  uint64_t leases_returned;       // of those, given back before all was spent
  uint64_t lease_units_returned;  // and how many units came back
} weir_stats;

// A key that is asked for often. Of what was noted, each times the sample, between count - error
// and count was this key's, and between denied and denied + error was denied.
typedef struct weir_top_key {
  uint64_t count;
  uint64_t denied;
  uint64_t error;
  uint32_t key_length;
  uint32_t cut;  // 1: these are the first bytes of a longer key
  char key[64];  // not ended with a NUL
} weir_top_key;

// ---- The library. The first is the number in the library's file name, to be compared with
// WEIR_ABI_VERSION by programs that load it at run time.
WEIR_API uint32_t weir_abi_version(void);
WEIR_API const char* weir_version(void);  // "0.1.0"

// What went wrong in the last call on this thread that failed; "" if none has. Valid until the next
// one that fails on this thread.
WEIR_API const char* weir_last_error(void);

// Short names ("denied", "key_has_nul") and a sentence for people. "unknown" if there is none.
WEIR_API const char* weir_status_name(int status);
WEIR_API const char* weir_outcome_name(int outcome);
WEIR_API const char* weir_problem_name(int problem);
WEIR_API const char* weir_problem_text(int problem);
WEIR_API const char* weir_basis_name(int basis);

// ---- Stores. Options may be NULL. A store lives until it and its limiters have been freed, in
// whatever order. Freeing NULL does nothing.
WEIR_API int weir_store_create(const weir_store_options* options, weir_store** store);
WEIR_API int weir_store_stats(const weir_store* store, weir_stats* stats);
// Housekeeping that checks do by themselves in small steps; for after a long idle time.
WEIR_API int weir_store_maintain(weir_store* store);
WEIR_API void weir_store_free(weir_store* store);

// ---- Limiters. Quota text: docs/reference/quota.md. With a store of its own (options may be
// NULL), all of whose budget suits the quota; or as one of several on a store.
WEIR_API int weir_limiter_create(const char* quota, const weir_store_options* options,
                                 weir_limiter** limiter);
WEIR_API int weir_limiter_create_on(const char* quota, weir_store* store, weir_limiter** limiter);
// Either, with options of the limiter's own. A store of NULL makes one of its own by `options`; on
// a given store `options` must be NULL. So may `own`.
WEIR_API int weir_limiter_create_with(const char* quota, weir_store* store,
                                      const weir_store_options* options,
                                      const weir_limiter_options* own, weir_limiter** limiter);
// Changes the quota under traffic. What keys owe is carried over. A limiter with a store of its own
// stays with the kind it was made with (buckets and gaps, or windows); one on a store may change.
WEIR_API int weir_limiter_update(weir_limiter* limiter, const char* quota);
// The quota as text, cut to fit and ended with a NUL, as snprintf does; answers its whole length.
WEIR_API int weir_limiter_quota(const weir_limiter* limiter, char* text, size_t text_size);
// Of the store that the limiter is on.
WEIR_API int weir_limiter_stats(const weir_limiter* limiter, weir_stats* stats);
// The most frequent keys so far, the first one first, if the limiter was made with top_keys. Writes
// up to `most` of them and answers how many. Merges a few summaries: not for the hot path.
WEIR_API int weir_top_keys(const weir_limiter* limiter, weir_top_key* keys, size_t most);
WEIR_API void weir_limiter_free(weir_limiter* limiter);

// ---- Deciding: 1 allowed, 0 not, negative a weir_status. `decision` may be NULL. A cost of 0
// peeks: it tells what is left and takes nothing.
WEIR_API int weir_check(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                        weir_decision* decision);
// With a time from weir_now, for callers that decide many requests at one instant.
WEIR_API int weir_check_at(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                           int64_t now_ns, weir_decision* decision);
// The limiter's own monotonic clock, in nanoseconds; has nothing to do with the time of day.
WEIR_API int weir_now(const weir_limiter* limiter, int64_t* now_ns);

// Decides keys[i] into decisions[i], in order, with memory fetched ahead and a clock read for 64.
// WEIR_OK or a negative weir_status, with which nothing was charged.
WEIR_API int weir_check_many(weir_limiter* limiter, const weir_key* keys, size_t count,
                             uint64_t cost, weir_decision* decisions);

// A check with a mode (weir_mode), and with a receipt unless that is NULL.
WEIR_API int weir_charge(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                         int mode, weir_receipt* receipt, weir_decision* decision);
WEIR_API int weir_charge_at(weir_limiter* limiter, const char* key, size_t key_length,
                            uint64_t cost, int mode, int64_t now_ns, weir_receipt* receipt,
                            weir_decision* decision);
// For queues: what could not start within max_wait_ns is denied at once, and charges nothing.
// Whoever stops waiting gives the receipt back.
WEIR_API int weir_charge_within(weir_limiter* limiter, const char* key, size_t key_length,
                                uint64_t cost, int mode, int64_t max_wait_ns, weir_receipt* receipt,
                                weir_decision* decision);
// Takes what fits of `most`, perhaps nothing: decision->charged says how much.
WEIR_API int weir_take_up_to(weir_limiter* limiter, const char* key, size_t key_length,
                             uint64_t most, weir_decision* decision);

// Gives back what the receipt was charged, as far as it is still owed, and empties the receipt.
// Answers the whole units given back, or a negative weir_status.
WEIR_API int64_t weir_give_back(weir_limiter* limiter, weir_receipt* receipt);

// Starts a key anew, whatever it owes: 1 done, 0 there was nothing to forget. What was charged
// before cannot be given back any more, and its holds have ended. What the overflow sketch counts
// against the key, with other keys, fades by itself. For operators: it takes locks.
WEIR_API int weir_reset(weir_limiter* limiter, const char* key, size_t key_length);

// Takes every WEIR_ADMIT part or none of them; WEIR_COUNT_ALWAYS parts are counted either way. At
// most 64 parts. `decisions` has one for each part, and so has `receipts` unless it is NULL;
// `deciding`, unless NULL, is told which part speaks for all.
WEIR_API int weir_check_all(const weir_part* parts, size_t count, weir_decision* decisions,
                            weir_receipt* receipts, size_t* deciding);

// ---- Holds, with quotas such as "concurrency 20 lease 30s": 1 held, 0 not, negative a
// weir_status. A lease of 0 is the quota's. `hold` is written in every case; a receipt of
// weir_charge or weir_check_all is given back by weir_give_back instead.
WEIR_API int weir_acquire(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                          int64_t lease_ns, weir_hold* hold, weir_decision* decision);
// 1 ended by this call, 0 it had ended already.
WEIR_API int weir_release(weir_limiter* limiter, const weir_hold* hold);
// 1 the lease begins anew, 0 the hold has ended and may be somebody else's.
WEIR_API int weir_renew(weir_limiter* limiter, const weir_hold* hold, int64_t lease_ns);

// ---- Reservations, with all other quotas, for costs known only afterwards. Charges the estimate:
// 1 reserved, 0 not. It may be settled for lasts_ns (0: 10 minutes) and stays charged if nobody
// does.
WEIR_API int weir_reserve(weir_limiter* limiter, const char* key, size_t key_length,
                          uint64_t estimate, int64_t lasts_ns, uint64_t* reservation,
                          weir_decision* decision);
// Gives back what was not used, or counts what was used beyond the estimate, once: 1 settled by
// this call, 0 not. `settlement` may be NULL.
WEIR_API int weir_settle(weir_limiter* limiter, uint64_t reservation, uint64_t actual,
                         weir_settlement* settlement);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming, modernize-use-using)

#endif  // WEIR_WEIR_H
