// Any body is refused with a message or becomes a request; a request written as JSON again is read
// as the same request, and the answer to it is JSON.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "envoy/json_writing.h"
#include "envoy/rls_json.h"
#include "fuzz/require.h"

using weir::fuzz::Require;

namespace {

using weir::envoy::AppendJsonString;

std::string Written(const weir::envoy::Request& request) {
  std::string out = "{\"domain\":";
  AppendJsonString(out, request.domain);
  out += ",\"hits_addend\":" + std::to_string(request.hits_addend) + ",\"descriptors\":[";
  bool first = true;
  for (const weir::envoy::Descriptor& descriptor : request.descriptors) {
    out += first ? "{\"entries\":[" : ",{\"entries\":[";
    first = false;
    for (size_t i = 0; i < descriptor.entries.size(); ++i) {
      out += i == 0 ? "{\"key\":" : ",{\"key\":";
      AppendJsonString(out, descriptor.entries[i].key);
      out += ",\"value\":";
      AppendJsonString(out, descriptor.entries[i].value);
      out += '}';
    }
    out += ']';
    if (descriptor.hits_addend.has_value()) {
      out += ",\"hitsAddend\":\"" + std::to_string(*descriptor.hits_addend) + '"';
    }
    if (descriptor.limit.has_value()) {
      out += ",\"limit\":{\"unit\":" + std::to_string(static_cast<int>(descriptor.limit->unit)) +
             ",\"requestsPerUnit\":" + std::to_string(descriptor.limit->requests_per_unit) + '}';
    }
    out += '}';
  }
  return out + "]}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  weir::envoy::RlsJsonReader reader;
  if (!reader.Read(body)) {
    Require(!reader.error().empty());
    return 0;
  }
  const std::string once = Written(reader.request());
  weir::envoy::RlsJsonReader again;
  Require(again.Read(once));
  Require(Written(again.request()) == once);
  return 0;
}
