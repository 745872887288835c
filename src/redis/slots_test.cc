#include "redis/slots.h"

#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "redis/call.h"

namespace weir::redis {
namespace {

TEST(SlotsTest, AgreesWithTheSpecification) {
  EXPECT_EQ(SlotOf("123456789"), 0x31c3);  // the check value of CRC16/XMODEM, below 16384
  EXPECT_EQ(SlotOf(""), 0);
  EXPECT_EQ(SlotOf("foo"), 12182);
  EXPECT_EQ(SlotOf("bar"), 5061);
}

TEST(SlotsTest, OnlyWhatIsInTheFirstBracesCounts) {
  EXPECT_EQ(SlotOf("{user1000}.following"), SlotOf("{user1000}.followers"));
  EXPECT_EQ(SlotOf("{user1000}.following"), SlotOf("user1000"));
  EXPECT_EQ(SlotOf("foo{}{bar}"), SlotOf(std::string("foo{}{bar}")));
  EXPECT_NE(SlotOf("foo{}{bar}"), SlotOf("bar"));  // the first braces are empty: all of it
  EXPECT_EQ(SlotOf("foo{{bar}}zap"), SlotOf("{bar"));
  EXPECT_EQ(SlotOf("foo{bar}{zap}"), SlotOf("bar"));
  EXPECT_NE(SlotOf("foo{bar"), SlotOf("bar"));  // never closed
}

std::vector<Address> List(std::initializer_list<const char*> hosts) {
  std::vector<Address> list;
  for (const char* const host : hosts) {
    list.push_back({.host = host, .port = 6379, .unix_path = {}});
  }
  return list;
}

TEST(SlotsTest, AListSharesItsSlotsEvenly) {
  const std::vector<Address> list = List({"a", "b", "c", "d"});
  const Rendezvous rendezvous(list);
  std::array<int, 4> counts{};
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    ++counts[rendezvous.InstanceOf(slot)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, kSlots / 4, kSlots / 40);
  }
}

TEST(SlotsTest, AnInstanceMoreMovesOnlyItsOwnShare) {
  const std::vector<Address> four = List({"a", "b", "c", "d"});
  const std::vector<Address> five = List({"e", "d", "c", "b", "a"});  // the order does not matter
  const Rendezvous before(four);
  const Rendezvous after(five);
  int moved = 0;
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    const Address& to = five[after.InstanceOf(slot)];
    if (to != four[before.InstanceOf(slot)]) {
      EXPECT_EQ(to.host, "e");
      ++moved;
    }
  }
  EXPECT_NEAR(moved, kSlots / 5, kSlots / 50);
}

}  // namespace
}  // namespace weir::redis
