// Any bytes as the message of ShouldRateLimit: read as libprotobuf reads them or not at all; no
// crash; an answer that reads back with a status for each descriptor, or an error.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <envoy/service/ratelimit/v3/rls.pb.h>

#include "codec/grpc/call.h"
#include "codec/grpc/framing.h"
#include "codec/grpc/method.h"
#include "envoy/rls_service.h"
#include "envoy/rls_wire.h"
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

bool SameEntries(const weir::envoy::Descriptor& ours,
                 const ::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor& theirs) {
  if (ours.entries.size() != static_cast<size_t>(theirs.entries_size())) {
    return false;
  }
  for (int i = 0; i < theirs.entries_size(); ++i) {
    if (ours.entries[static_cast<size_t>(i)].key != theirs.entries(i).key() ||
        ours.entries[static_cast<size_t>(i)].value != theirs.entries(i).value()) {
      return false;
    }
  }
  return true;
}

// What we read is what libprotobuf reads.
void Compare(std::string_view input, const wire::RateLimitRequest& theirs, bool readable) {
  weir::envoy::RequestBuffer buffer;
  Require(weir::envoy::ReadRequest(input, buffer) == readable);
  if (!readable) {
    return;
  }
  const weir::envoy::Request& ours = buffer.request();
  Require(ours.domain == theirs.domain() && ours.hits_addend == theirs.hits_addend());
  Require(ours.descriptors.size() == static_cast<size_t>(theirs.descriptors_size()));
  for (int i = 0; i < theirs.descriptors_size(); ++i) {
    const auto& one = ours.descriptors[static_cast<size_t>(i)];
    const auto& other = theirs.descriptors(i);
    Require(SameEntries(one, other));
    Require(one.limit.has_value() == other.has_limit());
    Require(!other.has_limit() ||
            one.limit->requests_per_unit == other.limit().requests_per_unit());
    Require(one.hits_addend.has_value() == other.has_hits_addend());
    Require(!other.has_hits_addend() || *one.hits_addend == other.hits_addend().value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  weir::codec::grpc::Call call;
  const weir::codec::grpc::Status status = TheMethod().OnMessage(call, input);
  wire::RateLimitRequest request;
  const bool readable = request.ParseFromArray(data, static_cast<int>(size));
  Compare(input, request, readable);
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
