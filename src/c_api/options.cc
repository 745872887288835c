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
constexpr size_t kFirstOptionsSize = 48;
constexpr size_t kFirstStatsSize = 88;
static_assert(sizeof(void*) != 8 || sizeof(weir_store_options) >= kFirstOptionsSize);
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

}  // namespace

Result<MemoryOptions> ReadOptions(const weir_store_options* given) {
  MemoryOptions options;
  if (given == nullptr) {
    return options;
  }
  if (given->struct_size < kFirstOptionsSize) {
    return TooSmall("store_options", given->struct_size, kFirstOptionsSize);
  }
  // A newer caller's fields are unknown here: they may be passed over only at their defaults.
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  const size_t known = std::min(given->struct_size, sizeof *given);
  if (std::any_of(bytes + known, bytes + given->struct_size, [](auto b) { return b != 0; })) {
    return Error::Invalid("options: a field is set that this library (version " +
                          std::string(weir_version()) + ") does not know; leave it 0");
  }
  weir_store_options own{};
  std::memcpy(&own, given, known);

  if (own.overflow > WEIR_OVERFLOW_ALLOW) {
    return NotAChoice("overflow", own.overflow, "0 (sketch), 1 (deny) or 2 (allow)");
  }
  if (own.keys > WEIR_KEYS_BINARY) {
    return NotAChoice("keys", own.keys, "0 (text) or 1 (binary)");
  }
  if (own.huge_pages > WEIR_HUGE_PAGES_NEVER) {
    return NotAChoice("huge_pages", own.huge_pages, "0 (ask) or 1 (never)");
  }
  if (own.reserved != 0) {
    return NotAChoice("reserved", own.reserved, "0");
  }
  if (own.record_percent > 100) {
    return NotAChoice("record_percent", own.record_percent, "1 to 100, or 0 for none");
  }
  if (own.wide_percent > 100) {
    return NotAChoice("wide_percent", own.wide_percent, "1 to 100, or 0 for half");
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
  };
  std::memcpy(stats, &all, std::min(stats->struct_size, sizeof all));
  return WEIR_OK;
}

static_assert(WEIR_OVERFLOW_SKETCH == static_cast<int>(OverflowPolicy::kSketch));
static_assert(WEIR_OVERFLOW_DENY == static_cast<int>(OverflowPolicy::kDeny));
static_assert(WEIR_OVERFLOW_ALLOW == static_cast<int>(OverflowPolicy::kAllow));
static_assert(WEIR_KEYS_TEXT == static_cast<int>(KeyPolicy::kText));
static_assert(WEIR_KEYS_BINARY == static_cast<int>(KeyPolicy::kBinary));

}  // namespace weir::c_api
