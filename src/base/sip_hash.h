// SipHash-2-4 with 128 bits (Aumasson and Bernstein): a keyed digest that nobody can find two texts
// for without the key. For names that a whole fleet shares and whose texts come from outside; the
// table's own hash (key_hash.h) is faster and enough for a process.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::base {

struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

class SipHash {
 public:
  explicit SipHash(const SipKey& key) noexcept
      : v0_(0x736f6d6570736575U ^ key.low),
        v1_(0x646f72616e646f6dU ^ key.high ^ 0xeeU),
        v2_(0x6c7967656e657261U ^ key.low),
        v3_(0x7465646279746573U ^ key.high) {}

  // The eight bytes of a word count as such, least first.
  void AddWord(uint64_t word) noexcept {
    bytes_ += sizeof word;
    Compress(word);
  }

  // The last of what is added, and the digest of all.
  std::array<uint64_t, 2> Finish(std::string_view text) noexcept {
    bytes_ += text.size();
    while (text.size() >= sizeof(uint64_t)) {
      Compress(Read(text.data(), sizeof(uint64_t)));
      text.remove_prefix(sizeof(uint64_t));
    }
    Compress(bytes_ << 56 | Read(text.data(), text.size()));
    v2_ ^= 0xeeU;
    Rounds(4);
    const uint64_t first = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xddU;
    Rounds(4);
    return {first, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  static uint64_t Read(const char* at, size_t bytes) noexcept {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; ++i) {
      word |= uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
    return word;
  }

  void Compress(uint64_t word) noexcept {
    v3_ ^= word;
    Rounds(2);
    v0_ ^= word;
  }

  void Rounds(int count) noexcept {
    for (int i = 0; i < count; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
  uint64_t bytes_ = 0;
};

}  // namespace weir::base
