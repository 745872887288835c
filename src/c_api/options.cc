#include "c_api/options.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "c_api/failure.h"

namespace weir::c_api {

namespace {

// The sizes that the first version of this ABI had: no caller has a smaller struct.
constexpr size_t kFirstStoreOptionsSize = 48;
constexpr size_t kFirstLimiterOptionsSize = 24;
constexpr size_t kFirstStatsSize = 88;
static_assert(sizeof(void*) != 8 || sizeof(weir_store_options) >= kFirstStoreOptionsSize);
static_assert(sizeof(void*) != 8 || sizeof(weir_limiter_options) >= kFirstLimiterOptionsSize);
static_assert(sizeof(void*) != 8 || sizeof(weir_stats) >= kFirstStatsSize);

Error TooSmall(const char* what, size_t found, size_t least) {
  return Error::Invalid(std::string(what) + ".struct_size: " + std::to_string(found) +
                        " is too small; set it to sizeof(weir_" + what + "), at least " +
                        std::to_string(least));
}

Error NotAChoice(const char* field, uint32_t found, const char* allowed) {
  return Error::Invalid("options." + std::string(field) + ": " + std::to_string(found) +
                        " is not allowed; choose " + allowed);
}

// The struct at this library's size; what the caller's lacks is 0.
template <class Options>
Result<Options> ReadAtSize(const char* name, const Options& given, size_t first_size) {
  if (given.struct_size < first_size) {
    return TooSmall(name, given.struct_size, first_size);
  }
  // A newer caller's fields are unknown here: they may be passed over only at their defaults.
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  const size_t known = std::min(given.struct_size, sizeof given);
  if (std::any_of(bytes + known, bytes + given.struct_size, [](auto b) { return b != 0; })) {
    return Error::Invalid("options: a field is set that this library (version " +
                          std::string(weir_version()) + ") does not know; leave it 0");
  }
  Options own{};
  std::memcpy(&own, &given, known);
  if (own.reserved != 0) {
    return NotAChoice("reserved", own.reserved, "0");
  }
  return own;
}

}  // namespace

Result<LimiterOptions> ReadOptions(const weir_limiter_options* given) {
  LimiterOptions options;
  if (given == nullptr) {
    return options;
  }
  const Result<weir_limiter_options> own =
      ReadAtSize("limiter_options", *given, kFirstLimiterOptionsSize);
  if (!own) {
    return own.error();
  }
  if (own->precision > WEIR_PRECISION_SKETCH) {
    return NotAChoice("precision", own->precision, "0 (exact) or 1 (sketch)");
  }
  options.precision = static_cast<Precision>(own->precision);
  options.top_keys = own->top_keys;
  if (own->top_keys_sample != 0) {
    options.top_keys_sample = own->top_keys_sample;
  }
  return options;
}

Result<MemoryOptions> ReadOptions(const weir_store_options* given) {
  MemoryOptions options;
  if (given == nullptr) {
    return options;
  }
  const Result<weir_store_options> read =
      ReadAtSize("store_options", *given, kFirstStoreOptionsSize);
  if (!read) {
    return read.error();
  }
  const weir_store_options& own = *read;
  if (own.overflow > WEIR_OVERFLOW_ALLOW) {
    return NotAChoice("overflow", own.overflow, "0 (sketch), 1 (deny) or 2 (allow)");
  }
  if (own.keys > WEIR_KEYS_BINARY) {
    return NotAChoice("keys", own.keys, "0 (text) or 1 (binary)");
  }
  if (own.huge_pages > WEIR_HUGE_PAGES_NEVER) {
    return NotAChoice("huge_pages", own.huge_pages, "0 (ask) or 1 (never)");
  }
  if (own.hot_keys > WEIR_HOT_KEYS_PLAIN) {
    return NotAChoice("hot_keys", own.hot_keys, "0 (leased) or 1 (plain)");
  }
  if (own.record_percent > 100) {
    return NotAChoice("record_percent", own.record_percent, "1 to 100, or 0 for none");
  }
  if (own.wide_percent > 100) {
    return NotAChoice("wide_percent", own.wide_percent, "1 to 100, or 0 for half");
  }
  if (own.sketch_percent > 50) {
    return NotAChoice("sketch_percent", own.sketch_percent, "1 to 50, or 0 for a 32nd");
  }
  if (own.budget_bytes > std::numeric_limits<size_t>::max() / 2) {
    return Error::Invalid("options.budget_bytes: " + std::to_string(own.budget_bytes) +
                          " is more than this machine can address");
  }
  if (own.budget_bytes != 0) {
    options.budget_bytes = static_cast<size_t>(own.budget_bytes);
  }
  if (own.max_skew_ns != 0) {
    options.max_skew = Duration(own.max_skew_ns);
  }
  if (own.record_percent != 0) {
    options.record_percent = static_cast<int>(own.record_percent);
  }
  if (own.wide_percent != 0) {
    options.wide_percent = static_cast<int>(own.wide_percent);
  }
  if (own.sketch_percent != 0) {
    options.sketch_percent = static_cast<int>(own.sketch_percent);
  }
  options.hot_keys = own.hot_keys == WEIR_HOT_KEYS_LEASED;
  options.fleet_secret = own.fleet_secret;
  options.overflow = static_cast<OverflowPolicy>(own.overflow);
  options.keys = static_cast<KeyPolicy>(own.keys);
  options.huge_pages = own.huge_pages == WEIR_HUGE_PAGES_ASK;
  return options;
}

int WriteStats(const MemoryStore& store, weir_stats* stats) {
  if (stats == nullptr) {
    return FailNull("stats");
  }
  if (stats->struct_size < kFirstStatsSize) {
    return Fail(TooSmall("stats", stats->struct_size, kFirstStatsSize));
  }
  const StoreStats found = store.Stats();
  const weir_stats all = {
      .struct_size = stats->struct_size,
      .decisions = found.decisions,
      .denials = found.denials,
      .refusals = found.refusals,
      .overflow = found.overflow,
      .reclaims = found.reclaims,
      .lost_races = found.lost_races,
      .slots = found.slots,
      .live_slots = found.live_slots,
      .budget_bytes = found.budget_bytes,
      .huge_pages = found.huge_pages ? uint64_t{1} : uint64_t{0},
      .records = found.records,
      .promotions = found.promotions,
      .leases = found.leases,
      .leases_returned = found.leases_returned,
      .lease_units_returned = found.lease_units_returned,
  };
  std::memcpy(stats, &all, std::min(stats->struct_size, sizeof all));
  return WEIR_OK;
}

static_assert(WEIR_OVERFLOW_SKETCH == static_cast<int>(OverflowPolicy::kSketch));
static_assert(WEIR_OVERFLOW_DENY == static_cast<int>(OverflowPolicy::kDeny));
static_assert(WEIR_OVERFLOW_ALLOW == static_cast<int>(OverflowPolicy::kAllow));
static_assert(WEIR_KEYS_TEXT == static_cast<int>(KeyPolicy::kText));
static_assert(WEIR_KEYS_BINARY == static_cast<int>(KeyPolicy::kBinary));
static_assert(WEIR_PRECISION_EXACT == static_cast<int>(Precision::kExact));
static_assert(WEIR_PRECISION_SKETCH == static_cast<int>(Precision::kSketch));

}  // namespace weir::c_api
