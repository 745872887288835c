// The algorithms of the tour: what each is called, promises and costs, and how it does on a given
// workload. Decisions are taken by the library's public API and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/store.h"
#include "weir/time.h"

#include "apps/weir/simulate/statistics.h"
#include "apps/weir/simulate/workload.h"

namespace weir::simulate {

// How long the requests of a tour are at work.
struct Service {
  Duration shortest{1};
  Duration mean{1};
  Duration longest{1};
};

// The limit that all contenders share, and what a limit on those at work is made of.
struct Limit {
  int64_t limit = 100;
  Duration window = std::chrono::minutes(1);
  Service service = {};
};

// What a worst window depends on.
struct BoundInput {
  uint64_t limit;
  uint64_t burst;
  uint64_t largest_cost;
  uint64_t starts_a_place;  // most in a window, of what is at work for as long as the shortest is
};

// The number that a contender may be asked for with, as in token-bucket:20.
enum class OwnNumber : uint8_t { kNone, kBurst, kPlaces };

// One algorithm of the library. Adding one is a line of the table in contender.cc.
struct KindInfo {
  std::string_view name;
  std::string_view line;     // what it does
  std::string_view promise;  // what it keeps to, beside its worst window
  OwnNumber number;
  bool counts_units;                                          // false: requests, whatever they cost
  Result<Quota> (*make)(const Limit& limit, int64_t number);  // 0: what is usual
  std::string_view formula;  // of the most units in any window (t - W, t], whatever the traffic
  uint64_t (*worst)(const BoundInput& in);
};

[[nodiscard]] std::span<const KindInfo> AllKinds() noexcept;
// nullptr: no such name.
[[nodiscard]] const KindInfo* FindKind(std::string_view name) noexcept;
// Whether it makes sense beside the others: not every algorithm can hold every limit (a calendar
// quota knows days and weeks only), and what counts requests is no limit on units.
[[nodiscard]] bool Applies(const KindInfo& kind, const Limit& limit, uint64_t largest_cost);

// One algorithm with its settings.
class Contender {
 public:
  // `number` is for kinds that have one; others ignore it. The error is the library's own, naming
  // the field.
  static Result<Contender> Create(const KindInfo& kind, const Limit& limit, int64_t number);

  [[nodiscard]] const KindInfo& kind() const noexcept { return *kind_; }
  // Unique among contenders that differ: "token-bucket", or "token-bucket:50" if it was asked for
  // with a number of its own.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // The setting that is its own: "burst 20", "10 at once"; may be empty.
  [[nodiscard]] std::string Setting() const;
  [[nodiscard]] const Quota& quota() const noexcept { return quota_; }
  // Tenths of a byte of memory that a key takes in a table with room to spare.
  [[nodiscard]] uint64_t DecibytesPerKey() const noexcept { return decibytes_; }

  // The most it admits in any window (t - W, t], whatever the traffic.
  [[nodiscard]] uint64_t WorstPossible(uint64_t largest_cost = 1) const noexcept;

  // Whether it limits what is at work at the same time, rather than what starts.
  [[nodiscard]] bool Holds() const noexcept {
    return quota_.algorithm() == Algorithm::kConcurrency;
  }

  // Whether it delays what it admits.
  [[nodiscard]] bool Delays() const noexcept { return quota_.undelayed() != 0; }

  // Decides all requests in order. Time 0 is an edge of epoch-aligned windows. `waits`, if given,
  // is filled with how long each has to wait before it starts.
  [[nodiscard]] Result<Decisions> Decide(const Workload& workload,
                                         std::vector<Duration>* waits = nullptr) const;

 private:
  Contender(const KindInfo& kind, const Limit& limit, Quota quota, uint64_t decibytes);

  [[nodiscard]] MemoryOptions StoreFor(const Workload& workload, const Clock& clock) const;

  const KindInfo* kind_;
  Limit limit_;
  std::string name_;
  Quota quota_;
  uint64_t decibytes_;
};

}  // namespace weir::simulate
