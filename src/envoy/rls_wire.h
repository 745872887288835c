// Envoy's question and its answer as the protobuf bytes of proto/envoy/service/ratelimit/v3, read
// and written without making messages: text is borrowed from where it came, and nothing is
// allocated. What is taken and what is refused is what libprotobuf takes and refuses (a test and a
// fuzz target compare).
#pragma once

#include <string>
#include <string_view>

#include "envoy/rls_types.h"

namespace weir::envoy {

// A RateLimitRequest. False: it is none, or a text in it is not UTF-8; `request` is then of no use.
// `bytes` must stay until the answer is there.
[[nodiscard]] bool ReadRequest(std::string_view bytes, RequestBuffer& request);

// A RateLimitResponse, behind what is there. REQUIRES: no failure.
void AppendAnswer(std::string& out, const Response& response);

}  // namespace weir::envoy
