#include "store/memory/arena.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::store {
namespace {

using testing::Random;

constexpr size_t kBytes = size_t{256} << 10;
constexpr size_t kTagBytes = 4;  // of a block, the arena's own

struct Fixture {
  Fixture() : memory(kBytes + 64) { arena.Use(memory.data(), kBytes); }

  std::vector<std::byte> memory;
  Arena arena;
};

// A block, all of it written by its owner.
struct Block {
  uint32_t place;
  size_t bytes;
  std::byte mark;

  [[nodiscard]] bool IsIntact(const Arena& arena) const {
    const std::byte* const at = arena.At(place);
    return std::all_of(at + kTagBytes, at + bytes, [&](std::byte b) { return b == mark; });
  }
};

// Random sizes, mostly of one kind for a while and then of another. No block touches another, and
// when all are back the arena is whole again.
TEST(Arena, KeepsBlocksApartAndIsWholeAgainWhenAllAreBack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Fixture at;
    std::vector<Block> blocks;
    const auto free_one = [&](size_t i) {
      ASSERT_TRUE(blocks[i].IsIntact(at.arena));
      at.arena.Free(blocks[i].place);
      blocks[i] = blocks.back();
      blocks.pop_back();
    };
    uint64_t largest = 100;
    for (int step = 0; step < 4000; ++step) {
      if (step % 500 == 0) {
        largest = random.Scaled(48, 30'000);
      }
      if (!random.OneIn(3)) {
        const size_t bytes = random.Scaled(48, largest);
        const uint32_t place = at.arena.Take(bytes);
        if (place != 0) {
          const auto mark = static_cast<std::byte>(random.Below(256));
          std::memset(at.arena.At(place) + kTagBytes, static_cast<int>(mark), bytes - kTagBytes);
          blocks.push_back({place, bytes, mark});
          ASSERT_LE(at.arena.At(place) + bytes, at.memory.data() + kBytes);
          continue;
        }
      }
      if (!blocks.empty()) {
        free_one(random.Below(blocks.size()));
      }
    }
    while (!blocks.empty()) {
      free_one(random.Below(blocks.size()));
    }
    EXPECT_NE(at.arena.Take(kBytes * 15 / 16), 0U);
  }
}

TEST(Arena, ASizeThatComesBackServesTheNextOfThatSize) {
  for (const size_t bytes : {48U, 64U, 840U, 1640U, 9000U, 30'001U}) {
    Fixture at;
    std::vector<uint32_t> places;
    while (const uint32_t place = at.arena.Take(bytes)) {
      places.push_back(place);
    }
    // At most a sixteenth is lost by rounding, and less than one at the end.
    EXPECT_GE((places.size() + 1) * bytes * 17 / 16 + 64, kBytes) << bytes;
    for (size_t i = 0; i < places.size(); i += 2) {
      at.arena.Free(places[i]);
    }
    for (size_t i = 0; i < places.size(); i += 2) {
      EXPECT_NE(at.arena.Take(bytes), 0U) << bytes;
    }
    EXPECT_EQ(at.arena.Take(bytes), 0U);
  }
}

TEST(Arena, WhatDoesNotFitIsRefused) {
  Fixture at;
  EXPECT_EQ(at.arena.Take(kBytes), 0U) << "place 0 is none";
  EXPECT_EQ(at.arena.Take(~size_t{0} / 2), 0U);
  Arena none;
  EXPECT_EQ(none.Take(48), 0U);
}

}  // namespace
}  // namespace weir::store
