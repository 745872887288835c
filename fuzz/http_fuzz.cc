// Any bytes as HTTP requests: no crash, the same whole and in pieces, and what is accepted is
// unambiguous: written out again from its parts it reads back the same.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http/request_parser.h"
#include "codec/http/target.h"
#include "fuzz/pieces.h"

namespace {

using weir::codec::http::Field;
using weir::codec::http::Known;
using weir::codec::http::NormalizePath;
using weir::codec::http::ParseState;
using weir::codec::http::Request;
using weir::codec::http::RequestLimits;
using weir::codec::http::RequestParser;
using weir::fuzz::Require;

constexpr RequestLimits kLimits{
    .line_bytes_max = 200, .head_bytes_max = 400, .fields_max = 8, .body_bytes_max = 100};

// A request in one canonical form: with a length instead of chunks.
std::string Canonical(const Request& request) {
  std::string text(request.method_text);
  text.append(" ").append(request.target);
  text.append(request.minor_version == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
  for (const Field& field : request.fields) {
    if (field.known != Known::kTransferEncoding && field.known != Known::kContentLength) {
      text.append(field.name).append(":").append(field.value).append("\r\n");
    }
  }
  if (!request.body.empty()) {
    text += "Content-Length:" + std::to_string(request.body.size()) + "\r\n";
  }
  return text.append("\r\n").append(request.body);
}

struct Outcome {
  std::vector<std::string> requests;
  int status = 0;
  std::string reason;
  bool operator==(const Outcome&) const = default;
};

void CheckTarget(const Request& request) {
  std::string storage;
  if (const auto path = NormalizePath(request.path, storage)) {
    std::string again;
    Require(path->starts_with('/') && path->find("//") == std::string_view::npos);
    Require(path->find("/../") == std::string_view::npos && !path->ends_with("/.."));
    Require(NormalizePath(*path, again) == path);
  }
  std::string decoded;
  weir::codec::http::QueryReader query(request.query, decoded);
  while (query.Next()) {
  }
}

template <class NextSize>
Outcome Parse(std::string_view input, NextSize next_size) {
  RequestParser parser(kLimits);
  Outcome outcome;
  weir::fuzz::Feed(input, next_size, [&](std::string& kept) -> std::optional<size_t> {
    std::span<char> rest(kept);
    for (;;) {
      const ParseState state = parser.Parse(rest);
      if (state == ParseState::kMore) {
        (void)parser.TakeContinue();
        // What is awaited fits the limits, so that memory is bounded.
        Require(rest.size() < 400 + 200 + (64 << 10));
        return kept.size() - rest.size();
      }
      if (state == ParseState::kError) {
        outcome.status = parser.status();
        outcome.reason = parser.reason();
        Require(outcome.status >= 400 && outcome.status < 600 && !outcome.reason.empty());
        return std::nullopt;
      }
      Require(parser.consumed() > 0 && parser.consumed() <= rest.size());
      CheckTarget(parser.request());
      outcome.requests.push_back(Canonical(parser.request()));
      rest = rest.subspan(parser.consumed());
    }
  });
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  const Outcome whole =
      weir::fuzz::SameInPieces(input, [input](auto next_size) { return Parse(input, next_size); });
  for (const std::string& request : whole.requests) {
    RequestParser parser(RequestLimits{});
    std::string text = request;
    Require(parser.Parse(text) == ParseState::kRequest);
    Require(parser.consumed() == request.size() && Canonical(parser.request()) == request);
    // Sent again, after it was moved, and where it is.
    std::string moved = text;
    for (const std::span<char> again : {std::span<char>(moved), std::span<char>(moved)}) {
      Require(parser.Parse(again) == ParseState::kRequest);
      Require(parser.consumed() == request.size() && Canonical(parser.request()) == request);
    }
  }
  return 0;
}
