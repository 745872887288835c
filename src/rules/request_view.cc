#include "rules/request_view.h"

#include <algorithm>

namespace weir::rules {

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): values_ and host_ are set where used
RequestView::RequestView(const AttributeTable& table, const SpecialAttributes& special,
                         std::span<const Attribute> attributes) noexcept {
  std::fill_n(values_.data(), table.size(), std::string_view());
  if (attributes.size() > kMaxAttributes) {
    refusal_ = RuleRefusal::kTooManyAttributes;
    return;
  }
  for (const Attribute& attribute : attributes) {
    if (attribute.value.size() > kMaxAttributeBytes) {
      refusal_ = RuleRefusal::kAttributeTooLong;
      return;
    }
    const uint16_t index = table.Find(attribute.name);
    if (index != AttributeTable::kNone && values_[index].empty()) {
      values_[index] = attribute.value;
    }
  }
  ip_text_ = Value(special.ip);
  if (!ip_text_.empty()) {
    auto parsed = base::IpAddress::Parse(ip_text_);
    address_is_text_ = parsed && parsed->is_v4;
    parsed = parsed ? parsed : base::IpAddress::ParseWithPort(ip_text_);
    address_ = parsed ? std::optional(parsed->Unwrapped()) : std::nullopt;
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

std::string_view RequestView::AddressKey(
    unsigned ipv6_bits, std::span<char, base::IpAddress::kTextBytes> out) const noexcept {
  if (!address_ || address_is_text_) {
    return ip_text_;
  }
  return (address_->is_v4 ? *address_ : address_->Masked(ipv6_bits)).Format(out);
}

}  // namespace weir::rules
