// The statistics of envoyproxy/ratelimit, under its names: as text for /stats, for Prometheus as
// its statsd exporter maps them, and as lines for statsd. Thread-safe; counting takes no lock,
// finding a path that runtime values are part of takes one of several.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/time.h"

#include "base/mutex.h"
#include "envoy/descriptor_config.h"

namespace weir::envoy {

// What one limit has seen, in hits.
struct HitCounts {
  uint64_t total_hits = 0;
  uint64_t over_limit = 0;
  uint64_t near_limit = 0;
  uint64_t over_limit_with_local_cache = 0;
  uint64_t within_limit = 0;
  uint64_t shadow_mode = 0;

  static constexpr std::array<std::pair<std::string_view, uint64_t HitCounts::*>, 6> Fields();
};

constexpr std::array<std::pair<std::string_view, uint64_t HitCounts::*>, 6> HitCounts::Fields() {
  return {{{"total_hits", &HitCounts::total_hits},
           {"over_limit", &HitCounts::over_limit},
           {"near_limit", &HitCounts::near_limit},
           {"over_limit_with_local_cache", &HitCounts::over_limit_with_local_cache},
           {"within_limit", &HitCounts::within_limit},
           {"shadow_mode", &HitCounts::shadow_mode}}};
}

// The counters of one path, in stripes so that threads do not meet.
class StatPath {
 public:
  explicit StatPath(std::string name) : name_(std::move(name)) {}

  // As it is shown: `<domain>.<key>_<value>`, without what would break a line of statsd.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void Add(const HitCounts& hits) noexcept;
  [[nodiscard]] HitCounts Sum() const noexcept;

 private:
  static constexpr size_t kStripes = 4;
  static constexpr size_t kFields = HitCounts::Fields().size();

  struct alignas(64) Cell {
    std::array<std::atomic<uint64_t>, kFields> counts{};
  };

  const std::string name_;
  std::array<Cell, kStripes> cells_;
};

// ':' and '|' become '_', and so do the dots of what looks like an IPv4 address.
[[nodiscard]] std::string SanitizeStatName(std::string_view name);

class RlsStats {
 public:
  // Paths made from runtime values; more of them are counted under the limit's own path.
  static constexpr size_t kMaxRuntimePaths = 20'000;

  static constexpr std::string_view kShouldRateLimit = "ShouldRateLimit";

  // By name without the prefix, a reference that is good for as long as this lives.
  [[nodiscard]] StatPath& PathOf(std::string_view key);
  // nullptr: there are too many.
  [[nodiscard]] StatPath* RuntimePathOf(std::string_view key);

  void CountUnknownDomain(std::string_view domain);
  // Calls of a gRPC method, or of /json, answered after this long.
  void CountCall(std::string_view method, Duration took, uint64_t count = 1);

  std::atomic<uint64_t> redis_error{0};
  std::atomic<uint64_t> service_error{0};
  std::atomic<uint64_t> config_load_success{0};
  std::atomic<uint64_t> config_load_error{0};
  std::atomic<uint64_t> global_shadow_mode{0};

  // Every counter with its full name, sorted.
  [[nodiscard]] std::map<std::string, uint64_t> Counters() const;
  // `<name>: <value>` a line.
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] std::string Prometheus() const;

 private:
  friend class StatsdReport;

  static constexpr std::array<double, 17> kSecondsUpTo = {
      0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
      0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};

  struct Calls {
    std::array<std::atomic<uint64_t>, kSecondsUpTo.size() + 1> up_to{};  // the last: longer
    std::atomic<uint64_t> total{0};
    std::atomic<uint64_t> took_ns{0};
  };

  static constexpr size_t kShards = 16;
  static constexpr size_t kMaxDomains = 1000;
  static constexpr size_t kMaxMethods = 32;

  struct Shard {
    mutable base::Mutex mutex;
    TextMap<StatPath*> by_key WEIR_GUARDED_BY(mutex);
  };

  [[nodiscard]] Shard& ShardOf(std::string_view key) const noexcept;
  StatPath& Register(std::string_view key);
  [[nodiscard]] Calls* CallsOf(std::string_view method);
  // Of each method that was called.
  template <class Visit>
  void ForEachMethod(Visit visit) const WEIR_REQUIRES(mutex_) {
    if (should_rate_limit_.total.load(std::memory_order_relaxed) != 0) {
      visit(std::string(kShouldRateLimit), should_rate_limit_);
    }
    for (const auto& [method, calls] : calls_) {
      visit(method, calls);
    }
  }

  mutable std::array<Shard, kShards> shards_;
  mutable base::Mutex mutex_;
  std::deque<StatPath> paths_ WEIR_GUARDED_BY(mutex_);
  TextMap<StatPath*> by_name_ WEIR_GUARDED_BY(mutex_);
  TextMap<uint64_t> unknown_domains_ WEIR_GUARDED_BY(mutex_);
  Calls should_rate_limit_;  // by itself, so that it is found without a lock
  std::map<std::string, Calls, std::less<>> calls_ WEIR_GUARDED_BY(mutex_);
  std::atomic<size_t> runtime_paths_{0};
};

// Lines for a statsd server: what has happened since the last report.
class StatsdReport {
 public:
  struct Options {
    bool dog_statsd = false;                                        // tags as |#name:value
    std::vector<std::pair<std::string, std::string>> extra_tags{};  // EXTRA_TAGS
  };

  explicit StatsdReport(Options options) : options_(std::move(options)) {}

  // Without line ends; none for what has not changed.
  [[nodiscard]] std::vector<std::string> Next(const RlsStats& stats);

 private:
  [[nodiscard]] std::string Line(const std::string& name, const std::string& value) const;

  const Options options_;
  std::map<std::string, uint64_t> last_;
};

}  // namespace weir::envoy
