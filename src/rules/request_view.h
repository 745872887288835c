// A request as a rule set sees it: its attributes by number, its address, its path cut up. Lives on
// the stack of one decision and allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/rule_set.h"
#include "weir/rules.h"

#include "base/ip_address.h"
#include "base/room.h"
#include "rules/attribute_table.h"
#include "rules/path_pattern.h"
#include "rules/regex_bank.h"

namespace weir::rules {

// The numbers of the attributes that are more than text; kNone if no rule asks for them.
struct SpecialAttributes {
  uint16_t ip = AttributeTable::kNone;
  uint16_t host = AttributeTable::kNone;
  uint16_t path = AttributeTable::kNone;
  uint16_t route = AttributeTable::kNone;
  uint16_t asn = AttributeTable::kNone;
  uint16_t country = AttributeTable::kNone;
};

class RequestView {
 public:
  RequestView(const AttributeTable& table, const SpecialAttributes& special,
              std::span<const Attribute> attributes,
              const AddressSource* addresses = nullptr) noexcept;

  RequestView(const RequestView&) = delete;
  RequestView& operator=(const RequestView&) = delete;

  // Other than kNone: the request cannot be decided.
  [[nodiscard]] RuleRefusal refusal() const noexcept { return refusal_; }
  // Empty if it is absent. REQUIRES: attribute is of the table, or kNone.
  [[nodiscard]] std::string_view Value(uint16_t attribute) const noexcept {
    return attribute == AttributeTable::kNone ? std::string_view() : values_[attribute];
  }
  // The client's address, unwrapped and without a port, if `ip` is one.
  [[nodiscard]] const std::optional<base::IpAddress>& address() const noexcept { return address_; }
  [[nodiscard]] const PathSegments& segments() const noexcept { return segments_; }
  [[nodiscard]] std::string_view path() const noexcept { return path_; }
  [[nodiscard]] RegexResults& regexes() const noexcept { return regexes_; }

  // The address as a key, cut to as many bits; the text of `ip` if it is no address.
  [[nodiscard]] std::string_view AddressKey(
      unsigned ipv4_bits, unsigned ipv6_bits,
      std::span<char, base::IpAddress::kTextBytes> out) const noexcept;

 private:
  void NormaliseHost(uint16_t host) noexcept;
  void Derive(const SpecialAttributes& special, const AddressSource& addresses) noexcept;

  RuleRefusal refusal_ = RuleRefusal::kNone;
  base::Room<std::string_view, kMaxSetAttributes> values_;  // written as far as the table goes
  std::string_view ip_text_;
  std::string_view path_;
  std::optional<base::IpAddress> address_;
  bool address_is_text_ = false;  // the text is how the address is written
  PathSegments segments_;
  std::array<char, 256> host_;
  std::array<char, 10> asn_;
  std::array<char, 2> country_;
  mutable RegexResults regexes_;
};

}  // namespace weir::rules
