#include "apps/weir/simulate/traffic.h"

#include <algorithm>
#include <array>

namespace weir::simulate {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::array kTraffic = {
    TrafficInfo{Traffic::kSteady, "steady", "even gaps, like a metronome"},
    TrafficInfo{Traffic::kPoisson, "poisson", "many independent users, as most real traffic"},
    TrafficInfo{Traffic::kBursts, "bursts", "a batch client: crowds at random moments"},
    TrafficInfo{Traffic::kOnOff, "on-off", "a job that works hard, rests, works hard again"},
    TrafficInfo{Traffic::kEdge, "edge", "an adversary who knows when the window turns"},
};

// a * b / c without overflow on the way. REQUIRES: the result fits.
uint64_t MulDiv(uint64_t a, uint64_t b, uint64_t c) noexcept {
  return static_cast<uint64_t>(Wide{a} * b / c);
}

uint64_t Ns(Duration d) noexcept {
  return static_cast<uint64_t>(d.count());
}

Duration FromNs(uint64_t ns) noexcept {
  return Duration(static_cast<int64_t>(ns));
}

// Requests offered in `span` at the spec's rate, rounded down.
uint64_t Offered(const TrafficSpec& spec, uint64_t span_ns) noexcept {
  const uint64_t per_window_milli =
      static_cast<uint64_t>(spec.limit) * static_cast<uint64_t>(spec.rate_milli);
  return static_cast<uint64_t>(Wide{per_window_milli} * span_ns / (Wide{1000} * Ns(spec.window)));
}

// `count` requests evenly over [from, from + span), cut at the end of the run.
void AddEvenly(std::vector<Duration>& out, const TrafficSpec& spec, uint64_t from_ns,
               uint64_t span_ns, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = from_ns + MulDiv(span_ns, i, count);
    if (at >= Ns(spec.duration))
      return;
    out.push_back(FromNs(at));
  }
}

// A Poisson process of this mean gap over [from, to).
void AddPoisson(std::vector<Duration>& out, Random& random, uint64_t from_ns, uint64_t to_ns,
                Duration mean_gap) {
  uint64_t at = from_ns;
  while (true) {
    at += Ns(random.Exponential(mean_gap));
    if (at >= to_ns)
      return;
    out.push_back(FromNs(at));
  }
}

// The mean gap at `boost_milli` thousandths of the spec's rate; at least a nanosecond.
Duration MeanGap(const TrafficSpec& spec, uint64_t boost_milli) noexcept {
  const Wide per_window_micro = Wide{static_cast<uint64_t>(spec.limit)} *
                                static_cast<uint64_t>(spec.rate_milli) * boost_milli;
  const auto gap = static_cast<uint64_t>(Wide{Ns(spec.window)} * 1'000'000 / per_window_micro);
  return FromNs(std::max<uint64_t>(gap, 1));
}

void Steady(std::vector<Duration>& out, const TrafficSpec& spec) {
  AddEvenly(out, spec, 0, Ns(spec.duration), Offered(spec, Ns(spec.duration)));
}

// Two crowds a window on average, each half to one and a half times the mean size, each somewhere
// in its half window and spread over a sixtieth of a window.
void Bursts(std::vector<Duration>& out, const TrafficSpec& spec, Random& random) {
  const uint64_t slot = std::max<uint64_t>(Ns(spec.window) / 2, 1);
  const uint64_t spread = Ns(spec.window) / 60;
  const uint64_t mean = std::max<uint64_t>(Offered(spec, slot), 1);
  for (uint64_t from = 0; from < Ns(spec.duration); from += slot) {
    const uint64_t start = from + random.Below(std::max<uint64_t>(slot - spread, 1));
    const uint64_t size = std::max<uint64_t>(mean / 2 + random.Below(mean + 1), 1);
    AddEvenly(out, spec, start, spread, size);
  }
}

// Works for half a window at 2.5 times the mean rate, rests for three quarters. The cycle of one
// and a quarter windows meets the window's edge at a different phase each time.
void OnOff(std::vector<Duration>& out, const TrafficSpec& spec, Random& random) {
  const uint64_t quarter = std::max<uint64_t>(Ns(spec.window) / 4, 1);
  const Duration gap = MeanGap(spec, 2500);
  for (uint64_t from = quarter; from < Ns(spec.duration); from += 5 * quarter) {
    AddPoisson(out, random, from, std::min(from + 2 * quarter, Ns(spec.duration)), gap);
  }
}

