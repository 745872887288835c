// A parsed HTTP/1.1 request: views into the bytes it came in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::codec::http {

enum class Method : uint8_t {
  kGet,
  kHead,
  kPost,
  kPut,
  kDelete,
  kOptions,
  kPatch,
  kOther,  // see Request::method_text
};

// Header fields that somebody here asks for; noted while parsing, so that finding one is an array
// access.
enum class Known : uint8_t {
  kAccept,
  kAuthorization,
  kConnection,
  kContentLength,
  kContentType,
  kExpect,
  kForwarded,
  kHost,
  kTraceparent,
  kTransferEncoding,
  kXForwardedFor,
  kXForwardedHost,
  kXForwardedMethod,
  kXForwardedProto,
  kXForwardedUri,
  kXOriginalMethod,
  kXOriginalUri,
  kXRealIp,
  kNone,  // any other
};
inline constexpr size_t kKnownFields = static_cast<size_t>(Known::kNone);

struct Field {
  std::string_view name;   // as sent; a token
  std::string_view value;  // without blanks around it; no control bytes but tab
  Known known = Known::kNone;
};

struct Request {
  Method method = Method::kOther;
  uint8_t minor_version = 1;  // HTTP/1.0 or HTTP/1.1
  bool keep_alive = false;    // by version and Connection
  std::string_view method_text;
  std::string_view target;  // as sent
  std::string_view path;    // of the target, as sent; "*" for OPTIONS *; see NormalizePath
  std::string_view query;   // behind the '?', as sent; see QueryReader
  std::string_view host;    // Host, or the authority of an absolute target
  std::string_view body;    // decoded if it was chunked
  std::span<const Field> fields;

  // The first of that name; empty if there is none.
  [[nodiscard]] std::string_view Find(Known known) const noexcept {
    const uint8_t index = first_known[static_cast<size_t>(known)];
    return index == kAbsent ? std::string_view() : fields[index].value;
  }
  [[nodiscard]] bool Has(Known known) const noexcept {
    return first_known[static_cast<size_t>(known)] != kAbsent;
  }
  // By name in any case; nullptr if there is none.
  [[nodiscard]] const Field* Find(std::string_view name) const noexcept;

  static constexpr uint8_t kAbsent = 0xFF;
  std::array<uint8_t, kKnownFields> first_known;  // index in fields; set by the parser
};

}  // namespace weir::codec::http
