// The decision for quotas whose states are records: the bucket's lock is held from the search to
// the answer, so there is one path for all of it and no race to lose. Who holds a bucket waits for
// no other.
#include "store/memory/record_engine.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "algorithm/concurrency.h"
#include "algorithm/sliced_window.h"
#include "algorithm/sliding_log.h"
#include "base/key_hash.h"
#include "store/memory/answer.h"
#include "store/memory/engine.h"
#include "store/memory/records.h"
#include "store/memory/shared_state.h"
#include "store/memory/test_hooks.h"

namespace weir::store {

namespace {

template <class Policy>
struct RecordEngine {
  using Reply = Answer<Policy>;
  using State = typename Policy::State;
  using Now = typename Policy::Now;

  // A question about one key, as all functions here need it.
  struct Ask {
    Binding& binding;
    HashedKey key;
    uint64_t now_ns;
    const Request& request;
  };

  static uint64_t HashFor(const Binding& binding, uint64_t key_hash) noexcept {
    return base::MixHash(key_hash, binding.salt);
  }

  // REQUIRES: the key's bucket is held, so that the floor is none before its record was taken back.
  static Now NowFor(const Binding& binding, const Plan& plan, uint64_t now_ns,
                    uint64_t lease_ns) noexcept {
    Now now = Policy::At(plan, {.ns = now_ns});
    if constexpr (Policy::kNumbersPlaces) {
      now.lease_ns = lease_ns != 0 ? lease_ns : now.lease_ns;
      now.fence = std::max(now.fence, binding.store->clock.floor_ns() + plan.epoch_offset_ns);
    }
    return now;
  }

  // What a key without a record brings along from the binding before this one, and how often the
  // key had been reset by then.
  struct Brought {
    algorithm::Carried carried;
    uint32_t resets = 0;
  };

  // Asked while no bucket is held: the record there has a bucket of its own, perhaps the very one
  // of the record here, and another thread may come from there to here.
  static Brought BroughtAlong(const Ask& ask, uint64_t hash) noexcept {
    const Binding& binding = ask.binding;
    if (!binding.HasPredecessor(ask.now_ns) || HasRecord(binding, hash)) [[likely]] {
      return {};
    }
    Binding& before = *binding.predecessor;
    // Acquire, and first: if what is carried over is from before a reset, so is the number.
    const uint32_t resets = binding.store->ResetsOf(hash).load(std::memory_order_acquire);
    return {before.ops.used(before, ask.key.hash, ask.key.phase, ask.now_ns, binding.since_ns),
            resets};
  }

  static bool HasRecord(const Binding& binding, uint64_t hash) noexcept {
    const Records& records = *binding.store->records;
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    return records.Find(bucket, hash, binding.id) != nullptr;
  }

  static State FirstState(const Binding& binding, const Plan& plan, const Now& now,
                          const algorithm::Carried& carried) noexcept {
    return carried.used != 0 ? Policy::Seed(plan, Policy::At(plan, binding.seed), now, carried)
                             : Policy::Load(plan, {}, now);
  }

  // A record for the key that is large enough for the plan, perhaps the one it has; nullptr if
  // there is no room for it.
  static Record* Room(const Ask& ask, const Plan& plan, const State& state, uint64_t hash,
                      Records::Bucket& bucket, Record* record) noexcept WEIR_REQUIRES(bucket) {
    Records& records = *ask.binding.store->records;
    const uint64_t words = Policy::BodyWords(plan, state);
    if (words == 0) {
      return nullptr;
    }
    if (record != nullptr && record->words >= words) {
      return record;
    }
    const uint64_t floor_ns = ask.binding.store->clock.floor_ns();
    return records.Add(bucket, hash, ask.binding.id, words, floor_ns);
  }

  static void Keep(const Plan& plan, Record& record, State& state) noexcept {
    Policy::Store(plan, record.body(), state);
    record.live_until_ns = Policy::LiveUntil(plan, state);
  }

