// For tests: parses bytes as connections do, in pieces and at changing addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codec/http/request_parser.h"

namespace weir::codec::http {

// A request that outlives its bytes.
struct ParsedRequest {
  explicit ParsedRequest(const Request& from)
      : method(from.method_text),
        target(from.target),
        path(from.path),
        query(from.query),
        host(from.host),
        body(from.body),
        minor_version(from.minor_version),
        keep_alive(from.keep_alive) {
    for (const Field& field : from.fields) {
      fields.push_back(std::string(field.name) + ": " + std::string(field.value));
    }
  }
  bool operator==(const ParsedRequest&) const = default;

  std::string method;
  std::string target;
  std::string path;
  std::string query;
  std::string host;
  std::string body;
  std::vector<std::string> fields;
  uint8_t minor_version;
  bool keep_alive;
};

struct Parsed {
  std::vector<ParsedRequest> requests;
  int status = 0;  // of the error, if there was one
  std::string reason;
  bool operator==(const Parsed&) const = default;
};

// What the input holds if it arrives in pieces of the sizes that `next_size` gives.
template <class NextSize>
Parsed ParseInPieces(std::string_view input, NextSize next_size, const RequestLimits& limits) {
  RequestParser parser(limits);
  Parsed parsed;
  std::string kept;
  for (size_t fed = 0; fed < input.size();) {
    const size_t size = std::min(next_size(), input.size() - fed);
    std::string moved = kept;
    moved += input.substr(fed, size);
    moved.swap(kept);
    fed += size;
    std::span<char> rest(kept);
    for (;;) {
      const ParseState state = parser.Parse(rest);
      if (state == ParseState::kMore) {
        break;
      }
      if (state == ParseState::kError) {
        parsed.status = parser.status();
        parsed.reason = parser.reason();
        return parsed;
      }
      parsed.requests.emplace_back(parser.request());
      rest = rest.subspan(parser.consumed());
    }
    kept.assign(rest.data(), rest.size());
  }
  return parsed;
}

// Whole, split in two at every byte, and byte by byte: always the same.
inline Parsed Parse(std::string_view input, const RequestLimits& limits = {}) {
  const Parsed whole = ParseInPieces(input, [&] { return input.size(); }, limits);
  EXPECT_EQ(ParseInPieces(
                input, [] { return size_t{1}; }, limits),
            whole)
      << "byte by byte: " << input;
  // Long inputs are split at fewer places.
  const size_t stride = 1 + input.size() / 1000;
  for (size_t at = 1; at < input.size(); at += stride) {
    bool first = true;
    const auto halves = [&] { return std::exchange(first, false) ? at : input.size(); };
    EXPECT_EQ(ParseInPieces(input, halves, limits), whole) << "split at " << at << " of " << input;
  }
  return whole;
}

}  // namespace weir::codec::http
