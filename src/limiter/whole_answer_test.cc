// Every way to a decision writes all of the answer: Check hands over one in which nothing is set.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "weir/limiter.h"

#include "limiter/limiter_state.h"
#include "store/memory/binding.h"
#include "testing/random.h"
#include "testing/twin.h"

namespace weir {
namespace {

using store::HasSimd;
using testing::Random;

constexpr const char* kQuotas[] = {"100/h burst 40",
                                   "1/day burst 30",  // wide slots
                                   "20/min",
                                   "20/min fixed-window",
                                   "20/min fixed-window from first-hit",
                                   "20/min fixed-window from per-key",
                                   "gap 1s",
                                   "20/day calendar",
                                   "20/min burst 20 queue after 3",
                                   "20/min sliding-log",
                                   "20/min sliced-window slices 6"};

// One of two that are asked the same, each with other bytes in what is to become the answer.
struct Side {
  Limiter limiter;
  int garbage;

  // Which way, and whether it answered.
  std::tuple<bool, std::array<unsigned char, sizeof(Decision)>> Ask(unsigned way,
                                                                    std::string_view key,
                                                                    uint64_t cost) {
    store::Binding& binding = limiter.state().current();
    const store::EngineOps& ops = binding.ops;
    const Timestamp now = limiter.Now();
    uint64_t now_ns = 0;
    EXPECT_TRUE(limiter.state().shared.Admit(now, now_ns));
    const uint64_t hash = base::HashKey(key, limiter.state().shared.secret);
    Decision out{Decision::Blank()};
    std::memset(static_cast<void*>(&out), garbage, sizeof out);
    bool done = true;
    switch (way) {
      case 0:
        done = ops.try_check(binding, key, now, cost, out);
        break;
      case 1:
        done = ops.try_check_now(binding, key, cost, out);
        break;
      case 2:
        done = ops.try_check_hashed(binding, hash, now, cost, out);
        break;
      case 3:
        ops.check_many(binding, &key, 1, cost, now_ns, &out);
        break;
      default:
        ops.check(binding, key, cost, now_ns, out);
        break;
    }
    std::array<unsigned char, sizeof(Decision)> bytes{};
    if (done) {
      std::memcpy(bytes.data(), &out, sizeof out);
    }
    return {done, bytes};
  }
};

void Compare(const char* text, Precision precision, Simd simd) {
  const Quota quota = *Quota::Parse(text);
  ManualClock clock(testing::Noon());
  const auto make = [&] {
    return Limiter::Create(quota,
                           {.budget_bytes = size_t{1} << 20,
                            .clock = &clock,
                            .hot_keys = false,
                            .wide_percent = 40,
                            .record_percent = 20,
                            .simd = simd},
                           {.precision = precision});
  };
  auto first = make();
  auto second = make();
  if (!first) {
    EXPECT_EQ(precision, Precision::kSketch) << first.error().message;  // some need a slot each
    return;
  }
  Side one{*std::move(first), 0x01};
  Side other{*std::move(second), 0xfe};
  Random random(3);
  uint64_t denied = 0;
  uint64_t short_ways = 0;
  for (int step = 0; step < 3000; ++step) {
    clock.Advance(std::chrono::milliseconds(random.Scaled(1, 400)));
    const std::string key =
        (random.OneIn(2) ? "short " : "a key of usual length ") + std::to_string(random.Below(4));
    const auto way = static_cast<unsigned>(random.Below(5));
    const uint64_t cost = random.OneIn(3) ? random.Below(12) : 1;
    const auto [done, bytes] = one.Ask(way, key, cost);
    const auto [other_done, other_bytes] = other.Ask(way, key, cost);
    ASSERT_EQ(done, other_done) << step;
    ASSERT_EQ(bytes, other_bytes) << "way " << way << ", cost " << cost << ", step " << step;
    if (done) {
      short_ways += way < 3 ? 1 : 0;
      denied += bytes[offsetof(Decision, outcome)] == static_cast<uint8_t>(Outcome::kDenied);
    }
  }
  EXPECT_GT(denied, 50U);
  const bool has_short_way =
      !algorithm::NeedsRecord(quota) && quota.start() != WindowStart::kPerKey;
  EXPECT_EQ(short_ways > 100, has_short_way);
}

TEST(WholeAnswer, NothingIsLeftOfWhatWasThereBefore) {
  for (const char* text : kQuotas) {
    for (const Precision precision : {Precision::kExact, Precision::kSketch}) {
      for (const Simd simd : {Simd::kScalar, Simd::kAvx2, Simd::kAvx512}) {
        SCOPED_TRACE(std::string(text) + ", precision " +
                     std::to_string(static_cast<int>(precision)) + ", simd " +
                     std::to_string(static_cast<int>(simd)));
        if (HasSimd(simd)) {
          Compare(text, precision, simd);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir
