#include "codec/http/proxy_protocol.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "codec/http/syntax.h"

namespace weir::codec::http {
namespace {

using base::IpAddress;

constexpr std::string_view kBegin1 = "PROXY ";
constexpr size_t kLineBytesMax = 107;  // version 1, with CR LF
constexpr std::string_view kBegin2("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr size_t kHeadBytes2 = 16;

ProxyHeader More() {
  return {};
}

ProxyHeader Fail(std::string_view error) {
  ProxyHeader header;
  header.state = ProxyState::kError;
  header.error = error;
  return header;
}

ProxyHeader Ready(size_t consumed) {
  ProxyHeader header;
  header.state = ProxyState::kReady;
  header.consumed = consumed;
  return header;
}

// Takes a word and the single blank behind it.
std::string_view TakeWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text.front() == '0') ||
      !std::all_of(text.begin(), text.end(), IsDigit)) {
    return std::nullopt;
  }
  unsigned port = 0;
  for (const char digit : text) {
    port = port * 10 + static_cast<unsigned>(digit - '0');
  }
  return port <= 0xFFFF ? std::optional(static_cast<uint16_t>(port)) : std::nullopt;
}

// PROXY TCP4 192.0.2.1 198.51.100.1 56324 443
ProxyHeader ParseVersion1(std::string_view input) {
  const size_t end = input.substr(0, kLineBytesMax).find('\n');
  if (end == std::string_view::npos) {
    return input.size() >= kLineBytesMax ? Fail("The PROXY line is longer than 107 bytes.")
                                         : More();
  }
  if (input[end - 1] != '\r') {
    return Fail("The PROXY line does not end with CR LF.");
  }
  std::string_view line = input.substr(kBegin1.size(), end - 1 - kBegin1.size());
  ProxyHeader header = Ready(end + 1);
  const std::string_view family = TakeWord(line);
  if (family == "UNKNOWN") {
    return header;
  }
  const auto source = IpAddress::Parse(TakeWord(line));
  const auto destination = IpAddress::Parse(TakeWord(line));
  const auto source_port = ParsePort(TakeWord(line));
  const auto destination_port = ParsePort(line);
  const bool v4 = family == "TCP4";
  if ((!v4 && family != "TCP6") || !source || !destination || source->is_v4 != v4 ||
      destination->is_v4 != v4 || !source_port || !destination_port) {
    return Fail("The PROXY line is not: TCP4 or TCP6, two addresses, two ports.");
  }
  header.has_address = true;
  header.source = *source;
  header.source_port = *source_port;
  return header;
}

ProxyHeader ParseVersion2(std::string_view input) {
  if (input.size() < kHeadBytes2) {
    return More();
  }
  const auto byte = [input](size_t at) { return static_cast<uint8_t>(input[at]); };
  const auto word = [&](size_t at) { return static_cast<uint16_t>(byte(at) << 8 | byte(at + 1)); };
  const uint8_t version = byte(12) >> 4;
  const uint8_t command = byte(12) & 15;
  const uint8_t family = byte(13) >> 4;
  const size_t length = word(14);
  if (version != 2 || command > 1) {
    return Fail("The PROXY header is of an unknown version or command.");
  }
  if (kHeadBytes2 + length > kProxyHeaderBytesMax) {
    return Fail("The PROXY header is longer than 2048 bytes.");
  }
  if (input.size() < kHeadBytes2 + length) {
    return More();
  }
  ProxyHeader header = Ready(kHeadBytes2 + length);
  constexpr uint8_t kInet = 1;
  constexpr uint8_t kInet6 = 2;
  if (command == 0 || (family != kInet && family != kInet6)) {
    return header;  // the proxy's own connection, or no address that we could use
  }
  const size_t address_bytes = family == kInet ? 4 : 16;
  if (length < 2 * address_bytes + 4) {
    return Fail("The PROXY header is too short for its addresses.");
  }
  header.has_address = true;
  header.source.is_v4 = family == kInet;
  std::memcpy(header.source.bytes.data(), input.data() + kHeadBytes2, address_bytes);
  header.source_port = word(kHeadBytes2 + 2 * address_bytes);
  return header;
}

}  // namespace

ProxyHeader ParseProxyHeader(std::string_view input) noexcept {
  const auto begins = [input](std::string_view begin) {
    const size_t bytes = std::min(input.size(), begin.size());
    return input.substr(0, bytes) == begin.substr(0, bytes);
  };
  if (begins(kBegin1)) {
    return input.size() < kBegin1.size() ? More() : ParseVersion1(input);
  }
  if (begins(kBegin2)) {
    return input.size() < kBegin2.size() ? More() : ParseVersion2(input);
  }
  return Fail("The connection does not begin with a PROXY header.");
}

}  // namespace weir::codec::http
