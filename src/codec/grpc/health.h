// grpc.health.v1: Check, and Watch, which tells news until the client goes.
#pragma once

#include <functional>
#include <string_view>

#include "codec/grpc/method.h"

namespace weir::codec::grpc {

enum class Health : uint8_t {
  kServing,
  kNotServing,
  kUnknownService,
};

// How a service is; "" asks for the server as a whole. Called on every loop.
using HealthSource = std::function<Health(std::string_view service)>;

void AddHealth(MethodTable& methods, const HealthSource& source);

}  // namespace weir::codec::grpc
