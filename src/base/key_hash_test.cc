#include "base/key_hash.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <string>

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

TEST(MixHash, SpreadsOneKeyOverQuotas) {
  std::set<uint64_t> seen;
  const uint64_t hash = HashKey("user:42", ProcessSecret());
  int bits = 0;
  for (uint64_t salt = 1; salt <= 1000; ++salt) {
    EXPECT_TRUE(seen.insert(MixHash(hash, MixHash(salt, 3))).second);
    bits += std::popcount(MixHash(hash, MixHash(salt, 3)));
  }
  EXPECT_NEAR(bits / 1000.0, 32.0, 2.0);
}

TEST(HasNul, FindsItAtEveryPlaceOfEveryLength) {
  for (size_t length = 0; length < 70; ++length) {
    // On the heap and exact, so that a sanitizer sees a read past the end.
    const auto text = std::make_unique<char[]>(std::max<size_t>(length, 1));
    for (const int filler : {0x01, 0x20, 0x7f, 0x80, 0xff}) {
      std::fill_n(text.get(), length, static_cast<char>(filler));
      EXPECT_FALSE(HasNul({text.get(), length})) << length;
      for (size_t i = 0; i < length; ++i) {
        text[i] = '\0';
        EXPECT_TRUE(HasNul({text.get(), length})) << length << " at " << i;
        text[i] = static_cast<char>(filler);
      }
    }
  }
}

}  // namespace
}  // namespace weir::base
