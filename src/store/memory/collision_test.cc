// Keys that were made to collide by somebody who knows the hash, but not our secret: they must
// spread over the table as any others do. How long they take is in bench/sketch_rows.h.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/table_probe.h"
#include "testing/random.h"

namespace weir::store {
namespace {

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr uint64_t kKeys = 1'000'000;
#else
constexpr uint64_t kKeys = 50'000;
#endif
constexpr size_t kKeyBytes = 32;

// XXH3 of 17 to 128 bytes multiplies the first two words, each combined with a word of the secret.
// The first word of the secret that XXH3 ships with, put there, makes that product zero: what the
// second word is no longer matters.
std::string Colliding(uint64_t id) {
  std::string key = "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe";
  std::string number = std::to_string(id);
  return key + std::string(8 - number.size(), '0') + number + "the same for all";
}

std::string Usual(uint64_t id) {
  testing::Random random(id + 1);
  std::string key;
  while (key.size() < kKeyBytes) {
    key.push_back(static_cast<char>('@' + random.Below(64)));
  }
  return key;
}

// Where the keys of a full run of them are: [d] of them d lines from home; the last, no slot.
std::array<uint64_t, Table::kProbe + 1> Distances(int wide_percent, std::string (*make)(uint64_t)) {
  ManualClock clock;
  const size_t slot = wide_percent == 0 ? 8 : 16;
  auto store = *MemoryStore::Create(
      {.budget_bytes = kKeys * slot * 17 / 10, .clock = &clock, .wide_percent = wide_percent});
  Limiter limiter = *Limiter::Create(*Quota::TokenBucket(1, std::chrono::seconds(1000), 5), store);
  uint64_t allowed = 0;
  for (uint64_t id = 0; id < kKeys; ++id) {
    allowed += static_cast<uint64_t>(limiter.Check(make(id)).allowed());
  }
  EXPECT_EQ(allowed, kKeys);
  const TableProbe probe(*store);
  std::array<uint64_t, Table::kProbe + 1> distances{};
  for (uint64_t id = 0; id < kKeys; ++id) {
    const int distance = probe.DistanceOf(make(id));
    ++distances[distance == TableProbe::kNowhere ? Table::kProbe : static_cast<size_t>(distance)];
  }
  return distances;
}

class Collisions : public ::testing::TestWithParam<int> {};

TEST_P(Collisions, UnderTheUnkeyedHashAreNoneUnderOurs) {
  const uint64_t one = base::HashKeySeeded(Colliding(0), 0);
  for (uint64_t id = 1; id < kKeys; ++id) {
    ASSERT_EQ(base::HashKeySeeded(Colliding(id), 0), one) << "not an attack";
  }
  const auto attack = Distances(GetParam(), &Colliding);
  const auto usual = Distances(GetParam(), &Usual);
  const auto lines = [](const auto& distances) {
    uint64_t sum = 0;
    for (uint64_t d = 0; d <= Table::kProbe; ++d) {
      sum += distances[d] * (d + 1);
    }
    return static_cast<double>(sum) / static_cast<double>(kKeys);
  };
  // Lines that a search touches: on the average, and at the 99th percentile.
  EXPECT_LT(lines(attack), 1.02 * lines(usual));
  const auto p99 = [](const auto& distances) {
    uint64_t below = 0;
    size_t d = 0;
    while ((below += distances[d]) < kKeys / 100 * 99) {
      ++d;
    }
    return d;
  };
  EXPECT_LE(p99(attack), p99(usual) + 1);
  EXPECT_LE(attack[Table::kProbe], usual[Table::kProbe] + kKeys / 10'000);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Collisions, ::testing::Values(0, 100),
                         [](const auto& param) { return param.param == 0 ? "Compact" : "Wide"; });

}  // namespace
}  // namespace weir::store
