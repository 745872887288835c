#include "base/key_hash.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(KeyHash, DependsOnEveryByteAndOnTheLength) {
  const HashSecret& secret = ProcessSecret();
  std::set<uint64_t> seen;
  for (const size_t length : {1U, 4U, 8U, 9U, 16U, 17U, 128U, 240U, 241U, 1000U}) {
    const std::string key(length, 'k');
    EXPECT_TRUE(seen.insert(HashKey(key, secret)).second) << length;
    for (size_t i = 0; i < length; ++i) {
      std::string other = key;
      other[i] = 'x';
      EXPECT_TRUE(seen.insert(HashKey(other, secret)).second) << length << " at " << i;
    }
  }
}

TEST(KeyHash, DependsOnTheSecret) {
  HashSecret other{};
  for (size_t i = 0; i < HashSecret::kBytes; ++i) {
    other.bytes[i] = static_cast<unsigned char>(i * i + 7 * i + 3);
  }
  int same = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "user:" + std::to_string(i);
    same += static_cast<int>(HashKey(key, ProcessSecret()) == HashKey(key, other));
  }
  EXPECT_EQ(same, 0);
}

TEST(KeyHash, TheProcessSecretIsDrawnOnceAndIsNotEmpty) {
  EXPECT_EQ(&ProcessSecret(), &ProcessSecret());
  std::set<unsigned char> values;
  for (const unsigned char byte : ProcessSecret().bytes) {
    values.insert(byte);
  }
  EXPECT_GT(values.size(), 64U);
}

TEST(KeyHash, ASeededHashIsTheSameOnEveryNode) {
  EXPECT_EQ(HashKeySeeded("user:42", 7), HashKeySeeded("user:42", 7));
  EXPECT_NE(HashKeySeeded("user:42", 7), HashKeySeeded("user:42", 8));
}

// XXH3 weighs the size with a factor and ends with a bijection; all that comes before is the same.
TEST(KeyHash, IsXxh3UpToItsLastStepsForUsualKeysAndXxh3ForAllOthers) {
  constexpr uint64_t kFactor = 0x9e3779b185ebca87U;  // XXH_PRIME64_1
  const HashSecret& secret = ProcessSecret();
  std::string key;
  for (size_t length = 1; length <= 300; ++length) {
    key.push_back(static_cast<char>('a' + length * length % 26));
    const uint64_t xxh3 =
        XXH3_64bits_withSecret(key.data(), key.size(), secret.bytes, HashSecret::kBytes);
    const uint64_t hash = HashKey(key, secret);
    const uint64_t weighed = XXH3_avalanche(hash - length + length * kFactor);
    EXPECT_EQ(UsualKey::Fits(key) ? weighed : hash, xxh3) << length;
  }
}

// A run of one character has the same head and the same tail at any size.
TEST(KeyHash, TellsKeysApartThatDifferInSizeAlone) {
  std::set<uint64_t> seen;
  for (size_t length = UsualKey::kBytesMin; length <= UsualKey::kBytesMax; ++length) {
    EXPECT_TRUE(seen.insert(HashKey(std::string(length, 'a'), ProcessSecret())).second) << length;
  }
}

TEST(MixHash, SpreadsOneKeyOverQuotas) {
  std::set<uint64_t> seen;
  const uint64_t hash = HashKey("user:42", ProcessSecret());
  int bits = 0;
  for (uint64_t quota = 1; quota <= 1000; ++quota) {
    EXPECT_EQ(SaltFor(quota) % 2, 1U);
    EXPECT_TRUE(seen.insert(MixHash(hash, SaltFor(quota))).second);
    bits += std::popcount(MixHash(hash, SaltFor(quota)));
  }
  EXPECT_NEAR(bits / 1000.0, 32.0, 2.0);
}

// A key's home comes from the upper bits and its tag from the lower ones: keys that differ little
// must be spread evenly over both.
TEST(MixHash, SpreadsSimilarKeysEvenly) {
  constexpr int kKeys = 1 << 16;
  constexpr int kBuckets = 256;
  for (const uint64_t quota : {1U, 2U, 1000U}) {
    std::vector<int> high(kBuckets);
    std::vector<int> low(kBuckets);
    for (int i = 0; i < kKeys; ++i) {
      std::string digits = std::to_string(i);
      const std::string key = "user:" + std::string(15 - digits.size(), '0') + digits;
      ASSERT_TRUE(UsualKey::Fits(key));
      const uint64_t hash = MixHash(HashKey(key, ProcessSecret()), SaltFor(quota));
      ++high[hash >> 56];
      ++low[hash % kBuckets];
    }
    // Chi-square of 255 degrees of freedom: above 400 once in some 10^8 secrets.
    const auto chi_square = [](const std::vector<int>& counts) {
      const double expected = static_cast<double>(kKeys) / kBuckets;
      double sum = 0;
      for (const int count : counts) {
        sum += (count - expected) * (count - expected) / expected;
      }
      return sum;
    };
    EXPECT_LT(chi_square(high), 400);
    EXPECT_LT(chi_square(low), 400);
  }
}

TEST(UsualKey, FindsNulAtEveryPlaceOfEveryLength) {
  EXPECT_FALSE(UsualKey::Fits(""));
  EXPECT_FALSE(UsualKey::Fits(std::string(16, 'a')));
  EXPECT_FALSE(UsualKey::Fits(std::string(33, 'a')));
  for (size_t length = UsualKey::kBytesMin; length <= UsualKey::kBytesMax; ++length) {
    // On the heap and exact, so that a sanitizer sees a read past the end.
    const auto text = std::make_unique<char[]>(length);
    const std::string_view key(text.get(), length);
    ASSERT_TRUE(UsualKey::Fits(key));
    for (const int filler : {0x01, 0x20, 0x7f, 0x80, 0xff}) {
      std::fill_n(text.get(), length, static_cast<char>(filler));
      EXPECT_FALSE(UsualKey(key).HasNul()) << length;
      for (size_t i = 0; i < length; ++i) {
        text[i] = '\0';
        EXPECT_TRUE(UsualKey(key).HasNul()) << length << " at " << i;
        text[i] = static_cast<char>(filler);
      }
    }
  }
}

}  // namespace
}  // namespace weir::base
