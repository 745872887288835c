// nghttp2's C callbacks, each a call of the session.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include <nghttp2/nghttp2.h>

namespace weir::codec::grpc {

struct SessionCallbacks {
  // Made once, for all sessions.
  static const nghttp2_session_callbacks* Get();

  static ssize_t OnRead(nghttp2_session* session, int32_t stream, uint8_t* to, size_t size,
                        uint32_t* flags, nghttp2_data_source* source, void* user_data);
  static int OnBeginFrame(nghttp2_session* session, const nghttp2_frame_hd* head, void* user_data);
  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user_data);
  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags,
                      void* user_data);
  static int OnData(nghttp2_session* session, uint8_t flags, int32_t stream, const uint8_t* bytes,
                    size_t size, void* user_data);
  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user_data);
  static int OnUnknownFrame(nghttp2_session* session, void** payload, const nghttp2_frame_hd* head,
                            void* user_data);
  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* user_data);
  static int OnClose(nghttp2_session* session, int32_t stream, uint32_t error_code,
                     void* user_data);
};

}  // namespace weir::codec::grpc
