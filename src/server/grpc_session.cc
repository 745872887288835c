#include "server/grpc_session.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "weir/time.h"

namespace weir::server {

GrpcContext::GrpcContext(const ServerConfig& config) {
  codec::grpc::SessionLimits& limits = shared.limits;
  limits.idle_max = std::chrono::seconds(config.idle_s);
  limits.message_max = std::chrono::seconds(config.message_s);
  limits.age_max = std::chrono::seconds(config.grpc_max_age_s);
  limits.age_grace = std::chrono::seconds(config.grpc_max_age_grace_s);
  // A text that is no UTF-8 is the client's mistake, and it is told; it has no place in our log.
  google::protobuf::SetLogHandler(nullptr);
}

void GrpcContext::CountCalls(Duration took) {
  const auto& methods = shared.methods.all();
  counted_.resize(methods.size());
  for (size_t i = 0; i < methods.size(); ++i) {
    const uint64_t calls = methods[i]->messages() - counted_[i];
    // The original counts what is answered once, by the last part of its name.
    if (calls != 0 && methods[i]->shape() == codec::grpc::Method::Shape::kUnary) {
      const std::string_view path = methods[i]->path();
      stats->CountCall(path.substr(path.rfind('/') + 1), took, calls);
    }
    counted_[i] += calls;
  }
}

GrpcSession::GrpcSession(GrpcContext& context)
    : context_(context), session_(context.shared, SystemClock().Now()) {
  session_.OnLater([this] { AskToWake(); });
}

GrpcSession::~GrpcSession() {
  if (!session_.fault().empty()) {
    LatencyCounters::Bump(context_.counters.protocol_errors, 1);
  }
}

net::Session::Progress GrpcSession::OnBytes(std::span<char> input, base::ByteBuffer& output) {
  const Timestamp now = SystemClock().Now();
  const uint64_t answers_before = session_.answers();
  if (draining_) {
    session_.Drain(now);
  }
  bool going_on = session_.Receive({input.data(), input.size()}, now);
  Progress progress{input.size(), Next::kIdle, /*same_message=*/true};  // only until established
  if (session_.Send(output)) {
    progress.next = Next::kAgain;
  } else {
    going_on = going_on && session_.Receive({}, now);  // what was sent may have been the last
    progress.next = !going_on                ? Next::kClose
                    : session_.established() ? Next::kIdle
                                             : Next::kMessage;
  }
  const uint64_t answers = session_.answers() - answers_before;
  if (answers != 0) {
    const Duration took = SystemClock().Now() - now;
    context_.counters.latency.Add(static_cast<uint64_t>(took.count()), answers);
    LatencyCounters::Bump(context_.counters.requests, answers);
    LatencyCounters::Bump(context_.counters.errors, session_.errors() - errors_counted_);
    errors_counted_ = session_.errors();
    if (context_.stats != nullptr) {
      context_.CountCalls(took);
    }
  }
  return progress;
}

void GrpcSession::OnTimeout(base::ByteBuffer& output) {
  session_.Drain(SystemClock().Now());
  session_.Send(output);
}

uint32_t GrpcSession::WakeAfter() {
  const Timestamp now = SystemClock().Now();
  const Timestamp next = session_.NextWake(now);
  if (next == Timestamp::max()) {
    return 0;
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(next - now).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(seconds, 1, 86'400));
}

net::Session::Next GrpcSession::OnWake(base::ByteBuffer& output) {
  const Timestamp now = SystemClock().Now();
  bool going_on = draining_ ? session_.Drain(now) : true;
  going_on = session_.OnWake(now) && going_on;
  const bool more = session_.Send(output);
  return more || (going_on && session_.Receive({}, now)) ? Next::kIdle : Next::kClose;
}

}  // namespace weir::server