// One pair of windows [A, A + W), [A + W, A + 2W) after another. At A a single knock, which opens
// a window that starts at the first hit; the very first is left out, so that the window before the
// first edge can be filled to the last unit. Just before A + W the whole limit, just after it the
// whole limit again (fixed windows fall here), then patient polling (buckets and sliding counters
// leak here), which stops just before a window that the first burst opened closes. At a rate of
// at least 1 this reaches the worst window of every algorithm here, except that a minimum gap
// longer than the polling's own gap makes it skip beats.
void Edge(std::vector<Duration>& out, const TrafficSpec& spec) {
  const uint64_t window = Ns(spec.window);
  const uint64_t blink = window / 200;
  const auto limit = static_cast<uint64_t>(spec.limit);
  for (uint64_t start = 0; start < Ns(spec.duration); start += 2 * window) {
    if (start > 0)
      out.push_back(FromNs(start));
    const uint64_t edge = start + window;
    AddEvenly(out, spec, edge - blink, blink, limit);
    AddEvenly(out, spec, edge, blink, limit);
    const uint64_t polling = window - 2 * blink - blink / 5;
    AddEvenly(out, spec, edge + blink, polling, Offered(spec, polling));
    AddEvenly(out, spec, edge + blink + polling, 0, 1);
  }
}

}  // namespace

std::span<const TrafficInfo> AllTraffic() noexcept {
  return kTraffic;
}

const TrafficInfo& Info(Traffic traffic) noexcept {
  return kTraffic[static_cast<size_t>(traffic)];
}

std::optional<Traffic> FindTraffic(std::string_view name) noexcept {
  for (const TrafficInfo& info : kTraffic) {
    if (info.name == name)
      return info.traffic;
  }
  return std::nullopt;
}

uint64_t CountCeiling(const TrafficSpec& spec) noexcept {
  // Chance adds to the mean: bursts are at most half as large again, and six standard deviations
  // of a Poisson count n are below n + 20 more. The adversary adds two limits a pair of windows.
  const Wide windows = Ns(spec.duration) / std::max<uint64_t>(Ns(spec.window), 1) + 2;
  const Wide mean =
      Wide{static_cast<uint64_t>(spec.limit)} * static_cast<uint64_t>(spec.rate_milli) / 1000;
  const Wide total = windows * (2 * mean + static_cast<uint64_t>(spec.limit) + 20);
  return total > ~uint64_t{0} ? ~uint64_t{0} : static_cast<uint64_t>(total);
}

std::vector<Duration> Generate(Traffic traffic, const TrafficSpec& spec) {
  std::vector<Duration> out;
  // Each traffic has a stream of its own, so that choosing fewer does not change the others. The
  // seed goes through the generator once: next to each other, raw seeds would give streams that
  // are the same but for a shift.
  Random random(Random(Random(spec.seed).Next() + static_cast<uint64_t>(traffic)).Next());
  switch (traffic) {
    case Traffic::kSteady:
      Steady(out, spec);
      break;
    case Traffic::kPoisson:
      AddPoisson(out, random, 0, Ns(spec.duration), MeanGap(spec, 1000));
      break;
    case Traffic::kBursts:
      Bursts(out, spec, random);
      break;
    case Traffic::kOnOff:
      OnOff(out, spec, random);
      break;
    case Traffic::kEdge:
      Edge(out, spec);
      break;
  }
  return out;
}

uint64_t Random::Next() noexcept {
  state_ += 0x9E3779B97F4A7C15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t Random::Below(uint64_t below) noexcept {
  // The bias of the plain product is below / 2^64: nothing that a picture could show.
  return static_cast<uint64_t>(Wide{Next()} * below >> 64);
}

Duration Random::Exponential(Duration mean) noexcept {
  // A run of falling numbers u1 > u2 > ... has odd length with probability e^-u1: keep u1 then,
  // and otherwise try again one whole mean later.
  uint64_t whole = 0;
  while (true) {
    const uint64_t first = Next();
    uint64_t last = first;
    bool odd = true;
    while (true) {
      const uint64_t next = Next();
      if (next >= last)
        break;
      last = next;
      odd = !odd;
    }
    if (odd) {
      const auto part = static_cast<uint64_t>(Wide{first} * Ns(mean) >> 64);
      return FromNs(whole * Ns(mean) + part);
    }
    ++whole;
  }
}

}  // namespace weir::simulate
