// Messages from and to the bytes of a call.
#pragma once

#include <cstdint>
#include <string_view>

#include <google/protobuf/message_lite.h>

#include "codec/grpc/call.h"
#include "codec/grpc/status.h"

namespace weir::codec::grpc {

[[nodiscard]] inline Status ReadMessage(std::string_view bytes,
                                        google::protobuf::MessageLite& message) {
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {};
  }
  return {Code::kInternal,
          "grpc: error unmarshalling request: the message is not a " + message.GetTypeName()};
}

inline void Answer(Call& call, const google::protobuf::MessageLite& message) {
  char* const to = call.Reply(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(to));
}

}  // namespace weir::codec::grpc
