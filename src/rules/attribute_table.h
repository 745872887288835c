// The attributes that a rule set asks for, numbered, so that a request is looked up once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_hash.h"

namespace weir::rules {

inline constexpr size_t kMaxSetAttributes = 256;

class AttributeTable {
 public:
  static constexpr uint16_t kNone = 0xFFFF;

  // The number of a name, given now if it has none yet; nullopt if there are too many.
  std::optional<uint16_t> Intern(std::string_view name) {
    if (const uint16_t known = Find(name); known != kNone) {
      return known;
    }
    if (names_.size() == kMaxSetAttributes) {
      return std::nullopt;
    }
    size_t at = Home(name);
    while (slots_[at] != kNone) {
      at = (at + 1) % kSlots;
    }
    slots_[at] = static_cast<uint16_t>(names_.size());
    names_.emplace_back(name);
    return slots_[at];
  }

  [[nodiscard]] uint16_t Find(std::string_view name) const noexcept {
    for (size_t at = Home(name); slots_[at] != kNone; at = (at + 1) % kSlots) {
      if (names_[slots_[at]] == name) {
        return slots_[at];
      }
    }
    return kNone;
  }

  [[nodiscard]] size_t size() const noexcept { return names_.size(); }
  [[nodiscard]] const std::string& name(uint16_t index) const { return names_[index]; }

 private:
  static constexpr size_t kSlots = 4 * kMaxSetAttributes;

  // Names that differ in a byte or two, as those of headers do, are far from one another.
  [[nodiscard]] static size_t Home(std::string_view name) noexcept {
    return base::MixHash(base::HashKey(name, base::ProcessSecret()), kSalt) % kSlots;
  }

  static constexpr uint64_t kSalt = base::SaltFor(2);

  std::vector<std::string> names_;
  std::array<uint16_t, kSlots> slots_ = Empty();

  static constexpr std::array<uint16_t, kSlots> Empty() {
    std::array<uint16_t, kSlots> slots{};
    slots.fill(kNone);
    return slots;
  }
};

}  // namespace weir::rules
