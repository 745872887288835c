// How a key is called in Redis: weir:{<22 characters>}, the base64url of a keyed 128-bit digest of
// (scope, kind of quota, the user's text).
//
// So the text can neither steer the slot nor meet the key of another rule, its length does not
// matter, and who reads the store learns nothing from the names. All that belongs to a key has the
// same tag between { and }, and so the same slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/sip_hash.h"

namespace weir::script {

using Digest = std::array<uint64_t, 2>;

// Made of the text that a fleet shares; nodes with another secret count apart.
class KeySecret {
 public:
  explicit KeySecret(std::string_view text) noexcept;

  // `kind` keeps quotas of one scope apart that cannot read each other's state.
  [[nodiscard]] Digest Of(uint64_t scope, uint8_t kind, std::string_view key) const noexcept;
  // Of an idempotency id or a reservation's token.
  [[nodiscard]] Digest OfName(std::string_view name) const noexcept;

 private:
  base::SipKey key_;
};

// Text of at most kBytes, by value.
class KeyName {
 public:
  static constexpr size_t kDigits = 22;
  static constexpr size_t kBytes = 7 + kDigits + kDigits;  // 51

  // weir:{tag}
  static KeyName OfState(const Digest& key) noexcept;
  // weir:{tag}<22 characters>: what was charged under an id, in the slot of the key.
  static KeyName OfId(const Digest& key, const Digest& id) noexcept;
  // weir:{tag}r: a reservation, which has a slot of its own.
  static KeyName OfReservation(const Digest& token) noexcept;

  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] operator std::string_view() const noexcept { return view(); }  // NOLINT

 private:
  void Append(std::string_view text) noexcept;
  void Append(const Digest& digest) noexcept;

  std::array<char, kBytes> text_;
  uint8_t size_ = 0;
};

}  // namespace weir::script
