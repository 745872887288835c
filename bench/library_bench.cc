// The library suite: weir's memory limiter against what one would otherwise use, in one run.
//
//   library_bench [--quick] [--go=PROGRAM] [--node=SCRIPT]
//
// Started by bench/suites/library, which builds the peers in other languages. What is measured and
// why it is fair: bench/README.md.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limiter.h"

#include "bench/baselines.h"
#include "bench/latency.h"
#include "bench/measure.h"
#include "bench/one_key_rows.h"
#include "bench/peer_process.h"
#include "bench/record_rows.h"
#include "bench/rows.h"
#include "bench/sketch_rows.h"
#include "bench/subjects.h"
#include "bench/workload.h"

namespace weir::bench {
namespace {

constexpr uint64_t kManyKeys = 5'000'000;
constexpr uint64_t kFewerKeys = 1'000'000;
constexpr size_t kThreads = 2;

// What the store is given for each key that will be live in it. The throughput cases run on this
// very table: speed is not bought with memory that the rows on memory do not show.
constexpr size_t kBucketBytes = 15;

// In how many parts the races of the bars are spread over the suite: a neighbour who is busy for
// ten seconds shall not be what one row shows and no other.
constexpr int kParts = 6;

constexpr const char* kMutexMap = "mutex map";
constexpr const char* kGo = "Go x/time/rate";
constexpr const char* kNode = "rate-limiter-flexible";

struct Options {
  Effort effort{.turns = 40, .warm_up_runs = 20, .timed_runs = 20, .run_ns = 5'000'000};
  std::string go_program;
  std::string node_script;
};

using Keys = std::span<const std::string_view>;

// Five million keys, so that nearly every decision meets memory that is in no cache.
class ManyKeys {
 public:
  ManyKeys(const Effort& effort, Limiter& limiter, MutexMap& map) {
    const auto on_all = [](auto decide) { return OnRandomKeys(kThreads, kManyKeys, 1, decide); };
    std::vector<Contender> contenders;
    contenders.push_back(on_all([&](Keys keys) { return Ours::Batch(limiter, keys); }));
    contenders.push_back(Contender(kThreads, [this](size_t count) {
      return RunThreads(kThreads, [&](size_t) { lines_.Touch(count); });
    }));
    contenders.push_back(on_all([&](Keys keys) { return Ours::OneByOne(limiter, keys); }));
    contenders.push_back(on_all([&](Keys keys) { return Theirs::OneByOne(map, keys); }));
    contenders.push_back(on_all([&](Keys keys) { return Ours::WithClock(limiter, keys); }));
    contenders.push_back(on_all([&](Keys keys) { return Theirs::WithClock(map, keys); }));
    race_.emplace(std::move(contenders), effort);
  }

  ManyKeys(const ManyKeys&) = delete;
  ManyKeys& operator=(const ManyKeys&) = delete;

  [[nodiscard]] Race& race() { return *race_; }

  void Print(const Rows& rows) {
    const std::vector<Rate> rates = race_->Finish();
    rows.PrintBest("batch, 5M keys, 2 threads", rates[0], kMutexMap, rates[3], 32);
    rows.PrintBest("batch, 5M keys, 2 threads", rates[0], "floor: locked RMW", rates[1], 0.5);
    rows.PrintBest("Check(key, now), 5M keys, 2 threads", rates[2], kMutexMap, rates[3], 12);
    rows.PrintBest("Check(key), 5M keys, 2 threads", rates[4], kMutexMap, rates[5], 4.5);
  }

