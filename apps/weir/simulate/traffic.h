// Deterministic traffic for the tour: the same seed gives the same requests on every machine.
// All arithmetic is on integers and nothing comes from <random>, whose distributions differ from
// one standard library to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weir/time.h"

namespace weir::simulate {

enum class Traffic : uint8_t {
  kSteady,   // even gaps
  kPoisson,  // independent users: exponential gaps
  kBursts,   // a batch client: a crowd at random moments, silence between
  kOnOff,    // a job that works for a while and then rests
  kEdge,     // an adversary who knows when the window turns
};

struct TrafficInfo {
  Traffic traffic;
  std::string_view name;
  std::string_view line;  // what it is, in one line
};

// Every traffic, in the order of the tour.
[[nodiscard]] std::span<const TrafficInfo> AllTraffic() noexcept;
[[nodiscard]] const TrafficInfo& Info(Traffic traffic) noexcept;
[[nodiscard]] std::optional<Traffic> FindTraffic(std::string_view name) noexcept;

struct TrafficSpec {
  int64_t limit = 100;
  Duration window = std::chrono::minutes(1);
  Duration duration = std::chrono::minutes(4);
  int64_t rate_milli = 1500;  // offered, in thousandths of limit per window
  uint64_t seed = 1;
};

// The most requests one run may have; CountCeiling says what a spec may come to.
inline constexpr uint64_t kMaxRequests = 25'000'000;

// Not fewer than Generate returns for any traffic.
[[nodiscard]] uint64_t CountCeiling(const TrafficSpec& spec) noexcept;

// When requests arrive, counted from the start, in order, all below spec.duration.
// REQUIRES: limit, window, duration and rate_milli above 0; CountCeiling(spec) <= kMaxRequests.
[[nodiscard]] std::vector<Duration> Generate(Traffic traffic, const TrafficSpec& spec);

// SplitMix64: small, fast, and specified to the bit.
class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}

  uint64_t Next() noexcept;
  // Uniform in [0, below).
  uint64_t Below(uint64_t below) noexcept;
  // Exponential with this mean, by von Neumann's method: it only compares uniform numbers, so no
  // logarithm (whose last bit differs between math libraries) is needed.
  Duration Exponential(Duration mean) noexcept;

 private:
  uint64_t state_;
};

}  // namespace weir::simulate
