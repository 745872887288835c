// Any bytes as the message of ShouldRateLimit: no crash, an answer that reads back with a status
// for each descriptor, or an error.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <envoy/service/ratelimit/v3/rls.pb.h>

#include "codec/grpc/call.h"
#include "codec/grpc/framing.h"
#include "codec/grpc/method.h"
#include "envoy/rls_service.h"
#include "fuzz/pieces.h"
#include "server/rls_method.h"

namespace {

namespace wire = ::envoy::service::ratelimit::v3;
using weir::fuzz::Require;

constexpr const char* kDescriptors = R"(
domain: a
descriptors:
  - {key: k, rate_limit: {unit: second, requests_per_unit: 2}, metadata: {x: [1, true, null, y]}}
  - {key: k, value: "v*", rate_limit: {unlimited: true}}
  - key: k
    value: w
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 0}
    descriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: 4294967295}}]
)";

weir::server::RlsMethod& TheMethod() {
  static const std::unique_ptr<weir::envoy::RlsService> service = [] {
    weir::envoy::RlsOptions options;
    options.memory_bytes = size_t{1} << 20;
    options.response_dynamic_metadata = true;
    options.response_headers = true;
    auto made = weir::envoy::RlsService::Create(options);
    Require(made.ok());
    const weir::envoy::ConfigFile file{"a.yaml", kDescriptors};
    Require((*made)->Load({&file, 1}).ok());
    return *std::move(made);
  }();
  static weir::server::RlsMethod method(*service);
  return method;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  weir::codec::grpc::Call call;
  const weir::codec::grpc::Status status = TheMethod().OnMessage(call, input);
  wire::RateLimitRequest request;
  const bool readable = request.ParseFromArray(data, static_cast<int>(size));
  Require(readable || !status.ok());
  if (status.ok()) {
    const std::string_view answer = call.answer();
    Require(answer.size() >= weir::codec::grpc::kPrefixBytes);
    wire::RateLimitResponse response;
    const std::string_view message = answer.substr(weir::codec::grpc::kPrefixBytes);
    Require(weir::codec::grpc::ReadPrefix(answer).size == message.size());
    Require(response.ParseFromArray(message.data(), static_cast<int>(message.size())));
    Require(response.statuses_size() == request.descriptors_size());
  } else {
    Require(!status.message.empty());
  }
  return 0;
}
