#include "store/redis/key_name.h"

namespace weir::script {

namespace {

// What a digest is of, so that one kind's never equals another's.
constexpr uint64_t kStateWord = 0x6574617473;  // "state"
constexpr uint64_t kNameWord = 0x656d616e;     // "name"

constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Twelve bits, the low ones first.
constexpr auto kPairs = [] {
  std::array<std::array<char, 2>, 4096> pairs{};
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = {kLetters[i & 63], kLetters[i >> 6]};
  }
  return pairs;
}();

}  // namespace

KeySecret::KeySecret(std::string_view text) noexcept : key_{} {
  const Digest digest = base::SipHash(base::SipKey{0x7769'6572'7265'6469U, 1}).Finish(text);
  key_ = base::SipKey{digest[0], digest[1]};
}

Digest KeySecret::Of(uint64_t scope, uint8_t kind, std::string_view key) const noexcept {
  base::SipHash hash(key_);
  hash.AddWord(kStateWord);
  hash.AddWord(scope);
  hash.AddWord(kind);
  return hash.Finish(key);
}

Digest KeySecret::OfName(std::string_view name) const noexcept {
  base::SipHash hash(key_);
  hash.AddWord(kNameWord);
  return hash.Finish(name);
}

KeyName KeyName::OfState(const Digest& key) noexcept {
  KeyName name;
  name.Append("weir:{");
  name.Append(key);
  name.Append("}");
  return name;
}

KeyName KeyName::OfId(const Digest& key, const Digest& id) noexcept {
  KeyName name = OfState(key);
  name.Append(id);
  return name;
}

KeyName KeyName::OfReservation(const Digest& token) noexcept {
  KeyName name = OfState(token);
  name.Append("r");
  return name;
}

void KeyName::Append(std::string_view text) noexcept {
  std::memcpy(text_.data() + size_, text.data(), text.size());
  size_ = static_cast<uint8_t>(size_ + text.size());
}

void KeyName::Append(const Digest& digest) noexcept {
  // Six bits a letter from the low end of each word; the last letter of each has four.
  char* at = text_.data() + size_;
  for (const uint64_t word : digest) {
    for (unsigned shift = 0; shift < 60; shift += 12) {
      std::memcpy(at, kPairs[word >> shift & 4095].data(), 2);
      at += 2;
    }
    *at++ = kLetters[word >> 60];
  }
  size_ = static_cast<uint8_t>(at - text_.data());
}

}  // namespace weir::script
