#include "weir/decision.h"

namespace weir {

std::string_view Explain(Problem problem) noexcept {
  switch (problem) {
    case Problem::kNone:
      return "no problem";
    case Problem::kCostAboveBurst:
      return "cost: more than the quota's burst, so it can never fit; ask for at most "
             "the limit at once, or raise the burst";
    case Problem::kCostTooLarge:
      return "cost: must be from 0 to 4294967296";
    case Problem::kKeyEmpty:
      return "key: is empty; must be 1 to 65535 bytes";
    case Problem::kKeyTooLong:
      return "key: is too long; must be 1 to 65535 bytes (hash longer text first)";
    case Problem::kKeyHasNul:
      return "key: contains a NUL byte; use text without it, or KeyPolicy::kBinary";
    case Problem::kNowTooFar:
      return "now: further from the store's clock than max_skew (1 s unless set); pass a time "
             "from Limiter::Now(), or none";
    case Problem::kMaxWaitTooShort:
      return "max_wait: negative, or shorter than this cost would wait even on a fresh key; ask "
             "for "
             "fewer units, or allow a longer wait";
    case Problem::kWrongQuota:
      return "quota: Acquire needs a concurrency quota, such as concurrency 20 lease 30s, and "
             "Reserve one of another kind";
    case Problem::kLeaseOutOfRange:
      return "lease, lasts: must be from a microsecond to 366 days";
    case Problem::kNoRecords:
      return "record_percent: leaves the store no memory for records, which reservations need; "
             "give "
             "it at least 1";
    case Problem::kTooManyCharges:
      return "charges: more than 64, or more than there is room for in decisions or receipts";
    case Problem::kWrongMode:
      return "mode: not allowed in CheckAll; choose kAdmit or kCountAlways";
    case Problem::kNoLimiter:
      return "limiter: is null";
  }
  return "unknown problem";
}

std::string_view ToString(Basis basis) noexcept {
  switch (basis) {
    case Basis::kStore:
      return "store";
    case Basis::kSketch:
      return "sketch";
    case Basis::kOpen:
      return "open";
    case Basis::kClosed:
      return "closed";
    case Basis::kLease:
      return "lease";
    case Basis::kLocal:
      return "local";
    case Basis::kCached:
      return "cached";
  }
  return "unknown";
}

}  // namespace weir
