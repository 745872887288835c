#include "base/reader_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(ReaderGate, KnowsWhoIsInside) {
  ReaderGate gate;
  ReaderGate other;
  EXPECT_FALSE(gate.IsInside());
  const void* const outer = gate.Enter();
  EXPECT_TRUE(gate.IsInside());
  EXPECT_FALSE(other.IsInside());
  gate.Leave(outer);
  EXPECT_FALSE(gate.IsInside());
}

// Two words that only ever change together, without atomics: any overlap of a reader and a change
// is a torn pair, and a data race for the thread sanitizer.
TEST(ReaderGate, KeepsReadersAndChangesApart) {
  ReaderGate gate;
  uint64_t first = 0;
  uint64_t second = 0;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        const void* const outer = gate.Enter();
        const uint64_t seen = first;
        const void* const again = gate.Enter();  // must not wait for the change that waits for us
        torn += second == seen ? 0 : 1;
        gate.Leave(again);
        gate.Leave(outer);
        ++reads;
      }
    });
  }
  for (int i = 0; i < 2000 || reads.load() < 2000; ++i) {
    gate.Exclusively([&] {
      ++first;
      ++second;
    });
  }
  stop = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(torn.load(), 0U);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace weir::base
