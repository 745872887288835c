#include "store/memory/watch.h"

#include "base/key_hash.h"
#include "base/thread_index.h"
#include "store/memory/shared_state.h"

namespace weir::store {

namespace {

// Not every n-th decision: traffic may have a rhythm of its own. Xorshift, seeded by the thread.
bool Chosen(uint32_t sample) noexcept {
  static thread_local uint64_t state = 0;
  if (state == 0) {
    state = base::SaltFor(base::ThreadIndex());
  }
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state >> 32 & (sample - 1)) == 0;
}

struct WatchedOps {
  static bool TryCheck(Binding& binding, std::string_view key, Timestamp now, uint64_t cost,
                       Decision& out) noexcept {
    const bool done = binding.watched_ops.try_check(binding, key, now, cost, out);
    if (done) {
      binding.watch->Note(binding, key, out);
    }
    return done;
  }

  static bool TryCheckNow(Binding& binding, std::string_view key, uint64_t cost,
                          Decision& out) noexcept {
    const bool done = binding.watched_ops.try_check_now(binding, key, cost, out);
    if (done) {
      binding.watch->Note(binding, key, out);
    }
    return done;
  }

  static void Check(Binding& binding, std::string_view key, uint64_t cost, uint64_t now_ns,
                    Decision& out) noexcept {
    binding.watched_ops.check(binding, key, cost, now_ns, out);
    if (cost != 0) {
      binding.watch->Note(binding, key, out);
    }
  }

  static void CheckMany(Binding& binding, const std::string_view* keys, size_t count, uint64_t cost,
                        uint64_t now_ns, Decision* out) noexcept {
    binding.watched_ops.check_many(binding, keys, count, cost, now_ns, out);
    for (size_t i = 0; cost != 0 && i < count; ++i) {
      binding.watch->Note(binding, keys[i], out[i]);
    }
  }

  static void Charge(Binding& binding, std::string_view key, const Request& request,
                     uint64_t now_ns, Decision& out) noexcept {
    binding.watched_ops.charge(binding, key, request, now_ns, out);
    if (request.cost != 0 && request.mode != ChargeMode::kDryRun) {
      binding.watch->Note(binding, key, out);
    }
  }
};

}  // namespace

Watch::Watch(uint32_t counters, uint32_t sample) : counters_(counters), sample_(sample) {
  for (size_t i = 0; i < kParts; ++i) {
    parts_.push_back(std::make_unique<Part>(counters));
  }
}

void Watch::Note(const Binding& binding, std::string_view key, const Decision& decision) noexcept {
  if (!Chosen(sample_) || decision.outcome == Outcome::kRefused) {
    return;
  }
  Part& part = *parts_[base::ThreadIndex() % kParts];
  const base::SpinLockHolder lock(part.lock);
  part.summary.Add(base::HashKey(key, binding.store->secret), key, sample_, !decision.allowed());
}

base::SpaceSaving Watch::Merged() const {
  base::SpaceSaving merged(counters_);
  for (const std::unique_ptr<Part>& part : parts_) {
    // A copy, so that deciding threads do not wait for the merge.
    part->lock.Lock();
    const base::SpaceSaving copy = part->summary;
    part->lock.Unlock();
    merged.Merge(copy);
  }
  return merged;
}

void Watch::Attach(Binding& binding, Watch* watch) noexcept {
  binding.watch = watch;
  binding.watched_ops = binding.ops;
  binding.ops.try_check = &WatchedOps::TryCheck;
  binding.ops.try_check_now = &WatchedOps::TryCheckNow;
  binding.ops.check = &WatchedOps::Check;
  binding.ops.check_many = &WatchedOps::CheckMany;
  binding.ops.charge = &WatchedOps::Charge;
}

}  // namespace weir::store
