#include "codec/grpc/session_callbacks.h"

#include <string_view>

#include "codec/grpc/call.h"
#include "codec/grpc/session.h"

namespace weir::codec::grpc {

namespace {

Session& Of(void* user_data) {
  return *static_cast<Session*>(user_data);
}

Call* CallOf(nghttp2_session* session, int32_t stream) {
  return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, stream));
}

std::string_view Text(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

const nghttp2_session_callbacks* SessionCallbacks::Get() {
  static const nghttp2_session_callbacks* const kCallbacks = [] {
    nghttp2_session_callbacks* made = nullptr;
    nghttp2_session_callbacks_new(&made);
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, OnBeginFrame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
    nghttp2_session_callbacks_set_unpack_extension_callback(made, OnUnknownFrame);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, OnSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, OnClose);
    return made;
  }();
  return kCallbacks;
}

ssize_t SessionCallbacks::OnRead(nghttp2_session*, int32_t, uint8_t* to, size_t size,
                                 uint32_t* flags, nghttp2_data_source* source, void* user_data) {
  return Of(user_data).OnRead(*static_cast<Call*>(source->ptr), to, size, *flags);
}

int SessionCallbacks::OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head,
                                   void* user_data) {
  return Of(user_data).OnBeginFrame(head->type, head->flags, head->length);
}

int SessionCallbacks::OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame,
                                     void* user_data) {
  return frame->headers.cat == NGHTTP2_HCAT_REQUEST
             ? Of(user_data).OnBeginRequest(frame->hd.stream_id)
             : 0;
}

int SessionCallbacks::OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                               const uint8_t* name, size_t name_size, const uint8_t* value,
                               size_t value_size, uint8_t, void* user_data) {
  // Fields after the body mean nothing to us.
  Call* const call =
      frame->headers.cat == NGHTTP2_HCAT_REQUEST ? CallOf(session, frame->hd.stream_id) : nullptr;
  return call != nullptr
             ? Of(user_data).OnHeader(*call, Text(name, name_size), Text(value, value_size))
             : 0;
}

int SessionCallbacks::OnData(nghttp2_session* session, uint8_t, int32_t stream,
                             const uint8_t* bytes, size_t size, void* user_data) {
  Call* const call = CallOf(session, stream);
  return call != nullptr ? Of(user_data).OnData(*call, Text(bytes, size)) : 0;
}

int SessionCallbacks::OnFrame(nghttp2_session* session, const nghttp2_frame* frame,
                              void* user_data) {
  Session& to = Of(user_data);
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      Call* const call = CallOf(session, frame->hd.stream_id);
      if (call == nullptr) {
        return 0;
      }
      if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        if (const int error = to.OnHeadersEnd(*call); error != 0) {
          return error;
        }
      }
      if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        to.OnRequestEnd(*call);
      }
      return 0;
    }
    case NGHTTP2_RST_STREAM:
      return to.OnResetReceived(CallOf(session, frame->hd.stream_id));
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
        to.OnPong();
      }
      return 0;
    default:
      return 0;
  }
}

int SessionCallbacks::OnUnknownFrame(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) {
  return NGHTTP2_ERR_CANCEL;  // it ends here
}

int SessionCallbacks::OnSent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
  uint32_t error_code = NGHTTP2_NO_ERROR;
  if (frame->hd.type == NGHTTP2_RST_STREAM) {
    error_code = frame->rst_stream.error_code;
  } else if (frame->hd.type == NGHTTP2_GOAWAY) {
    error_code = frame->goaway.error_code;
  }
  Of(user_data).OnSent(frame->hd.type, frame->hd.flags, frame->hd.stream_id, error_code);
  return 0;
}

int SessionCallbacks::OnClose(nghttp2_session* session, int32_t stream, uint32_t, void* user_data) {
  if (Call* const call = CallOf(session, stream); call != nullptr) {
    Of(user_data).OnClose(*call);
  }
  return 0;
}

}  // namespace weir::codec::grpc
