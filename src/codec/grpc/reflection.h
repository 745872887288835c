// grpc.reflection, v1 and v1alpha: what can be called here, told to grpcurl, buf curl and the like.
#pragma once

#include "codec/grpc/method.h"

namespace weir::codec::grpc {

// Tells of all services of the table, which must outlive its methods' calls.
void AddReflection(MethodTable& methods);

}  // namespace weir::codec::grpc