  // A record that should grow and cannot: the request is put to the room that there is, since all
  // that the record knows still counts and the sketch knows nothing of it. False: there is no
  // record, or what does not fit is to be admitted uncounted.
  static bool GoesOnWithin(const Ask& ask, const Plan& plan, const Now& now, Record* record,
                           State& state, Decision& out) noexcept {
    if constexpr (requires { Policy::Within(plan, record->body()); }) {
      if (record == nullptr) {
        return false;
      }
      SharedState& store = *ask.binding.store;
      const Plan within = Policy::Within(plan, record->body());
      state = Policy::Load(within, record->body(), now);
      if (Reply::Apply(within, state, now, ask.request, out)) {
        Keep(within, *record, state);
      } else if (store.options.overflow == OverflowPolicy::kAllow) {
        return false;
      }
      store.counters.Get().Add(&CounterCell::overflow, 1);
      return true;
    } else {
      return false;
    }
  }

  // Where a hold is kept, which its receipt carries in place of a refund counter.
  static uint64_t PlaceOf(const State& state) noexcept {
    if constexpr (Policy::kNumbersPlaces) {
      return state.place;
    } else {
      return 0;
    }
  }

  // kNoRoom: the key has no record, and there is no room for one, or the sketch still has charges
  // of it that may count here.
  enum class Ended { kDecided, kNoRoom, kAgain };

  static Ended Decide(const Ask& ask, uint64_t hash, Decision& out) noexcept {
    const Binding& binding = ask.binding;
    const Plan& plan = binding.plan();
    Records& records = *binding.store->records;
    const std::atomic<uint32_t>& resets = binding.store->ResetsOf(hash);
    const Brought brought = BroughtAlong(ask, hash);
    WEIR_TEST_POINT(kCarried);
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    const Now now = NowFor(binding, plan, ask.now_ns, ask.request.lease_ns);
    Record* const record = records.Find(bucket, hash, binding.id);
    if (record == nullptr && brought.carried.used != 0 &&
        resets.load(std::memory_order_relaxed) != brought.resets &&
        !WEIR_MUTANT(kCarriedPastReset)) {
      return Ended::kAgain;
    }
    if (record == nullptr && StaysInSketch(binding, plan, ask.key.hash, ask.now_ns)) {
      return Ended::kNoRoom;
    }
    State state = record != nullptr ? Policy::Load(plan, record->body(), now)
                                    : FirstState(binding, plan, now, brought.carried);
    if (Reply::Apply(plan, state, now, ask.request, out)) {
      Record* const room = Room(ask, plan, state, hash, bucket, record);
      if (room == nullptr && !GoesOnWithin(ask, plan, now, record, state, out)) {
        return Ended::kNoRoom;
      }
      if (room != nullptr) {
        Keep(plan, *room, state);
        if (record != nullptr && record != room) {
          records.Remove(bucket, *record);
        }
      }
    }
    if (ask.request.receipt != nullptr) {
      *ask.request.receipt =
          Receipt{.hash = ask.key.hash,
                  .mark = Policy::Mark(plan, state, now),
                  .refunds = PlaceOf(state),
                  .charged = out.charged,
                  .binding = ChargedUnder::Pack(binding.id, plan.generation,
                                                resets.load(std::memory_order_relaxed))};
    }
    return Ended::kDecided;
  }

  static void Overflow(const Ask& ask, Decision& out) noexcept {
    SharedState& store = *ask.binding.store;
    if (ask.request.receipt != nullptr) {
      *ask.request.receipt = Receipt{};
    }
    if (ask.request.cost != 0 && ask.request.mode != ChargeMode::kDryRun) {
      store.counters.Get().Add(&CounterCell::overflow, 1);
    }
    // A hold is somebody's own, and so is its number: no sketch can have it.
    if (store.options.overflow == OverflowPolicy::kSketch && !Policy::kNumbersPlaces) {
      DecideInSketch(ask.binding, ask.key, ask.now_ns, ask.request, out);
    } else {
      AnswerUncounted(store, ask.binding.plan(), out);
    }
  }

  static void DecideAnywhere(const Ask& ask, uint64_t hash, Decision& out) noexcept {
    Ended ended = Ended::kAgain;
    while (ended == Ended::kAgain) {
      ended = Decide(ask, hash, out);
    }
    if (ended == Ended::kNoRoom) {
      Overflow(ask, out);
    }
  }

