#include "base/sip_hash.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

std::string Hex(const std::array<uint64_t, 2>& digest) {
  std::string text;
  for (const uint64_t word : digest) {
    for (int i = 0; i < 8; ++i) {
      char pair[3];
      std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>(word >> (8 * i) & 0xff));
      text += pair;
    }
  }
  return text;
}

// The key and the messages of the reference's own vectors: bytes 0, 1, 2, ...
constexpr SipKey kKey{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};

std::string Counting(size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    text += static_cast<char>(i);
  }
  return text;
}

TEST(SipHash, GivesTheReferenceVectors) {
  EXPECT_EQ(Hex(SipHash(kKey).Finish("")), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(Hex(SipHash(kKey).Finish(Counting(1))), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(Hex(SipHash(kKey).Finish(Counting(15))), "5493e99933b0a8117e08ec0f97cfc3d9");
}

TEST(SipHash, WordsAreTheirBytes) {
  const std::string text = Counting(21);
  uint64_t word = 0;
  std::memcpy(&word, text.data(), sizeof word);
  SipHash hash(kKey);
  hash.AddWord(word);
  EXPECT_EQ(hash.Finish(std::string_view(text).substr(8)), SipHash(kKey).Finish(text));
}

TEST(SipHash, DependsOnTheKeyAndEveryByte) {
  const auto digest = SipHash(kKey).Finish("tenant:7");
  EXPECT_NE(SipHash(SipKey{1, 2}).Finish("tenant:7"), digest);
  EXPECT_NE(SipHash(kKey).Finish("tenant:8"), digest);
  EXPECT_NE(SipHash(kKey).Finish(std::string_view("tenant:7\0", 9)), digest);
}

}  // namespace
}  // namespace weir::base
