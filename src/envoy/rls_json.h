// The body of POST /json: a RateLimitRequest in proto3 JSON, and the RateLimitResponse likewise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "envoy/rls_types.h"

namespace weir::envoy {

// One a thread. What it has read points into it and is good until it reads again.
class RlsJsonReader {
 public:
  RlsJsonReader();
  ~RlsJsonReader();
  RlsJsonReader(const RlsJsonReader&) = delete;
  RlsJsonReader& operator=(const RlsJsonReader&) = delete;

  // Names in camelCase or snake_case. False, and error() says why, for anything that is not such a
  // request: unknown names and names given twice included.
  [[nodiscard]] bool Read(std::string_view body);

  // REQUIRES: Read has succeeded.
  [[nodiscard]] const Request& request();
  [[nodiscard]] std::string_view error() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Names in camelCase; what is zero is left out. REQUIRES: no failure.
void AppendJson(std::string& out, const Response& response);

// 200 passes, 429 does not, 500 nobody knows. A failure is 400, or 503 if the store is to blame and
// the client should be told so.
[[nodiscard]] int HttpStatusOf(const Response& response, bool store_failure_is_503) noexcept;

}  // namespace weir::envoy
