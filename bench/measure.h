// Measuring on a machine that is not quiet. Contenders take turns. A turn begins with a warm-up
// that is not timed, long enough to bring back what the others drove out of the caches; then come
// short runs of the same length for all, and the best run of each contender counts: a disturbance
// lengthens a run and never shortens it, and all have had the same number of chances to be left
// alone. Where threads contend for one thing that is not so: a thread that is held up leaves the
// others undisturbed. There the median run counts. The turns of a race may be spread over the whole
// suite: a neighbour can be busy for longer than a race takes, and how two threads get on with one
// lock changes by a factor of two from second to second.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::bench {

// The result would be worth nothing: say why and stop.
[[noreturn]] inline void Fail(const std::string& reason) {
  std::fprintf(stderr, "library_bench: %s\n", reason.c_str());
  std::exit(1);
}

inline int64_t SteadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The processors this process may use, which need not begin at 0.
inline const std::vector<int>& UsableCpus() {
  static const std::vector<int> cpus = [] {
    std::vector<int> found;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
          found.push_back(cpu);
        }
      }
    }
    return found;
  }();
  return cpus;
}

inline void PinTo(size_t worker) {
  const std::vector<int>& cpus = UsableCpus();
  if (worker >= cpus.size()) {
    Fail("fewer processors than worker threads");
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[worker], &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Runs body(worker) on pinned threads that start together; the nanoseconds from the first start to
// the last end, so that a thread that came late does not make the run look shorter. They wait for
// one another and not for the caller, who would need a processor to say so: of two threads that
// are meant to contend one could be done before the other has begun.
inline int64_t RunThreads(size_t threads, const std::function<void(size_t)>& body) {
  UsableCpus();  // read before anything is pinned
  std::atomic<size_t> ready{0};
  std::vector<int64_t> starts(threads);
  std::vector<int64_t> ends(threads);
  std::vector<std::thread> workers;
  for (size_t worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      PinTo(worker);
      ready.fetch_add(1);
      while (ready.load(std::memory_order_acquire) < threads) {
      }
      starts[worker] = SteadyNs();
      body(worker);
      ends[worker] = SteadyNs();
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(starts.begin(), starts.end());
}

// What a contender did per second, all its threads together.
struct Rate {
  double best = 0;
  double median = 0;
};

class Contender {
 public:
  // Makes `count` decisions a thread and returns the nanoseconds that took.
  using Run = std::function<int64_t(size_t count)>;

  Contender(size_t threads, Run run) : threads_(threads), run_(std::move(run)) {}

  // Grows the count until a run takes about `length_ns`. The best of a few, since a run that was
  // held up would make all that follow too short to be worth anything.
  void Calibrate(int64_t length_ns) {
    count_ = 1024;
    while (true) {
      int64_t taken = std::numeric_limits<int64_t>::max();
      for (int tries = 0; tries < 5; ++tries) {
        taken = std::min(taken, std::max<int64_t>(run_(count_), 1));
      }
      if (taken >= length_ns / 4) {
        const double scale = static_cast<double>(length_ns) / static_cast<double>(taken);
        count_ = std::max<size_t>(static_cast<size_t>(static_cast<double>(count_) * scale), 1024);
        return;
      }
      count_ *= 4;
    }
  }

  // As long as `runs` timed runs.
  void WarmUp(int runs) { run_(count_ * static_cast<size_t>(runs)); }

  void RunTimed() {
    const auto taken = static_cast<double>(std::max<int64_t>(run_(count_), 1));
    per_second_.push_back(static_cast<double>(count_ * threads_) * 1e9 / taken);
  }

  [[nodiscard]] Rate rate() const {
    std::vector<double> sorted = per_second_;
    std::sort(sorted.begin(), sorted.end());
    return {sorted.back(), sorted[sorted.size() / 2]};
  }

 private:
  size_t threads_;
  Run run_;
  size_t count_ = 0;
  std::vector<double> per_second_;
};

struct Effort {
  int turns;
  int warm_up_runs;
  int timed_runs;
  int64_t run_ns;
};

// All of them in turn. REQUIRES: at least one contender, one turn and one run.
class Race {
 public:
  Race(std::vector<Contender> contenders, Effort effort)
      : contenders_(std::move(contenders)), effort_(effort) {
    for (Contender& contender : contenders_) {
      contender.Calibrate(effort_.run_ns);
    }
  }

  // The turns up to this part of all, for a race that is spread over a longer time.
  void RunUpTo(int part, int parts) {
    for (; turns_ * parts < effort_.turns * part; ++turns_) {
      for (Contender& contender : contenders_) {
        contender.WarmUp(effort_.warm_up_runs);
        for (int run = 0; run < effort_.timed_runs; ++run) {
          contender.RunTimed();
        }
      }
    }
  }

  // What they did, after the turns that are left.
  [[nodiscard]] std::vector<Rate> Finish() {
    RunUpTo(1, 1);
    std::vector<Rate> rates;
    rates.reserve(contenders_.size());
    for (const Contender& contender : contenders_) {
      rates.push_back(contender.rate());
    }
    return rates;
  }

 private:
  std::vector<Contender> contenders_;
  Effort effort_;
  int turns_ = 0;
};

}  // namespace weir::bench
