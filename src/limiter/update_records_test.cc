// Changing a quota whose states are records: keys take along what they have in use, whichever lists
// of the arena the old and the new record are on, and whoever else is about it.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "testing/twin.h"

namespace weir {
namespace {

using testing::Noon;

MemoryOptions Store(const Clock& clock, size_t budget_bytes) {
  MemoryOptions options = testing::SmallStore(clock);
  options.budget_bytes = budget_bytes;
  options.record_percent = 100;
  return options;
}

std::string Key(int i) {
  return "key " + std::to_string(i);
}

// A thousand lists and many keys: some have their places for the old and the new record on one.
TEST(UpdateOfRecords, EndsForEveryKeyWhereverItsOldAndItsNewRecordAre) {
  struct Case {
    const char* from;
    const char* to;
  };
  for (const Case& c : {Case{"5/h sliced-window slices 60", "5/h sliced-window slices 30"},
                        Case{"5/h sliced-window slices 6", "5/min sliced-window slices 6"},
                        Case{"5/h sliced-window slices 6", "5/h sliding-log"},
                        Case{"5/h sliding-log", "5/h sliced-window slices 6"}}) {
    SCOPED_TRACE(std::string(c.from) + " -> " + c.to);
    ManualClock clock(Noon());
    Limiter limiter =
        *Limiter::Create(*Quota::Parse(c.from), Store(clock, MemoryStore::kMinBudgetBytes));
    constexpr int kCharged = 40;
    for (int i = 0; i < kCharged; ++i) {
      ASSERT_TRUE(limiter.Check(Key(i), 2).allowed());
    }
    ASSERT_TRUE(limiter.Update(*Quota::Parse(c.to)).ok());
    for (int i = 0; i < 20'000; ++i) {
      const Decision peeked = limiter.Check(Key(i), 0);
      ASSERT_EQ(peeked.remaining, i < kCharged ? 3U : 5U) << i;
      ASSERT_EQ(peeked.basis, Basis::kStore) << i;
    }
    for (int i = 0; i < kCharged; ++i) {
      ASSERT_EQ(limiter.Check(Key(i)).remaining, 2U) << i;
    }
  }
}

// Threads meet the same keys for the first time after a change, in opposite orders: each key is
// carried over once, with all that it had.
TEST(UpdateOfRecords, CarriesEveryKeyOverOnceThoughThreadsMeet) {
  constexpr int kThreads = 4;
  constexpr int kKeys = 300;
  constexpr uint32_t kLimit = 12;
  ManualClock clock(Noon());
  const char* const quotas[] = {"12/h sliced-window slices 4", "12/h sliced-window slices 3",
                                "12/h sliding-log", "12/h sliced-window slices 2"};
  for (int round = 0; round < 20; ++round) {
    Limiter limiter = *Limiter::Create(*Quota::Parse(quotas[0]), Store(clock, size_t{128} << 10));
    const auto key_of = [&](int i) { return Key(round * kKeys + i); };
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(limiter.Check(key_of(i), 2).allowed());
    }
    std::atomic<uint32_t> admitted[kKeys] = {};
    for (int change = 1; change < 4; ++change) {
      ASSERT_TRUE(limiter.Update(*Quota::Parse(quotas[change])).ok());
      std::atomic<int> ready{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          ready.fetch_add(1);
          while (ready.load() < kThreads) {
          }
          for (int i = 0; i < kKeys; ++i) {
            const int key = t % 2 == 0 ? i : kKeys - 1 - i;
            admitted[key].fetch_add(limiter.Check(key_of(key)).charged);
          }
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      for (int i = 0; i < kKeys; ++i) {
        const uint32_t used = 2 + admitted[i].load();
        ASSERT_LE(used, kLimit);
        ASSERT_EQ(limiter.Check(key_of(i), 0).remaining, kLimit - used) << i;
      }
    }
  }
}

}  // namespace
}  // namespace weir