  // REQUIRES: a key that CheckKey has accepted.
  static void ChargeHashed(const Ask& ask, uint64_t hash, const Counters::Mine& mine,
                           Decision& out) noexcept {
    const Request& request = ask.request;
    const uint64_t burst = ask.binding.plan().burst;
    const bool bounded = request.mode == ChargeMode::kAdmit || request.mode == ChargeMode::kDryRun;
    if (request.cost > Cost::kMax || (bounded && request.cost > burst)) [[unlikely]] {
      const Request peek{.cost = 0};
      DecideAnywhere({ask.binding, ask.key, ask.now_ns, peek}, hash, out);
      out.outcome = Outcome::kRefused;
      out.problem = request.cost > Cost::kMax ? Problem::kCostTooLarge : Problem::kCostAboveBurst;
      mine.Add(&CounterCell::refusals, 1);
      return;
    }
    DecideAnywhere(ask, hash, out);
    if (request.mode != ChargeMode::kDryRun) {
      mine.Add(out.allowed() ? &CounterCell::allowed : &CounterCell::denials, 1);
    }
  }

  static void Refuse(const Binding& binding, Problem problem, const Counters::Mine& mine,
                     Decision& out) noexcept {
    out = Refused(problem, binding.plan().burst);
    mine.Add(&CounterCell::refusals, 1);
  }

  static void Charge(Binding& binding, std::string_view key, const Request& request,
                     uint64_t now_ns, Decision& out) noexcept {
    SharedState& store = *binding.store;
    if (request.receipt != nullptr) {
      *request.receipt = Receipt{};
    }
    const Counters::Mine mine = store.counters.Get();
    if (const Problem problem = CheckKey(store, key); problem != Problem::kNone) [[unlikely]] {
      Refuse(binding, problem, mine, out);
      return;
    }
    const Ask ask{binding, Hashed(binding, key), now_ns, request};
    ChargeHashed(ask, HashFor(binding, ask.key.hash), mine, out);
  }

  static void ChargeByHash(Binding& binding, uint64_t key_hash, uint64_t phase,
                           const Request& request, uint64_t now_ns, Decision& out) noexcept {
    ChargeHashed({binding, {key_hash, phase}, now_ns, request}, HashFor(binding, key_hash),
                 binding.store->counters.Get(), out);
  }

  static void Check(Binding& binding, std::string_view key, uint64_t cost, uint64_t now_ns,
                    Decision& out) noexcept {
    Charge(binding, key, Request{.cost = cost}, now_ns, out);
  }

  static void CheckHashed(Binding& binding, HashedKey key, uint64_t cost, uint64_t now_ns,
                          Decision& out) noexcept {
    ChargeByHash(binding, key.hash, key.phase, Request{.cost = cost}, now_ns, out);
  }

  // The short way is for slots.
  static bool TryCheckHashed(Binding&, uint64_t, Timestamp, uint64_t, Decision&) noexcept {
    return false;
  }

  static bool TryCheck(Binding&, std::string_view, Timestamp, uint64_t, Decision&) noexcept {
    return false;
  }

  static bool TryCheckNow(Binding&, std::string_view, uint64_t, Decision&) noexcept {
    return false;
  }

  // What a decision will touch besides the first record of its bucket, which has arrived: more of
  // the key's own, or the next one in the list. Looked up under the lock.
  static void FetchRest(const Binding& binding, uint64_t hash) noexcept {
    const Records& records = *binding.store->records;
    Records::Bucket& bucket = records.BucketOf(hash);
    if (!bucket.TryLock()) {
      return;
    }
    if (Record* const first = records.First(bucket); first != nullptr) {
      if (first->hash != hash || first->quota != binding.id) {
        records.Fetch(first->next);
      } else if constexpr (requires { Policy::Fetch(first->body()); }) {
        Policy::Fetch(first->body());
      }
    }
    bucket.Unlock();
  }

  // Keys that are on their way together.
  struct Group {
    static constexpr size_t kSize = 8;

    size_t begin;
    size_t size;
    Problem problems[kSize];
    HashedKey hashed[kSize];
    uint64_t hashes[kSize];
  };

  static void Look(const Binding& binding, const std::string_view* keys, Group& group) noexcept {
    const SharedState& store = *binding.store;
    for (size_t i = 0; i < group.size; ++i) {
      const std::string_view key = keys[group.begin + i];
      group.problems[i] = CheckKey(store, key);
      group.hashed[i] = group.problems[i] == Problem::kNone ? Hashed(binding, key) : HashedKey{};
      group.hashes[i] = HashFor(binding, group.hashed[i].hash);
      __builtin_prefetch(&store.records->BucketOf(group.hashes[i]), 1, 3);
    }
  }

