// One request at work: its descriptors and what they have come to. Only for rls_check.cc, which
// decides, and rls_answer.cc, which says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weir/limiter.h"
#include "weir/shared_store.h"

#include "envoy/counter_table.h"
#include "envoy/descriptor_config.h"
#include "envoy/rls_service.h"
#include "envoy/rls_stats.h"

namespace weir::envoy {

// One descriptor of a request.
struct Work {
  enum class Kind : uint8_t { kNoLimit, kUnlimited, kWindow, kOwnQuota };

  Kind kind = Kind::kNoLimit;
  bool shadow_mode = false;
  bool quota_mode = false;
  bool count_refused = true;
  const LimitRule* rule = nullptr;      // nullptr with a limit: the client brought it along
  Limiter* limiter = nullptr;           // of an own quota
  const SharedQuota* shared = nullptr;  // with a shared store: what counts there
  StatPath* stats = nullptr;
  uint32_t limit = 0;
  Unit unit = Unit::kUnknown;
  uint64_t hits = 0;
  size_t key_begin = 0;
  size_t key_size = 0;

  // The outcome.
  bool over = false;
  uint32_t remaining = 0;
  Count count;
  uint64_t against = 0;  // what the count is compared with
  Duration reset{};
  Receipt receipt;
  SharedReceipt shared_receipt;

  [[nodiscard]] bool IsCounted() const { return kind == Kind::kWindow || kind == Kind::kOwnQuota; }
};

// Memory of one request, used again.
struct Scratch {
  std::vector<Work> works;
  std::string keys;
  std::string path;
  LookUp found;
  std::vector<uint32_t> replaced;
  std::vector<SharedAsk> asks;
};

// The request as a whole, by the outcomes so far.
[[nodiscard]] bool IsRefused(std::span<const Work> works, bool global_quota_mode);

// All of the response but for failures, from what the descriptors have come to.
void Answer(const RlsOptions& options, const Request& request, std::span<const Work> works,
            RlsStats& stats, Response& response);

}  // namespace weir::envoy
