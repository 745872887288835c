// Every instruction set decides alike and leaves the same table behind, word for word.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "store/memory/table_probe.h"

namespace weir::store {
namespace {

using std::chrono::microseconds;

uint64_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

struct Side {
  Side(const Quota& quota, const Clock& clock, int wide_percent, Simd simd)
      : limiter(*Limiter::Create(quota, {.budget_bytes = 64 << 10,
                                         .clock = &clock,
                                         .wide_percent = wide_percent,
                                         .simd = simd})) {}

  Limiter limiter;
};

bool Same(const Decision& a, const Decision& b) {
  return a.retry_after == b.retry_after && a.reset_after == b.reset_after && a.limit == b.limit &&
         a.remaining == b.remaining && a.charged == b.charged && a.outcome == b.outcome &&
         a.basis == b.basis && a.problem == b.problem;
}

void Compare(const char* text, int wide_percent, Simd simd, int operations) {
  SCOPED_TRACE(text);
  ManualClock clock(WallTime(std::chrono::hours(24 * 20'000)));
  const Quota quota = *Quota::Parse(text);
  Side plain(quota, clock, wide_percent, Simd::kScalar);
  Side wider(quota, clock, wide_percent, simd);
  std::vector<std::string> keys;
  for (int i = 0; i < 9000; ++i) {  // more than fit
    keys.push_back("some key of twenty b" + std::to_string(i));
  }
  uint64_t random = 7;
  std::vector<std::string_view> batch;
  std::vector<Decision> plain_decisions(64);
  std::vector<Decision> wider_decisions(64);
  for (int done = 0; done < operations;) {
    const uint64_t bits = Next(random);
    clock.Advance(microseconds(bits % 4096 == 0 ? 20'000'000 : bits % 64 * 10));
    const size_t range = bits >> 8 & 1U ? keys.size() : 200;
    const uint64_t cost = (bits >> 9) % 8 == 0 ? (bits >> 12) % 8 : 1;
    if (bits >> 60 < 4) {
      batch.clear();
      for (size_t i = (bits >> 20) % 65; i > 0; --i) {
        batch.push_back(keys[Next(random) % range]);
      }
      plain.limiter.CheckMany(batch, plain_decisions, cost);
      wider.limiter.CheckMany(batch, wider_decisions, cost);
      for (size_t i = 0; i < batch.size(); ++i) {
        ASSERT_TRUE(Same(plain_decisions[i], wider_decisions[i])) << done;
      }
      done += static_cast<int>(batch.size()) + 1;
      continue;
    }
    const std::string& key = keys[(bits >> 20) % range];
    Decision a;
    Decision b;
    if (bits >> 60 == 4) {
      Receipt first;
      Receipt second;
      const auto mode = static_cast<ChargeMode>((bits >> 16) % 4);
      a = plain.limiter.Check(key, CheckOptions{.cost = cost, .mode = mode, .receipt = &first});
      b = wider.limiter.Check(key, CheckOptions{.cost = cost, .mode = mode, .receipt = &second});
      ASSERT_EQ(plain.limiter.GiveBack(first), wider.limiter.GiveBack(second)) << done;
    } else {
      a = plain.limiter.Check(key, cost);
      b = wider.limiter.Check(key, cost);
    }
    ASSERT_TRUE(Same(a, b)) << done;
    ++done;
  }
  const TableProbe plain_table(*plain.limiter.store());
  const TableProbe wider_table(*wider.limiter.store());
  EXPECT_EQ(plain_table.Words(), wider_table.Words());
  const StoreStats stats = wider.limiter.store()->Stats();
  EXPECT_EQ(stats.reclaims, plain.limiter.store()->Stats().reclaims);
  EXPECT_EQ(stats.denials, plain.limiter.store()->Stats().denials);
  EXPECT_EQ(stats.simd, simd);
  EXPECT_GT(stats.reclaims, 0U);
  EXPECT_GT(stats.denials, 0U);
}

void CompareAll(Simd simd, const char* name) {
  if (!HasSimd(simd)) {
    std::printf("not compared: this processor (or build) has no %s\n", name);
    return;
  }
  Compare("2/s burst 5", 0, simd, 300'000);
  Compare("2/s burst 5", 100, simd, 200'000);
  Compare("70/s burst 3", 100, simd, 100'000);
  Compare("gap 1s", 0, simd, 100'000);
  Compare("5/s", 100, simd, 100'000);
  Compare("5/s fixed-window", 100, simd, 100'000);
  Compare("5/s fixed-window from first-hit", 100, simd, 100'000);
  Compare("5/s fixed-window from per-key", 100, simd, 50'000);
}

TEST(Simd, Avx2DecidesAsThePlainCodeDoes) {
  CompareAll(Simd::kAvx2, "AVX2");
}

TEST(Simd, Avx512DecidesAsThePlainCodeDoes) {
  CompareAll(Simd::kAvx512, "AVX-512");
}

}  // namespace
}  // namespace weir::store