  // In groups, four on their way at a time: each step asks for the memory that the next one needs,
  // and has it by then, since there is a step of each other group between the two.
  // `decide(i, key, hash)` for every key that can be one, `refuse(i, problem)` for the others.
  template <class DecideOne, class RefuseOne>
  static void ForMany(const Binding& binding, const std::string_view* keys, size_t count,
                      DecideOne decide, RefuseOne refuse) noexcept {
    constexpr size_t kSteps = 4;
    const Records& records = *binding.store->records;
    Group groups[kSteps];
    const size_t group_count = (count + Group::kSize - 1) / Group::kSize;
    // The group that is `behind` steps behind the one that begins now, if there is one.
    const auto at = [&](size_t turn, size_t behind) -> Group* {
      return turn >= behind && turn - behind < group_count ? &groups[(turn - behind) % kSteps]
                                                           : nullptr;
    };
    for (size_t turn = 0; turn < group_count + kSteps - 1; ++turn) {
      if (Group* const group = at(turn, 3)) {
        for (size_t i = 0; i < group->size; ++i) {
          if (group->problems[i] == Problem::kNone) [[likely]] {
            decide(group->begin + i, group->hashed[i], group->hashes[i]);
          } else {
            refuse(group->begin + i, group->problems[i]);
          }
        }
      }
      if (const Group* const group = at(turn, 2)) {
        for (size_t i = 0; i < group->size; ++i) {
          FetchRest(binding, group->hashes[i]);
        }
      }
      if (const Group* const group = at(turn, 1)) {
        for (size_t i = 0; i < group->size; ++i) {
          records.Fetch(records.BucketOf(group->hashes[i]).Glance());
        }
      }
      if (Group* const group = at(turn, 0)) {
        group->begin = turn * Group::kSize;
        group->size = std::min(Group::kSize, count - group->begin);
        Look(binding, keys, *group);
      }
    }
  }

  static void CheckMany(Binding& binding, const std::string_view* keys, size_t count, uint64_t cost,
                        uint64_t now_ns, Decision* out) noexcept {
    const Request request{.cost = cost};
    const Counters::Mine mine = binding.store->counters.Get();
    ForMany(
        binding, keys, count,
        [&](size_t i, HashedKey key, uint64_t hash) {
          ChargeHashed({binding, key, now_ns, request}, hash, mine, out[i]);
        },
        [&](size_t i, Problem problem) { Refuse(binding, problem, mine, out[i]); });
  }

  static algorithm::Refund GiveBack(Binding& binding, Receipt& receipt, uint64_t now_ns) noexcept {
    const Receipt paid = receipt;
    receipt = Receipt{};
    if (paid.charged == 0 || ChargedUnder::Id(paid) != binding.id) {
      return {};
    }
    const Plan& plan = binding.plan();
    const uint64_t hash = HashFor(binding, paid.hash);
    Records& records = *binding.store->records;
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    Record* const record = records.Find(bucket, hash, binding.id);
    // Relaxed, as all of it is under the bucket's lock.
    const uint32_t resets = binding.store->ResetsOf(hash).load(std::memory_order_relaxed);
    if (record == nullptr || !ChargedUnder::IsSince(paid, resets)) {
      return {};
    }
    const Now now = NowFor(binding, plan, now_ns, 0);
    algorithm::Refund refund;
    if constexpr (Policy::kNumbersPlaces) {
      refund = Policy::End(record->body(), now, paid.mark, paid.refunds);
    } else {
      refund = Policy::GiveBack(plan, record->body(), now, paid.mark, paid.charged);
    }
    record->live_until_ns = Policy::LiveUntil(plan, Policy::Load(plan, record->body(), now));
    return refund;
  }

  static algorithm::Carried Used(Binding& binding, uint64_t key_hash, uint64_t phase,
                                 uint64_t now_ns, uint64_t at_ns) noexcept {
    const Plan& plan = binding.plan();
    const uint64_t hash = HashFor(binding, key_hash);
    const Records& records = *binding.store->records;
    Records::Bucket& bucket = records.BucketOf(hash);
    {
      const Records::Holder lock(bucket);
      if (Record* const record = records.Find(bucket, hash, binding.id); record != nullptr) {
        const auto carried_at = [&](uint64_t ns) {
          const Now then = Policy::At(plan, {.ns = ns});
          return Policy::Carry(plan, Policy::Load(plan, record->body(), then), then);
        };
        return carried_at(now_ns).used == 0 ? algorithm::Carried{} : carried_at(at_ns);
      }
    }
    if (binding.HasPredecessor(now_ns)) {
      Binding& before = *binding.predecessor;
      return before.ops.used(before, key_hash, phase, now_ns, at_ns);
    }
    return {};
  }

