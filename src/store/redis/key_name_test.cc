#include "store/redis/key_name.h"

#include <array>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir::script {
namespace {

// CRC16 (XMODEM), as a Cluster computes a slot.
unsigned SlotOf(std::string_view tag) {
  unsigned crc = 0;
  for (const char letter : tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(letter)) << 8;
    for (int i = 0; i < 8; ++i) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1 ^ 0x1021U) & 0xffffU : crc << 1 & 0xffffU;
    }
  }
  return crc % 16384;
}

TEST(KeyName, IsShortAndHasOneTag) {
  const KeySecret secret("secret");
  const Digest key = secret.Of(1, 0, "tenant:7");
  const std::string name(KeyName::OfState(key).view());
  EXPECT_EQ(name.size(), 29U);
  EXPECT_TRUE(name.starts_with("weir:{"));
  EXPECT_EQ(name.find('}'), 28U);
  const std::string tag = name.substr(0, 29);
  EXPECT_TRUE(std::string(KeyName::OfId(key, secret.OfName("id")).view()).starts_with(tag));
  EXPECT_NE(KeyName::OfReservation(key).view(), name);
}

TEST(KeyName, DependsOnSecretScopeKindAndEveryByte) {
  const KeySecret secret("secret");
  std::set<Digest> digests;
  for (const uint64_t scope : {uint64_t{1}, uint64_t{2}}) {
    for (const uint8_t kind : {uint8_t{0}, uint8_t{1}}) {
      for (const std::string& key : {std::string("a"), std::string("b"), std::string("a:b"),
                                     std::string("{a}"), std::string(), std::string("a\0", 2)}) {
        digests.insert(secret.Of(scope, kind, key));
        digests.insert(KeySecret("other").Of(scope, kind, key));
      }
    }
  }
  digests.insert(secret.OfName("a"));
  EXPECT_EQ(digests.size(), 2U * 2 * 6 * 2 + 1);
}

// Text from outside neither steers the slot nor collides.
TEST(KeyName, HostileTextsSpreadOverAllSlots) {
  const KeySecret secret("secret");
  constexpr size_t kTexts = 100'000;
  constexpr size_t kBins = 256;
  std::array<size_t, kBins> bins{};
  std::set<std::string> names;
  for (size_t i = 0; i < kTexts; ++i) {
    const std::string number = std::to_string(i);
    const std::string texts[] = {"{same}" + number, "{" + number + "}{same}",
                                 std::string(i % 64, '{') + number,
                                 std::string("nul\0", 4) + number};
    const Digest digest = secret.Of(1, 0, texts[i % 4]);
    const std::string name(KeyName::OfState(digest).view());
    names.insert(name);
    ++bins[SlotOf(std::string_view(name).substr(6, 22)) % kBins];
  }
  EXPECT_EQ(names.size(), kTexts);
  double chi = 0;
  const double expected = static_cast<double>(kTexts) / kBins;
  for (const size_t count : bins) {
    chi += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  }
  EXPECT_LT(chi, 330.5);  // 255 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace weir::script
