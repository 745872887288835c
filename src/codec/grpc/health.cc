#include "codec/grpc/health.h"

#include <memory>
#include <string>
#include <utility>

#include <grpc/health/v1/health.pb.h>

#include "codec/grpc/message.h"

namespace weir::codec::grpc {

namespace {

namespace wire = ::grpc::health::v1;

wire::HealthCheckResponse::ServingStatus ToWire(Health health) {
  switch (health) {
    case Health::kServing:
      return wire::HealthCheckResponse::SERVING;
    case Health::kNotServing:
      return wire::HealthCheckResponse::NOT_SERVING;
    case Health::kUnknownService:
      break;
  }
  return wire::HealthCheckResponse::SERVICE_UNKNOWN;
}

class Check final : public Method {
 public:
  explicit Check(HealthSource source)
      : Method("/grpc.health.v1.Health/Check", Shape::kUnary), source_(std::move(source)) {}

  Status OnMessage(Call& call, std::string_view message) override {
    wire::HealthCheckRequest request;
    if (Status status = ReadMessage(message, request); !status.ok()) {
      return status;
    }
    const Health health = source_(request.service());
    if (health == Health::kUnknownService) {
      return {Code::kNotFound, "unknown service " + request.service()};
    }
    wire::HealthCheckResponse response;
    response.set_status(ToWire(health));
    Answer(call, response);
    return {};
  }

 private:
  const HealthSource source_;
};

class Watch final : public Method {
 public:
  explicit Watch(HealthSource source)
      : Method("/grpc.health.v1.Health/Watch", Shape::kServerStream), source_(std::move(source)) {}

  Status OnMessage(Call& call, std::string_view message) override {
    wire::HealthCheckRequest request;
    if (Status status = ReadMessage(message, request); !status.ok()) {
      return status;
    }
    call.text = request.service();
    return OnWake(call);
  }

  // The call's note is what the client was told last.
  Status OnWake(Call& call) override {
    wire::HealthCheckResponse response;
    response.set_status(ToWire(source_(call.text)));
    if (static_cast<uint32_t>(response.status()) != call.note) {
      call.note = static_cast<uint32_t>(response.status());
      Answer(call, response);
    }
    return {};
  }

 private:
  const HealthSource source_;
};

}  // namespace

void AddHealth(MethodTable& methods, const HealthSource& source) {
  methods.Add(std::make_unique<Check>(source));
  methods.Add(std::make_unique<Watch>(source));
}

}  // namespace weir::codec::grpc
