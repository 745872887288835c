// The algorithms of the tour: what each is called, promises and costs, and how it does on a given
// traffic. Decisions are taken by the library's public API and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/time.h"

#include "apps/weir/simulate/statistics.h"

namespace weir::simulate {

enum class Kind : uint8_t {
  kTokenBucket,
  kLeakyBucket,
  kFixedWindow,
  kFirstHit,
  kSlidingWindow,
  kMinGap,
};

struct KindInfo {
  Kind kind;
  std::string_view name;
  std::string_view line;     // what it does
  std::string_view promise;  // what it keeps to, beside its worst window
  bool takes_burst;
};

[[nodiscard]] std::span<const KindInfo> AllKinds() noexcept;
[[nodiscard]] const KindInfo& Info(Kind kind) noexcept;
[[nodiscard]] std::optional<Kind> FindKind(std::string_view name) noexcept;

// The limit that all contenders share.
struct Limit {
  int64_t limit = 100;
  Duration window = std::chrono::minutes(1);
};

// One algorithm with its settings.
class Contender {
 public:
  // `burst` is for buckets; others ignore it. The error is the library's own, naming the field.
  static Result<Contender> Create(Kind kind, const Limit& limit, int64_t burst);

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  // Unique among contenders that differ: "token-bucket", or "token-bucket:50" if it was asked for
  // with a burst of its own.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // The setting that is its own: "burst 20", "gap 600 ms"; may be empty.
  [[nodiscard]] std::string Setting() const;
  [[nodiscard]] const Quota& quota() const noexcept { return quota_; }

  // The most it admits in any window (t - W, t], whatever the traffic.
  [[nodiscard]] uint64_t WorstPossible() const noexcept;
  // The same as a formula: "2L", "B+L-1".
  [[nodiscard]] std::string_view Formula() const noexcept;

  // Decides all arrivals in order, for one key. The first arrival's window is aligned: time 0 is
  // an edge of epoch-aligned windows.
  [[nodiscard]] Result<Decisions> Decide(std::span<const Duration> arrivals) const;

 private:
  Contender(Kind kind, const Limit& limit, Quota quota);

  Kind kind_;
  Limit limit_;
  std::string name_;
  Quota quota_;
};

// How one contender did on one traffic.
struct Score {
  uint64_t admitted = 0;
  uint64_t denied = 0;
  uint64_t worst_window = 0;
  WrongDecisions wrong;
  std::vector<uint64_t> admitted_bins;
};

[[nodiscard]] Result<Score> Run(const Contender& contender, std::span<const Duration> arrivals,
                                const Limit& limit, Duration duration, size_t bins);

}  // namespace weir::simulate
