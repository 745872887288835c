// Asks a running weir with grpc++: every method, a deadline, a cancellation, many calls at a time.
// usage: grpc_client PORT; prints a line for each part that got the answers it should. With
// WEIR_GRPC_CA it asks over TLS, with WEIR_GRPC_CERT and WEIR_GRPC_KEY as the client of a
// certificate.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <envoy/service/ratelimit/v3/rls.pb.h>
#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace {

namespace rls = envoy::service::ratelimit::v3;
namespace health = grpc::health::v1;
namespace reflection = grpc::reflection::v1;

void Expect(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "grpc_client: not so: %s\n", what);
    std::exit(1);
  }
}

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

template <class Message>
Message FromBytes(const grpc::ByteBuffer& bytes) {
  Message message;
  grpc::Slice slice;
  Expect(bytes.DumpToSingleSlice(&slice).ok() &&
             message.ParseFromArray(slice.begin(), static_cast<int>(slice.size())),
         "a message of its type");
  return message;
}

// What the file holds that a variable names; empty: it is not set.
std::string FileOf(const char* variable) {
  const char* const path = std::getenv(variable);
  if (path == nullptr) {
    return {};
  }
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<grpc::ChannelCredentials> Credentials() {
  const std::string authority = FileOf("WEIR_GRPC_CA");
  return authority.empty() ? grpc::InsecureChannelCredentials()
                           : grpc::SslCredentials({.pem_root_certs = authority,
                                                   .pem_private_key = FileOf("WEIR_GRPC_KEY"),
                                                   .pem_cert_chain = FileOf("WEIR_GRPC_CERT")});
}

class Client {
 public:
  explicit Client(const std::string& port)
      : stub_(grpc::CreateChannel("localhost:" + port, Credentials())) {}

  template <class Answer>
  grpc::Status Ask(const std::string& path, const google::protobuf::MessageLite& question,
                   Answer& answer) {
    grpc::ClientContext context;
    grpc::ByteBuffer bytes;
    grpc::Status status;
    const auto call = stub_.PrepareUnaryCall(&context, path, ToBytes(question), &queue_);
    call->StartCall();
    call->Finish(&bytes, &status, this);
    Next();
    if (status.ok()) {
      answer = FromBytes<Answer>(bytes);
    }
    return status;
  }

  // One message, then one answer; the call stays open.
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  };
  grpc::ByteBuffer Open(Stream& stream, const std::string& path,
                        const google::protobuf::MessageLite& question) {
    grpc::ByteBuffer answer;
    stream.call = stub_.PrepareCall(&stream.context, path, &queue_);
    stream.call->StartCall(this);
    Expect(Next(), "a call begins");
    stream.call->WriteLast(ToBytes(question), grpc::WriteOptions(), this);
    Expect(Next(), "a message is sent");
    stream.call->Read(&answer, this);
    Expect(Next(), "an answer comes");
    return answer;
  }
  grpc::Status End(Stream& stream) {
    grpc::ByteBuffer more;
    stream.call->Read(&more, this);
    Expect(!Next(), "no answer follows");
    grpc::Status status;
    stream.call->Finish(&status, this);
    Next();
    return status;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool good = false;
    Expect(queue_.Next(&tag, &good), "the queue goes on");
    return good;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace

int main(int count, char** words) {
  Expect(count == 2, "usage: grpc_client PORT");
  Client client(words[1]);

  rls::RateLimitRequest question;
  question.set_domain("shop");
  auto& entry = *question.add_descriptors()->add_entries();
  entry.set_key("user");
  entry.set_value("cpp");
  const std::string path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  rls::RateLimitResponse answer;
  for (int i = 0; i < 300; ++i) {
    Expect(client.Ask(path, question, answer).ok(), "a decision");
    const bool over = answer.overall_code() == rls::RateLimitResponse::OVER_LIMIT;
    Expect(over == (i >= 3) && answer.statuses_size() == 1, "3 an hour");
  }
  std::puts("ok rate limit");

  const grpc::Status wrong = client.Ask(path, rls::RateLimitRequest(), answer);
  Expect(wrong.error_code() == grpc::StatusCode::UNKNOWN &&
             wrong.error_message() == "rate limit domain must not be empty",
         "the original's error");
  Expect(client.Ask("/no.Such/Method", question, answer).error_code() ==
             grpc::StatusCode::UNIMPLEMENTED,
         "an unknown method");
  std::puts("ok errors");

  Client::Stream watch;
  const auto first = FromBytes<health::HealthCheckResponse>(
      client.Open(watch, "/grpc.health.v1.Health/Watch", health::HealthCheckRequest()));
  Expect(first.status() == health::HealthCheckResponse::SERVING, "serving");
  watch.context.TryCancel();
  Expect(client.End(watch).error_code() == grpc::StatusCode::CANCELLED, "a cancellation");
  Client::Stream late;
  late.context.set_deadline(gpr_time_from_millis(500, GPR_TIMESPAN));
  client.Open(late, "/grpc.health.v1.Health/Watch", health::HealthCheckRequest());
  Expect(client.End(late).error_code() == grpc::StatusCode::DEADLINE_EXCEEDED, "a deadline");
  std::puts("ok watch");

  reflection::ServerReflectionRequest list;
  list.set_list_services("");
  Client::Stream told;
  const auto services = FromBytes<reflection::ServerReflectionResponse>(
      client.Open(told, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", list));
  Expect(services.list_services_response().service_size() >= 3, "services");
  Expect(client.End(told).ok(), "an end");
  std::puts("ok reflection");
}
