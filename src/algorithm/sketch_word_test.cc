// A word of the sketch against lanes that are kept as plain instants.
#include "algorithm/sketch_word.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing/random.h"

namespace weir::algorithm {
namespace {

using testing::Random;

template <class Lanes>
struct Model {
  std::array<int64_t, Lanes::kLanes> lanes;
  uint64_t word;

  explicit Model(int64_t now) : word(Lanes::Empty(now)) { lanes.fill(now); }

  void Raise(unsigned chosen, int64_t now, int64_t until) {
    word = Lanes::Raise(word, chosen, now, until);
    for (unsigned i = 0; i < Lanes::kLanes; ++i) {
      lanes[i] = (chosen >> i & 1U) != 0 ? std::max(lanes[i], until) : lanes[i];
    }
  }

  void Merge(const Model& other, int64_t now) {
    word = Lanes::Merge(word, other.word, now);
    for (unsigned i = 0; i < Lanes::kLanes; ++i) {
      lanes[i] = std::max(lanes[i], other.lanes[i]);
    }
  }

  // An instant that has passed need not be remembered as long as it stays one.
  [[nodiscard]] bool Agrees(int64_t seen, int64_t expected, int64_t now) const {
    return expected > now ? seen == expected : seen <= now;
  }

  [[nodiscard]] bool Holds(int64_t now) const {
    bool holds =
        Agrees(Lanes::Latest(word, now), *std::max_element(lanes.begin(), lanes.end()), now);
    for (unsigned chosen = 1; chosen < 1U << Lanes::kLanes; ++chosen) {
      int64_t earliest = INT64_MAX;
      for (unsigned i = 0; i < Lanes::kLanes; ++i) {
        earliest = (chosen >> i & 1U) != 0 ? std::min(earliest, lanes[i]) : earliest;
      }
      holds = holds && Agrees(Lanes::Estimate(word, chosen, now), earliest, now);
    }
    return holds;
  }
};

template <class Lanes>
class SketchWordTest : public ::testing::Test {};
using Widths = ::testing::Types<ShortLanes, LongLanes>;
TYPED_TEST_SUITE(SketchWordTest, Widths);

TYPED_TEST(SketchWordTest, HoldsEachLaneToTheTickUntilItHasPassed) {
  using Lanes = TypeParam;
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<uint64_t>());
    auto now = static_cast<int64_t>(random.Below(uint64_t{1} << 50));
    Model<Lanes> words[] = {Model<Lanes>(now), Model<Lanes>(now)};
    for (int step = 0; step < 200; ++step) {
      now += static_cast<int64_t>(random.Scaled(1, uint64_t{4} << Lanes::kBits) - 1);
      Model<Lanes>& word = words[random.Below(2)];
      const int64_t until = now + static_cast<int64_t>(random.Below(Lanes::kToleranceMax) + 1);
      word.Raise(Lanes::Choose(random.Next()), now, until);
      if (random.OneIn(20)) {
        word.Merge(words[random.Below(2)], now);
      }
      RC_ASSERT(words[0].Holds(now));
      RC_ASSERT(words[1].Holds(now));
    }
  }));
}

TYPED_TEST(SketchWordTest, NeverMovesALaneBack) {
  using Lanes = TypeParam;
  const int64_t unit = int64_t{1} << Lanes::kUnitBits;
  const int64_t now = 8 * unit;
  const int64_t until = now + static_cast<int64_t>(Lanes::kToleranceMax);
  Model<Lanes> word(now);
  word.Raise(1U, now, until);
  word.Raise(1U, now + 1, now + 2);
  EXPECT_EQ(Lanes::Estimate(word.word, 1U, now + 1), until);
  // A stamp from long before the others.
  word.Raise(2U, now - 3 * unit, now - 2 * unit);
  EXPECT_TRUE(word.Holds(now + 1));
  EXPECT_EQ(Lanes::Estimate(word.word, 1U, now + 1), until);
}

TYPED_TEST(SketchWordTest, CutsOffOnlyWhatIsBeyondEveryTolerance) {
  using Lanes = TypeParam;
  for (int64_t now : {int64_t{0}, int64_t{1} << Lanes::kUnitBits, (int64_t{1} << 40) - 1}) {
    const uint64_t word = Lanes::Raise(Lanes::Empty(now), 1U, now, now + (int64_t{1} << 45));
    EXPECT_GE(Lanes::Estimate(word, 1U, now), now + static_cast<int64_t>(Lanes::kToleranceMax));
    EXPECT_LE(Lanes::Estimate(word, 2U, now), now) << "the next lane has nothing of it";
  }
}

TYPED_TEST(SketchWordTest, IsReadRightUpToHalfAWrapAway) {
  using Lanes = TypeParam;
  const int64_t written = (int64_t{1} << 48) + 12345;
  const uint64_t word = Lanes::Raise(Lanes::Empty(written), 1U, written, written);
  for (const int64_t units : {-0x7fff, -1, 0, 1, 0x7fff}) {
    const int64_t near = written + units * (int64_t{1} << Lanes::kUnitBits);
    EXPECT_EQ(Lanes::Latest(word, near), written) << units;
    EXPECT_EQ(Lanes::Estimate(word, 1U, near), written) << units;
  }
}

TYPED_TEST(SketchWordTest, KnowsALaneThatWasNeverChargedFromOneThatHasDrained) {
  using Lanes = TypeParam;
  const int64_t unit = int64_t{1} << Lanes::kUnitBits;
  int64_t now = 1000 * unit;
  uint64_t word = Lanes::Empty(now);
  EXPECT_EQ(Lanes::Latest(word, now), Lanes::kNever);
  word = Lanes::Raise(word, 1U, now, now);
  for (int i = 0; i < 9; ++i) {
    EXPECT_GE(Lanes::Estimate(word, 1U, now), 1000 * unit) << "never before what it was charged";
    EXPECT_EQ(Lanes::Estimate(word, 2U, now), Lanes::kNever);
    EXPECT_EQ(Lanes::Estimate(Lanes::Merge(word, Lanes::Empty(now + unit), now), 2U, now),
              Lanes::kNever);
    now += unit;
    word = Lanes::Raise(word, 1U, now, now - 3);
  }
}

TYPED_TEST(SketchWordTest, GivesEveryChoiceOfLanesAboutAsManyKeys) {
  using Lanes = TypeParam;
  constexpr int kKeys = 60'000;
  std::map<unsigned, int> chosen;
  Random random(1);
  for (int i = 0; i < kKeys; ++i) {
    ++chosen[Lanes::Choose(random.Next())];
  }
  ASSERT_EQ(chosen.size(), Lanes::kLanes == 4 ? 6U : 2U);
  for (const auto& [lanes, keys] : chosen) {
    EXPECT_EQ(std::popcount(lanes), Lanes::kLanes == 4 ? 2 : 1);
    EXPECT_NEAR(keys, kKeys / static_cast<int>(chosen.size()), kKeys / 50);
  }
}

}  // namespace
}  // namespace weir::algorithm