 private:
  RandomLines lines_{kManyKeys * kBucketBytes};
  std::optional<Race> race_;
};

// `allowed_bytes` is the bar. The row is printed only when every key is really there.
double PrintMemory(const Rows& rows, const std::string& what, Limiter& limiter,
                   double allowed_bytes) {
  const uint64_t live = CountLiveKeys(limiter, kManyKeys);
  // Two keys may share a state when their tags collide; with five million keys that is the odd
  // pair.
  if (live + 16 < kManyKeys) {
    Fail(what + ": only " + std::to_string(live) + " keys of " + std::to_string(kManyKeys) +
         " are live in a state of their own");
  }
  const StoreStats stats = limiter.store()->Stats();
  if (stats.overflow != 0) {
    Fail(what + ": " + std::to_string(stats.overflow) + " decisions found no slot");
  }
  const double bytes = static_cast<double>(stats.budget_bytes) / static_cast<double>(live);
  rows.Print({.what = what,
              .unit = "B/key",
              .better = Better::kLess,
              .ours = bytes,
              .peer = "at most",
              .theirs = allowed_bytes,
              .bar = 1});
  return bytes;
}

// Lines of windows have four slots, so which budget is enough depends on how the secret of this run
// spreads the keys: the smallest of these in which every key finds a slot is shown.
void MeasureWindowMemory(const Rows& rows) {
  constexpr size_t kBytesTried[] = {26, 28, 30, 32, 36, 40};
  for (const size_t bytes : kBytesTried) {
    std::optional<Limiter> limiter =
        TryFilledLimiter(WindowQuota(), kManyKeys * bytes, kThreads, kManyKeys);
    if (limiter) {
      PrintMemory(rows, "bytes per live key, sliding window", *limiter, 32);
      return;
    }
  }
  Fail("no budget tried was enough for windows");
}

// One million keys and one thread, because the peers in other languages are not made for more.
// Their calls read the clock, so ours does too.
void MeasureOtherLanguages(const Rows& rows, const Options& options) {
  Limiter limiter = FilledLimiter(BucketQuota(), kFewerKeys * kBucketBytes, 1, kFewerKeys);
  const std::string key_count = std::to_string(kFewerKeys);
  const auto command = [&](std::vector<std::string> words) {
    if (words.back().empty()) {
      return std::vector<std::string>{};
    }
    words.push_back(key_count);
    return words;
  };
  const auto go = PeerProcess::Start(kGo, command({options.go_program}));
  const auto node = PeerProcess::Start(kNode, command({"node", options.node_script}));
  std::vector<Contender> contenders;
  contenders.push_back(
      OnRandomKeys(1, kFewerKeys, 1, [&](Keys keys) { return Ours::WithClock(limiter, keys); }));
  for (PeerProcess* peer : {go.get(), node.get()}) {
    if (peer != nullptr) {
      contenders.push_back(Contender(1, [=](size_t count) { return peer->Run(count); }));
    }
  }
  const std::vector<Rate> rates = Race(std::move(contenders), options.effort).Finish();
  const std::optional<Rate> go_rate = go ? std::optional(rates[1]) : std::nullopt;
  const std::optional<Rate> node_rate = node ? std::optional(rates.back()) : std::nullopt;
  const std::string what = "Check(key), 1M keys, 1 thread";
  rows.PrintBest(what, rates[0], kGo, go_rate, 1);
  rows.PrintBest(what, rates[0], kNode, node_rate, 1);
}

void MeasureLatency(const Rows& rows, Limiter& limiter, MutexMap& map) {
  constexpr size_t kSamples = 1'000'000;
  constexpr size_t kTurns = 20;
  const TickTimer timer;
  Latencies ours(timer);
  Latencies theirs(timer);
  Timestamp now = limiter.Now();
  int64_t now_ns = 0;
  RunThreads(1, [&](size_t) {
    for (size_t turn = 0; turn < kTurns; ++turn) {
      ours.Sample(
          kManyKeys, kSamples / kTurns, [&] { now = limiter.Now(); },
          [&](std::string_view key) { return limiter.Check(key, now).allowed(); });
      theirs.Sample(
          kManyKeys, kSamples / kTurns, [&] { now_ns = SteadyNs(); },
          [&](std::string_view key) { return map.Check(key, now_ns).allowed; });
    }
  });
  std::fprintf(stderr,
               "library_bench: latency: %.1f ns, the cost of the two clock reads, taken off each\n",
               timer.own_ns());
  const std::pair<const char*, double> shares[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};
  for (const auto& [name, share] : shares) {
    rows.Print({.what = std::string("latency ") + name + ", Check(key, now), 5M keys, 1 thread",
                .unit = "ns",
                .better = Better::kLess,
                .ours = ours.PercentileNs(share),
                .peer = kMutexMap,
                .theirs = theirs.PercentileNs(share)});
  }
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      options.effort = {.turns = 6, .warm_up_runs = 10, .timed_runs = 15, .run_ns = 5'000'000};
    } else if (word.substr(0, 5) == "--go=") {
      options.go_program = word.substr(5);
    } else if (word.substr(0, 7) == "--node=") {
      options.node_script = word.substr(7);
    } else {
      Fail("usage: library_bench [--quick] [--go=PROGRAM] [--node=SCRIPT]");
    }
  }
  return options;
}

void RunSuite(const Options& options) {
  const Rows rows("library");
  const std::string memory = "bytes per live key, token bucket";
  Limiter limiter = FilledLimiter(BucketQuota(), kManyKeys * kBucketBytes, kThreads, kManyKeys);
  const double bytes = PrintMemory(rows, memory, limiter, 16);
  if (!limiter.store()->Stats().huge_pages) {
    std::fprintf(stderr, "library_bench: the table was given no huge pages: expect less\n");
  }
  const size_t before = ResidentBytes();
  MutexMap map(std::chrono::nanoseconds(kInterval).count(), kBurst);
  Fill(kThreads, kManyKeys, [&](Keys keys) { return Theirs::OneByOne(map, keys); });
  rows.Print(
      {.what = memory,
       .unit = "B/key",
       .better = Better::kLess,
       .ours = bytes,
       .peer = kMutexMap,
       .theirs = static_cast<double>(ResidentBytes() - before) / static_cast<double>(map.size())});
  ManyKeys many(options.effort, limiter, map);
  DeniedKey denied(options.effort, kThreads);
  HotKey hot(options.effort, kThreads);
  auto spread = [&, part = 0]() mutable {
    ++part;
    for (Race* race : {&many.race(), &denied.race(), &hot.race()}) {
      race->RunUpTo(part, kParts);
    }
  };
  spread();
  MeasureLatency(rows, limiter, map);
  spread();
  MeasureSketch(rows, options.effort, limiter, kManyKeys, kThreads);
  spread();
  MeasureCollisions(rows);
  MeasureWindowMemory(rows);
  spread();
  MeasureHolds(rows, options.effort);
  spread();
  MeasureSlidingLog(rows, options.effort);
  spread();
  many.Print(rows);
  denied.Print(rows);
  hot.Print(rows);
  MeasureOtherLanguages(rows, options);
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
#if !defined(__OPTIMIZE__)
  std::fprintf(stderr, "library_bench: built without optimisation: the figures mean nothing\n");
#endif
  weir::bench::RunSuite(weir::bench::ParseOptions(argc, argv));
  return 0;
}
