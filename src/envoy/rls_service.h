// The rate limit service of Envoy: what envoyproxy/ratelimit decides, decided by weir. A
// configuration of descriptors is loaded and swapped whole; requests are counted in weir's memory
// store, by default to the letter: in fixed windows from the epoch, refused hits included.
//
//   auto service = weir::envoy::RlsService::Create({});
//   service->Load({{"mongo.yaml", text}});
//   weir::envoy::Response response;            // used again from call to call
//   service->ShouldRateLimit(request, response);
//
// Thread-safe. No lock is taken and, once buffers have grown, nothing is allocated in a call, but
// for dynamic metadata and for the first hit of a stat path made from runtime values. With a shared
// store a call waits for that; if it cannot be asked the call fails (Failure::kStore), so that
// Envoy does what it is told to do then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/shared_store.h"
#include "weir/time.h"

#include "envoy/rls_types.h"

namespace weir::envoy {

class RlsStats;

struct ConfigFile {
  std::string name;
  std::string yaml;
};

struct RlsOptions {
  // Counting.
  size_t memory_bytes = size_t{256} << 20;
  std::string cache_key_prefix{};
  double near_limit_ratio = 0.8;
  bool all_or_nothing = false;  // STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
  bool local_cache = false;     // only for its counter: the store is local anyway
  // Matching.
  bool merge_domain_configs = false;
  bool strict_matching = false;  // key and value apart, in look-ups and counters
  // Answers.
  bool global_shadow_mode = false;
  bool global_quota_mode = false;
  bool response_dynamic_metadata = false;
  bool response_headers = false;
  std::string limit_header = "RateLimit-Limit";
  std::string remaining_header = "RateLimit-Remaining";
  std::string reset_header = "RateLimit-Reset";

  const Clock* clock = nullptr;  // nullptr: SystemClock()
  // Given: all is counted there, together with other nodes, and a call takes as long as it takes.
  std::shared_ptr<SharedStore> shared = nullptr;
};

class RlsService {
 public:
  static Result<std::unique_ptr<RlsService>> Create(const RlsOptions& options);

  ~RlsService();
  RlsService(const RlsService&) = delete;
  RlsService& operator=(const RlsService&) = delete;

  // Takes all files as the new configuration, or keeps the old one; the error is the text of
  // envoyproxy/ratelimit. What was counted stays.
  Result<void> Load(std::span<const ConfigFile> files);

  // Never throws. `response` is overwritten.
  void ShouldRateLimit(const Request& request, Response& response) noexcept;

  [[nodiscard]] bool has_config() const noexcept;
  // False for a configuration of no domain as well (HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED).
  [[nodiscard]] bool has_domains() const noexcept;
  // What /rlconfig shows: a line for each limit.
  [[nodiscard]] std::string DumpConfig() const;

  [[nodiscard]] RlsStats& stats() noexcept;

  struct State;  // internal

 private:
  explicit RlsService(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weir::envoy