  // Fences go on growing: who held something then must not be taken for who holds it next.
  static bool Reset(Binding& binding, uint64_t key_hash, uint64_t phase, uint64_t now_ns) noexcept {
    const bool known_before = binding.ResetPredecessor(key_hash, phase, now_ns);
    const uint64_t hash = HashFor(binding, key_hash);
    Records& records = *binding.store->records;
    Records::Bucket& bucket = records.BucketOf(hash);
    const Records::Holder lock(bucket);
    Record* const record = records.Find(bucket, hash, binding.id);
    if (record == nullptr && !known_before) {
      return false;
    }
    if constexpr (!Policy::kNumbersPlaces) {
      // Release: who sees the number sees what was reset before it (Decide).
      binding.store->ResetsOf(hash).fetch_add(1, std::memory_order_release);
    }
    if (record == nullptr) {
      return true;
    }
    if constexpr (Policy::kNumbersPlaces) {
      const Plan& plan = binding.plan();
      Policy::EndAll(record->body());
      record->live_until_ns = Policy::LiveUntil(
          plan, Policy::Load(plan, record->body(), NowFor(binding, plan, now_ns, 0)));
    } else {
      records.Remove(bucket, *record);
    }
    return true;
  }

  static constexpr EngineOps kOps = {
      .try_check = &TryCheck,
      .try_check_now = &TryCheckNow,
      .try_rest = &TryCheck,
      .try_rest_now = &TryCheckNow,
      .rest_many = &CheckMany,
      .check = &Check,
      .try_check_hashed = &TryCheckHashed,
      .check_hashed = &CheckHashed,
      .check_many = &CheckMany,
      .charge = &Charge,
      .charge_hashed = &ChargeByHash,
      .give_back = &GiveBack,
      .used = &Used,
      .reset = &Reset,
  };
};

}  // namespace

const EngineOps& RecordOpsFor(const algorithm::Plan& plan) noexcept {
  if (plan.algorithm == Algorithm::kConcurrency) {
    return RecordEngine<algorithm::Concurrency>::kOps;
  }
  return plan.algorithm == Algorithm::kSlidingLog ? RecordEngine<algorithm::SlidingLog>::kOps
                                                  : RecordEngine<algorithm::SlicedWindow>::kOps;
}

void AcquireMany(Binding& binding, const std::string_view* keys, size_t count,
                 const Request& request, uint64_t now_ns, Acquired* out) noexcept {
  using Engine = RecordEngine<algorithm::Concurrency>;
  const Counters::Mine mine = binding.store->counters.Get();
  Engine::ForMany(
      binding, keys, count,
      [&](size_t i, HashedKey key, uint64_t hash) {
        out[i].hold = Hold{};
        Request asked = request;
        asked.receipt = &out[i].hold.receipt;
        Engine::ChargeHashed({binding, key, now_ns, asked}, hash, mine, out[i].decision);
      },
      [&](size_t i, Problem problem) {
        out[i].hold = Hold{};
        Engine::Refuse(binding, problem, mine, out[i].decision);
      });
}

bool RenewHold(Binding& binding, const Receipt& hold, uint64_t lease_ns, uint64_t now_ns) noexcept {
  using Engine = RecordEngine<algorithm::Concurrency>;
  if (hold.charged == 0 || ChargedUnder::Id(hold) != binding.id) {
    return false;
  }
  const Plan& plan = binding.plan();
  const uint64_t hash = Engine::HashFor(binding, hold.hash);
  const Records& records = *binding.store->records;
  Records::Bucket& bucket = records.BucketOf(hash);
  const Records::Holder lock(bucket);
  Record* const record = records.Find(bucket, hash, binding.id);
  const Engine::Now now = Engine::NowFor(binding, plan, now_ns, lease_ns);
  if (record == nullptr ||
      !algorithm::Concurrency::Renew(record->body(), now, hold.mark, hold.refunds)) {
    return false;
  }
  record->live_until_ns = algorithm::Concurrency::LiveUntil(
      plan, algorithm::Concurrency::Load(plan, record->body(), now));
  return true;
}

}  // namespace weir::store
