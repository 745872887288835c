#include "net/address_cap.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::net {
namespace {

using Place = std::unique_ptr<AddressCap::Place>;

TEST(AddressCap, RefusesOneMoreAndTakesItOnceAnotherHasGone) {
  AddressCap cap(2, 64, {});
  Place places[3];
  EXPECT_TRUE(cap.Take("192.0.2.1", places[0]));
  EXPECT_TRUE(cap.Take("::ffff:192.0.2.1", places[1]));
  EXPECT_FALSE(cap.Take("192.0.2.1", places[2]));
  EXPECT_TRUE(cap.Take("192.0.2.2", places[2]));
  EXPECT_EQ(cap.addresses(), 2U);
  places[0].reset();
  EXPECT_TRUE(cap.Take("192.0.2.1", places[0]));
  for (Place& place : places) {
    place.reset();
  }
  EXPECT_EQ(cap.addresses(), 0U) << "nothing is kept of who has gone";
}

TEST(AddressCap, CountsIpv6ByItsNetwork) {
  AddressCap cap(1, 64, {});
  Place first;
  Place second;
  EXPECT_TRUE(cap.Take("2001:db8:1:2::1", first));
  EXPECT_FALSE(cap.Take("2001:db8:1:2::2", second));
  EXPECT_TRUE(cap.Take("2001:db8:1:3::2", second));
}

TEST(AddressCap, LeavesOutWhoIsExemptAndWhoHasNoAddress) {
  AddressCap cap(1, 64, {*base::IpPrefix::Parse("10.0.0.0/8")});
  std::vector<Place> places(10);
  for (Place& place : places) {
    EXPECT_TRUE(cap.Take("10.1.2.3", place));
    EXPECT_TRUE(cap.Take("", place));
  }
  EXPECT_EQ(cap.addresses(), 0U);
  AddressCap none(0, 64, {});
  for (Place& place : places) {
    EXPECT_TRUE(none.Take("192.0.2.1", place));
  }
}

TEST(AddressCap, HoldsUnderThreads) {
  AddressCap cap(3, 64, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&cap] {
      for (int n = 0; n < 2000; ++n) {
        Place place;
        (void)cap.Take("192.0.2." + std::to_string(n % 3), place);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(cap.addresses(), 0U);
}

}  // namespace
}  // namespace weir::net
