// Any header lines from a proxy: no crash; nothing that stands before an address which a trusted
// proxy appended counts; from who is not trusted nothing counts at all.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http/client_address.h"
#include "codec/http/syntax.h"
#include "fuzz/pieces.h"

namespace {

using weir::base::IpAddress;
using weir::base::IpPrefix;
using weir::codec::http::ClientAddress;
using weir::codec::http::ClientSource;
using weir::codec::http::Field;
using weir::codec::http::Known;
using weir::codec::http::Request;
using weir::fuzz::Require;

struct Header {
  ClientSource source;
  Known known;
  std::string_view appended;  // as a proxy writes that it saw kClient
};
constexpr Header kHeaders[] = {
    {ClientSource::kXForwardedFor, Known::kXForwardedFor, "192.0.2.1"},
    {ClientSource::kForwarded, Known::kForwarded, "for=\"192.0.2.1:80\""},
};

IpAddress Find(const Header& header, const IpAddress& peer, const std::vector<Field>& fields) {
  Request request;
  request.first_known.fill(Request::kAbsent);
  request.fields = fields;
  if (!fields.empty()) {
    request.first_known[static_cast<size_t>(header.known)] = 0;
  }
  static const std::vector<IpPrefix> trusted = {*IpPrefix::Parse("10.0.0.0/8")};
  return ClientAddress(header.source, trusted).Find(peer, request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = weir::fuzz::Text(data, size);
  const IpAddress proxy = *IpAddress::Parse("10.0.0.1");
  const IpAddress client = *IpAddress::Parse("192.0.2.1");
  const IpAddress stranger = *IpAddress::Parse("203.0.113.9");
  for (const Header& header : kHeaders) {
    std::vector<Field> fields;
    std::string_view rest = text;
    while (!rest.empty() && fields.size() < 50) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (!weir::codec::http::HasControl(rest.substr(0, end))) {
        fields.push_back({"x", rest.substr(0, end), header.known});
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    Require(Find(header, stranger, fields) == stranger);
    (void)Find(header, proxy, fields);
    fields.push_back({"x", header.appended, header.known});
    Require(Find(header, proxy, fields) == client);
    // On the line of the last header, as most proxies do it; of Forwarded only if that line was
    // well before, for otherwise nothing of it is believed.
    if (fields.size() > 1 && header.source == ClientSource::kXForwardedFor) {
      const std::string joined = std::string(fields[fields.size() - 2].value) + ", 192.0.2.1";
      Require(Find(header, proxy, {{"x", joined, header.known}}) == client);
    }
  }
  return 0;
}
