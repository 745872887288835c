// Names of the constants, and their meaning in C's words.
#include <cstddef>

#include "weir/decision.h"
#include "weir/version.h"
#include "weir/weir.h"

namespace {

template <size_t kCount>
const char* NameIn(const char* const (&names)[kCount], int index) noexcept {
  return index >= 0 && static_cast<size_t>(index) < kCount ? names[index] : "unknown";
}

// In the order of their numbers.
constexpr const char* kStatusNames[] = {
    "ok", "invalid_argument", "unavailable", "deadline_exceeded", "overloaded", "internal"};
constexpr const char* kOutcomeNames[] = {"allowed", "denied", "refused"};
constexpr const char* kBasisNames[] = {"store", "sketch", "open", "closed", "lease"};
constexpr const char* kProblemNames[] = {
    "none",         "cost_above_burst",   "cost_too_large", "key_empty",
    "key_too_long", "key_has_nul",        "now_too_far",    "max_wait_too_short",
    "wrong_quota",  "lease_out_of_range", "no_records"};
constexpr const char* kProblemTexts[] = {
    "no problem",
    "cost: more than the quota's burst, so it can never fit; ask for at most decision.limit units "
    "at once, or raise the burst",
    "cost: must be from 0 to 4294967296",
    "key: is empty; must be 1 to 65535 bytes",
    "key: is too long; must be 1 to 65535 bytes (hash longer text first)",
    "key: contains a NUL byte; use text without it, or a store with WEIR_KEYS_BINARY",
    "now_ns: further from the store's clock than max_skew_ns (1 s unless set); pass a time from "
    "weir_now",
    "max_wait_ns: shorter than this cost would wait even on a fresh key; ask for fewer units, or "
    "allow a longer wait",
    "quota: weir_acquire needs a concurrency quota, such as concurrency 20 lease 30s, and "
    "weir_reserve one of another kind",
    "lease_ns, lasts_ns: must be 0, or from 1000 to 31622400000000000 (366 days)",
    "record_percent: leaves the store no memory for reservations; give it at least 1",
};

using weir::Basis;
using weir::Outcome;
using weir::Problem;
static_assert(WEIR_ALLOWED == static_cast<int>(Outcome::kAllowed));
static_assert(WEIR_DENIED == static_cast<int>(Outcome::kDenied));
static_assert(WEIR_REFUSED == static_cast<int>(Outcome::kRefused));
static_assert(WEIR_BASIS_STORE == static_cast<int>(Basis::kStore));
static_assert(WEIR_BASIS_SKETCH == static_cast<int>(Basis::kSketch));
static_assert(WEIR_BASIS_OPEN == static_cast<int>(Basis::kOpen));
static_assert(WEIR_BASIS_CLOSED == static_cast<int>(Basis::kClosed));
static_assert(WEIR_BASIS_LEASE == static_cast<int>(Basis::kLease));
static_assert(WEIR_PROBLEM_NONE == static_cast<int>(Problem::kNone));
static_assert(WEIR_PROBLEM_COST_ABOVE_BURST == static_cast<int>(Problem::kCostAboveBurst));
static_assert(WEIR_PROBLEM_COST_TOO_LARGE == static_cast<int>(Problem::kCostTooLarge));
static_assert(WEIR_PROBLEM_KEY_EMPTY == static_cast<int>(Problem::kKeyEmpty));
static_assert(WEIR_PROBLEM_KEY_TOO_LONG == static_cast<int>(Problem::kKeyTooLong));
static_assert(WEIR_PROBLEM_KEY_HAS_NUL == static_cast<int>(Problem::kKeyHasNul));
static_assert(WEIR_PROBLEM_NOW_TOO_FAR == static_cast<int>(Problem::kNowTooFar));
static_assert(WEIR_PROBLEM_MAX_WAIT_TOO_SHORT == static_cast<int>(Problem::kMaxWaitTooShort));
static_assert(WEIR_PROBLEM_WRONG_QUOTA == static_cast<int>(Problem::kWrongQuota));
static_assert(WEIR_PROBLEM_LEASE_OUT_OF_RANGE == static_cast<int>(Problem::kLeaseOutOfRange));
static_assert(WEIR_PROBLEM_NO_RECORDS == static_cast<int>(Problem::kNoRecords));

}  // namespace

uint32_t weir_abi_version(void) {
  return WEIR_ABI_VERSION;
}

const char* weir_version(void) {
  return weir::kVersion.data();
}

const char* weir_status_name(int status) {
  // Not -status: the least int has no opposite.
  return status <= 0 && status > -6 ? NameIn(kStatusNames, -status) : "unknown";
}

const char* weir_outcome_name(int outcome) {
  return NameIn(kOutcomeNames, outcome);
}

const char* weir_problem_name(int problem) {
  return NameIn(kProblemNames, problem);
}

const char* weir_problem_text(int problem) {
  return NameIn(kProblemTexts, problem);
}

const char* weir_basis_name(int basis) {
  return NameIn(kBasisNames, basis);
}
