#include "codec/http/client_address.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/same_text.h"
#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

using base::IpAddress;

// What one line names, from its end backwards; an address that is none stops the walk.
class Hops {
 public:
  // Each returns what `visit` last returned: false to stop.
  template <class Visit>
  static bool WalkList(std::string_view list, Visit visit) {
    for (;;) {
      const size_t comma = list.rfind(',');
      const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
      if (!visit(IpAddress::ParseWithPort(TrimBlanks(list.substr(begin))))) {
        return false;
      }
      if (begin == 0) {
        return true;
      }
      list = list.substr(0, comma);
    }
  }

  // Quotes may hold commas, so the line is read from its begin; of more than kHopsMax elements the
  // last ones count.
  template <class Visit>
  static bool WalkForwarded(std::string_view line, Visit visit) {
    std::array<std::optional<IpAddress>, ClientAddress::kHopsMax> ring;
    size_t count = 0;
    while (!line.empty()) {
      std::optional<IpAddress> address;
      if (!TakeForwardedElement(line, address)) {
        return visit(std::nullopt);
      }
      ring[count++ % ring.size()] = address;
    }
    const size_t kept = std::min(count, ring.size());
    for (size_t i = 1; i <= kept; ++i) {
      if (!visit(ring[(count - i) % ring.size()])) {
        return false;
      }
    }
    return true;
  }

 private:
  // Takes one element and the comma behind it. False: it is not what RFC 7239 says.
  static bool TakeForwardedElement(std::string_view& line, std::optional<IpAddress>& address) {
    bool seen_for = false;
    for (;;) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      const size_t name_bytes = TokenBytes(line);
      const std::string_view name = line.substr(0, name_bytes);
      line.remove_prefix(name_bytes);
      std::string_view value;
      if (name.empty() || !line.starts_with('=') || !TakeValue(line, value)) {
        return false;
      }
      if (base::SameText(name, "for")) {
        if (seen_for) {
          return false;
        }
        seen_for = true;
        address = IpAddress::ParseWithPort(value);
      }
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (line.empty()) {
        return true;
      }
      const char separator = line.front();
      line.remove_prefix(1);
      if (separator == ',') {
        return !line.empty();
      }
      if (separator != ';') {
        return false;
      }
    }
  }

  // Behind '=': a token or a quoted string. No address needs an escape, so that of a string with
  // one the raw text is as good.
  static bool TakeValue(std::string_view& line, std::string_view& value) {
    line.remove_prefix(1);
    if (!line.starts_with('"')) {
      const size_t bytes = TokenBytes(line);
      value = line.substr(0, bytes);
      line.remove_prefix(bytes);
      return bytes != 0;
    }
    size_t end = 1;
    while (end < line.size() && line[end] != '"') {
      end += line[end] == '\\' ? 2 : 1;
    }
    if (end >= line.size()) {
      return false;
    }
    value = line.substr(1, end - 1);
    line.remove_prefix(end + 1);
    return true;
  }
};

constexpr Known HeaderOf(ClientSource source) {
  switch (source) {
    case ClientSource::kXForwardedFor:
      return Known::kXForwardedFor;
    case ClientSource::kForwarded:
      return Known::kForwarded;
    case ClientSource::kXRealIp:
      return Known::kXRealIp;
    case ClientSource::kPeer:
      break;
  }
  return Known::kNone;
}

}  // namespace

IpAddress ClientAddress::Find(const IpAddress& peer, const Request& request) const noexcept {
  IpAddress client = peer.Unwrapped();
  const Known header = HeaderOf(source_);
  if (header == Known::kNone || !request.Has(header) || !IsTrusted(client)) {
    return client;
  }
  size_t hops = 0;
  const auto visit = [&](const std::optional<IpAddress>& address) {
    if (!address || hops++ == kHopsMax) {
      return false;
    }
    client = address->Unwrapped();
    return IsTrusted(client);
  };
  if (source_ == ClientSource::kXRealIp) {
    // One address, set once: a second line is somebody else's.
    const auto lines = std::count_if(request.fields.begin(), request.fields.end(),
                                     [&](const Field& field) { return field.known == header; });
    if (lines == 1) {
      visit(IpAddress::ParseWithPort(request.Find(header)));
    }
    return client;
  }
  // Several lines of one name are one list, in their order.
  for (size_t i = request.fields.size(); i-- > 0;) {
    const Field& field = request.fields[i];
    if (field.known != header) {
      continue;
    }
    const bool goes_on = source_ == ClientSource::kForwarded
                             ? Hops::WalkForwarded(field.value, visit)
                             : Hops::WalkList(field.value, visit);
    if (!goes_on) {
      break;
    }
  }
  return client;
}

bool ClientAddress::IsTrusted(const IpAddress& address) const noexcept {
  return std::any_of(trusted_.begin(), trusted_.end(),
                     [&](const base::IpPrefix& prefix) { return prefix.Contains(address); });
}

}  // namespace weir::codec::http
