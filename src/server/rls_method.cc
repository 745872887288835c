#include "server/rls_method.h"

#include <cstring>
#include <utility>

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

RlsMethod::RlsMethod(envoy::RlsService& service) : RlsMethod(service, RlsWaiting{}) {}

RlsMethod::RlsMethod(envoy::RlsService& service, RlsWaiting waiting)
    : Method("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", Shape::kUnary),
      service_(service),
      waiting_(std::move(waiting)) {
  // The messages are read and written without their classes; these are for reflection, which tells
  // of what is linked.
  (void)::envoy::service::ratelimit::v3::RateLimitRequest::descriptor();
}

Status RlsMethod::OnMessage(Call& call, std::string_view message) {
  if (waiting_.fibers != nullptr) {
    // The fiber begins at once, and takes the message along before it waits.
    waiting_.fibers->Start(
        [this, later = call.AnswerLater(), message]() noexcept { DecideLater(later, message); });
    return {};
  }
  const base::Pool<Desk>::Lease desk(desks_);
  Status status = Decide(*desk, message);
  if (status.ok()) {
    std::memcpy(call.Reply(desk->answer.size()), desk->answer.data(), desk->answer.size());
  }
  return status;
}

void RlsMethod::DecideLater(Call::Later later, std::string_view message) {
  const Timestamp began = SystemClock().Now();
  const base::Pool<Desk>::Lease desk(desks_);
  desk->message.assign(message);
  Status status = Decide(*desk, desk->message);
  waiting_.answered(SystemClock().Now() - began, status.ok());
  if (Call* const call = later.Find()) {
    if (status.ok()) {
      std::memcpy(call->Reply(desk->answer.size()), desk->answer.data(), desk->answer.size());
    }
    call->End(std::move(status));
  }
}

Status RlsMethod::Decide(Desk& desk, std::string_view message) {
  if (!envoy::ReadRequest(message, desk.asked)) {
    return {Code::kInternal,
            "grpc: error unmarshalling request: the message is not a "
            "envoy.service.ratelimit.v3.RateLimitRequest, or a text in it is not UTF-8"};
  }
  service_.ShouldRateLimit(desk.asked.request(), desk.response);
  if (message.size() > kKeptBytes) {
    desk.asked = {};
  }
  if (desk.response.failure != envoy::Failure::kNone) {
    // Envoy takes an error as "could not decide" and applies its failure mode.
    return {desk.response.failure == envoy::Failure::kStore ? Code::kUnavailable : Code::kUnknown,
            desk.response.error};
  }
  desk.answer.clear();
  envoy::AppendAnswer(desk.answer, desk.response);
  return {};
}

}  // namespace weir::server
