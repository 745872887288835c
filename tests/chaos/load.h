// Requests that come at a rate, whatever becomes of the ones before, and what was decided on each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/decision.h"
#include "weir/shared_store.h"

#include "shared/fleet_store.h"

namespace weir::chaos {

struct Sample {
  int64_t start_ns = 0;  // asked
  int64_t end_ns = 0;    // answered
  uint32_t key = 0;      // its index
  uint8_t node = 0;      // of weir
  bool allowed = false;
  Basis basis = Basis::kStore;
  StoreTrouble trouble = StoreTrouble::kNone;

  // The store's word, this moment's or remembered.
  [[nodiscard]] bool by_store() const noexcept {
    return basis == Basis::kStore || basis == Basis::kCached;
  }
  [[nodiscard]] int64_t took_ns() const noexcept { return end_ns - start_ns; }
};

struct LoadOptions {
  std::vector<shared::FleetStore*> nodes;
  std::string quota;
  uint64_t scope = 1;
  std::vector<std::string> keys;
  double per_second = 0;  // all nodes and keys together
  OnStoreFailure on_failure = OnStoreFailure::kLocal;
  bool ids = false;  // each request with an id of its own
  // Of one node, waiting for an answer: past that the next ones wait their turn. For rows that
  // judge counts, since a node of Redis is given 128 questions at once and no more.
  uint64_t most_under_way = ~uint64_t{0};
};

// One thread a node asks, its store's thread answers. Every key is asked equally often by every
// node.
class Load {
 public:
  explicit Load(const LoadOptions& options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // No more questions; waits for the answers to all that were asked. In the order of their ends,
  // node by node.
  std::vector<Sample> Stop();

 private:
  class Source;
  std::vector<std::unique_ptr<Source>> sources_;
};

// What was admitted beyond burst + rate * time, in the interval where that is most; below zero if
// there is none. `samples` of one key.
[[nodiscard]] double Overshoot(std::vector<Sample> samples, double burst, double per_second);
// From when on every decision of a second was the store's; `until` if there is no such moment.
[[nodiscard]] int64_t ExactFrom(std::vector<Sample> samples, int64_t from_ns, int64_t until_ns);
[[nodiscard]] std::vector<Sample> OfKey(const std::vector<Sample>& samples, uint32_t key);
[[nodiscard]] uint64_t Admitted(const std::vector<Sample>& samples);
// The time that this share of them stays within.
[[nodiscard]] int64_t Percentile(const std::vector<Sample>& samples, double share);

}  // namespace weir::chaos
