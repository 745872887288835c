// Any bytes as a PROXY header: no crash, nothing decided too early, nothing changed by what
// follows.
#include <cstdint>
#include <string_view>

#include "codec/http/proxy_protocol.h"
#include "fuzz/pieces.h"

namespace {

using weir::codec::http::ParseProxyHeader;
using weir::codec::http::ProxyHeader;
using weir::codec::http::ProxyState;
using weir::fuzz::Require;

bool Same(const ProxyHeader& a, const ProxyHeader& b) {
  return a.state == b.state && a.consumed == b.consumed && a.has_address == b.has_address &&
         a.source == b.source && a.source_port == b.source_port && a.error == b.error;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  const ProxyHeader whole = ParseProxyHeader(input);
  Require(whole.state != ProxyState::kMore || size < weir::codec::http::kProxyHeaderBytesMax);
  Require(whole.state != ProxyState::kReady || (whole.consumed > 0 && whole.consumed <= size));
  Require(whole.state != ProxyState::kError || !whole.error.empty());
  weir::fuzz::Pieces pieces(input);
  for (size_t fed = 0; fed < size; fed += pieces.Next()) {
    const ProxyHeader part = ParseProxyHeader(input.substr(0, fed));
    Require(part.state == ProxyState::kMore || Same(part, whole));
    Require(part.state == ProxyState::kMore || part.state == ProxyState::kError ||
            part.consumed <= fed);
  }
  return 0;
}
