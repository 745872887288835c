#include "server/rls_method.h"

#include <cstring>

#include <envoy/service/ratelimit/v3/rls.pb.h>

#include "envoy/rls_wire.h"

namespace weir::server {

namespace {

using codec::grpc::Call;
using codec::grpc::Code;
using codec::grpc::Status;

// A request beyond this does not keep its memory.
constexpr size_t kKeptBytes = size_t{64} << 10;

}  // namespace

RlsMethod::RlsMethod(envoy::RlsService& service)
    : Method("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", Shape::kUnary),
      service_(service) {
  // The messages are read and written without their classes; these are for reflection, which tells
  // of what is linked.
  (void)::envoy::service::ratelimit::v3::RateLimitRequest::descriptor();
}

Status RlsMethod::OnMessage(Call& call, std::string_view message) {
  if (!envoy::ReadRequest(message, asked_)) {
    return {Code::kInternal,
            "grpc: error unmarshalling request: the message is not a "
            "envoy.service.ratelimit.v3.RateLimitRequest, or a text in it is not UTF-8"};
  }
  service_.ShouldRateLimit(asked_.request(), response_);
  if (message.size() > kKeptBytes) {
    asked_ = {};
  }
  if (response_.failure != envoy::Failure::kNone) {
    // Envoy takes an error as "could not decide" and applies its failure mode.
    return {response_.failure == envoy::Failure::kStore ? Code::kUnavailable : Code::kUnknown,
            response_.error};
  }
  answer_.clear();
  envoy::AppendAnswer(answer_, response_);
  std::memcpy(call.Reply(answer_.size()), answer_.data(), answer_.size());
  return {};
}

}  // namespace weir::server
