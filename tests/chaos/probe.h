// What the machine itself costs: a thread on each processor wakes every millisecond and notes when
// it was kept waiting. Time that a decision took while the machine stood still is not weir's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::chaos {

// Instants are nanoseconds of the machine's monotonic clock.
[[nodiscard]] int64_t NowNs();
void WaitUntil(int64_t instant_ns);
void WaitFor(int64_t ns);

inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;

struct Stall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class Probe {
 public:
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Forgets what was; a row begins.
  void Clear();
  // How much of [begin, end] at least one processor stood still, by stalls of a millisecond or
  // more.
  [[nodiscard]] int64_t StalledNs(int64_t begin_ns, int64_t end_ns) const;

  struct Summary {
    size_t stalls = 0;  // over 5 ms
    int64_t longest_ns = 0;
  };
  [[nodiscard]] Summary Sum() const;

 private:
  void Run(size_t processor);

  mutable std::mutex mutex_;
  std::vector<Stall> stalls_;  // in the order of their ends, nearly
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weir::chaos
