#include "redis/wheel.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::redis {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Item : Wheel::Entry {
  bool due = false;
};

constexpr Timestamp kStart{std::chrono::hours(5)};

std::vector<Item*> Advance(Wheel& wheel, Timestamp now) {
  std::vector<Item*> due;
  wheel.Advance(now, [&](Wheel::Entry& entry) { due.push_back(&static_cast<Item&>(entry)); });
  return due;
}

TEST(WheelTest, FindsWhatIsDueAndNothingBefore) {
  auto wheel = std::make_unique<Wheel>();
  Item item;
  wheel->Set(item, kStart + microseconds(10'300));
  EXPECT_TRUE(Advance(*wheel, kStart + microseconds(10'299)).empty());
  EXPECT_TRUE(item.set());
  const Timestamp found = Wheel::FoundAt(kStart + microseconds(10'300));
  EXPECT_LE(found, kStart + milliseconds(11));
  EXPECT_EQ(Advance(*wheel, found), std::vector<Item*>{&item});
  EXPECT_FALSE(item.set());
  EXPECT_EQ(wheel->size(), 0U);
}

TEST(WheelTest, ARemovedOneIsNotFound) {
  auto wheel = std::make_unique<Wheel>();
  Item first;
  Item second;
  wheel->Set(first, kStart + milliseconds(5));
  wheel->Set(second, kStart + milliseconds(5));
  wheel->Remove(first);
  wheel->Remove(first);
  EXPECT_EQ(Advance(*wheel, kStart + milliseconds(7)), std::vector<Item*>{&second});
}

TEST(WheelTest, OneFarAwayWaitsForItsTurn) {
  auto wheel = std::make_unique<Wheel>();
  (void)Advance(*wheel, kStart);
  Item item;
  wheel->Set(item, kStart + milliseconds(5000));
  for (int ms = 0; ms < 5000; ms += 100) {
    EXPECT_TRUE(Advance(*wheel, kStart + milliseconds(ms)).empty());
  }
  EXPECT_EQ(Advance(*wheel, kStart + milliseconds(5001)).size(), 1U);
}

TEST(WheelTest, DueMaySetAgain) {
  auto wheel = std::make_unique<Wheel>();
  Item item;
  wheel->Set(item, kStart);
  int times = 0;
  for (int ms = 0; ms < 100; ++ms) {
    const Timestamp now = kStart + milliseconds(ms);
    wheel->Advance(now, [&](Wheel::Entry& entry) {
      ++times;
      wheel->Set(entry, now + milliseconds(9));
    });
  }
  EXPECT_GE(times, 9);
  EXPECT_LE(times, 11);
}

TEST(WheelTest, NextIsNeverLaterThanTheEarliest) {
  auto wheel = std::make_unique<Wheel>();
  EXPECT_EQ(wheel->Next(), Timestamp::max());
  testing::Random random(7);
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 500; ++i) {
    items.push_back(std::make_unique<Item>());
  }
  Timestamp now = kStart;
  for (int round = 0; round < 20'000; ++round) {
    Item& item = *items[random.Below(items.size())];
    if (item.set()) {
      wheel->Remove(item);
    } else {
      wheel->Set(item, now + microseconds(random.Below(3'000'000)));
    }
    now += microseconds(random.Below(2000));
    for (Item* const due : Advance(*wheel, now)) {
      EXPECT_LE(due->at(), now);
    }
    Timestamp earliest = Timestamp::max();
    size_t set = 0;
    for (const auto& one : items) {
      if (one->set()) {
        ++set;
        earliest = std::min(earliest, one->at());
        ASSERT_GT(one->at(), now - milliseconds(2));  // none was passed over
      }
    }
    ASSERT_EQ(wheel->size(), set);
    if (set != 0) {
      ASSERT_LE(wheel->Next(), Wheel::FoundAt(std::max(earliest, now)));
    }
  }
}

}  // namespace
}  // namespace weir::redis
