#include "rules/request_view.h"

#include <algorithm>
#include <charconv>

namespace weir::rules {

namespace {

// An address as programs have it, with a port behind it, be that one or not: 1.2.3.4:99999.
std::string_view WithoutPort(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    return end == std::string_view::npos ? text : text.substr(1, end - 1);
  }
  const size_t colon = text.find(':');
  const bool is_port = colon != std::string_view::npos && colon + 1 < text.size() &&
                       text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return is_port ? text.substr(0, colon) : text;
}

}  // namespace

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): values_ and the texts are set where used
RequestView::RequestView(const AttributeTable& table, const SpecialAttributes& special,
                         std::span<const Attribute> attributes,
                         const AddressSource* addresses) noexcept {
  std::fill_n(values_.data(), table.size(), std::string_view());
  if (attributes.size() > kMaxAttributes) {
    refusal_ = RuleRefusal::kTooManyAttributes;
    return;
  }
  for (const Attribute& attribute : attributes) {
    const uint16_t index = table.Find(attribute.name);
    if (index == AttributeTable::kNone || !values_[index].empty()) {
      continue;  // no rule asks for it, so it may be as long as it likes
    }
    if (attribute.value.size() > kMaxAttributeBytes) {
      refusal_ = RuleRefusal::kAttributeTooLong;
      return;
    }
    values_[index] = attribute.value;
  }
  ip_text_ = Value(special.ip);
  if (!ip_text_.empty()) {
    auto parsed = base::IpAddress::Parse(ip_text_);
    address_is_text_ = parsed && parsed->is_v4;
    if (!parsed) {
      ip_text_ = WithoutPort(ip_text_);  // also where it is no address: no key has a port in it
      parsed = base::IpAddress::Parse(ip_text_);
    }
    address_ = parsed ? std::optional(parsed->Unwrapped()) : std::nullopt;
  }
  const bool derives =
      special.asn != AttributeTable::kNone || special.country != AttributeTable::kNone;
  if (derives && addresses != nullptr) {
    Derive(special, *addresses);
  }
  if (!Value(special.host).empty()) {
    NormaliseHost(special.host);
  }
  path_ = Value(special.path);
  if (!path_.empty()) {
    segments_.Cut(path_);
  }
}

// In lower case, without a port or a dot at the end: names that mean the same host are one.
void RequestView::NormaliseHost(uint16_t host) noexcept {
  std::string_view name = values_[host];
  if (!name.starts_with('[')) {
    name = name.substr(0, name.find(':'));
  } else if (const size_t end = name.find(']'); end != std::string_view::npos) {
    name = name.substr(0, end + 1);
  }
  if (name.size() > 1 && name.ends_with('.')) {
    name.remove_suffix(1);
  }
  if (name.size() > host_.size()) {
    return;  // longer than any name can be: left as it is
  }
  std::transform(name.begin(), name.end(), host_.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  values_[host] = std::string_view(host_.data(), name.size());
}

// What the request says of itself is not believed, also where nothing is known of its address.
void RequestView::Derive(const SpecialAttributes& special,
                         const AddressSource& addresses) noexcept {
  AddressFacts facts;
  if (address_) {
    AddressBytes bytes = address_->bytes;
    if (address_->is_v4) {
      constexpr AddressBytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
      bytes = kMapped;
      std::copy_n(address_->bytes.begin(), 4, bytes.begin() + 12);
    }
    facts = addresses.Find(bytes);
  }
  if (special.asn != AttributeTable::kNone) {
    const auto end = std::to_chars(asn_.data(), asn_.data() + asn_.size(), facts.asn);
    const auto size = static_cast<size_t>(end.ptr - asn_.data());
    values_[special.asn] = std::string_view(asn_.data(), facts.asn == 0 ? 0 : size);
  }
  if (special.country != AttributeTable::kNone) {
    country_ = facts.country;
    const size_t size = country_[0] == '\0' ? 0 : country_.size();
    values_[special.country] = std::string_view(country_.data(), size);
  }
}

std::string_view RequestView::AddressKey(
    unsigned ipv4_bits, unsigned ipv6_bits,
    std::span<char, base::IpAddress::kTextBytes> out) const noexcept {
  if (!address_ || (address_is_text_ && ipv4_bits == address_->bits())) {
    return ip_text_;
  }
  return address_->Masked(address_->is_v4 ? ipv4_bits : ipv6_bits).Format(out);
}

}  // namespace weir::rules
