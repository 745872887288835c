// The least that grpc++ can do: an asynchronous server that answers ShouldRateLimit with a
// constant. usage: grpc_peer [certificate key]; prints its port.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <envoy/service/ratelimit/v3/rls.grpc.pb.h>
#include <grpcpp/grpcpp.h>

namespace {

using namespace envoy::service::ratelimit::v3;  // NOLINT(google-build-using-namespace)

std::string Content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Call {
 public:
  Call(RateLimitService::AsyncService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service_.RequestShouldRateLimit(&context_, &request_, &writer_, &queue_, &queue_, this);
  }

  void Go(bool good) {
    if (!good || answered_) {
      delete this;
      return;
    }
    new Call(service_, queue_);
    RateLimitResponse response;
    response.set_overall_code(RateLimitResponse::OK);
    for (int i = 0; i < request_.descriptors_size(); ++i) {
      RateLimitResponse::DescriptorStatus& status = *response.add_statuses();
      status.set_code(RateLimitResponse::OK);
      status.mutable_current_limit()->set_requests_per_unit(100);
      status.mutable_current_limit()->set_unit(RateLimitResponse::RateLimit::HOUR);
      status.set_limit_remaining(99);
      status.mutable_duration_until_reset()->set_seconds(60);
    }
    answered_ = true;
    writer_.Finish(response, grpc::Status::OK, this);
  }

 private:
  RateLimitService::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  RateLimitRequest request_;
  grpc::ServerAsyncResponseWriter<RateLimitResponse> writer_;
  bool answered_ = false;
};

}  // namespace

int main(int count, char** words) {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (count == 3) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({Content(words[2]), Content(words[1])});
    credentials = grpc::SslServerCredentials(options);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1000);
  RateLimitService::AsyncService service;
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  std::printf("%d\n", port);
  std::fflush(stdout);
  constexpr int kWaiting = 512;
  for (int i = 0; i < kWaiting; ++i) {
    new Call(service, *queue);
  }
  void* call = nullptr;
  bool good = false;
  while (queue->Next(&call, &good)) {
    static_cast<Call*>(call)->Go(good);
  }
}
