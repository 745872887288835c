#include "codec/grpc/session.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include <nghttp2/nghttp2.h>

#include "codec/grpc/session_callbacks.h"

namespace weir::codec::grpc {

namespace {

// Answers pile up while a peer sends faster than it reads; past this it is made to read first.
constexpr size_t kOutputBytesMax = size_t{256} << 10;
// Between the first word of an end and the last, for calls that are on their way.
constexpr Duration kNotice = std::chrono::seconds(1);

nghttp2_nv Field(std::string_view name, std::string_view value, bool copy_value) {
  // nghttp2 takes bytes that it does not change as not const.
  auto* const name_bytes = const_cast<char*>(name.data());    // NOLINT
  auto* const value_bytes = const_cast<char*>(value.data());  // NOLINT
  return {.name = reinterpret_cast<uint8_t*>(name_bytes),
          .value = reinterpret_cast<uint8_t*>(value_bytes),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = static_cast<uint8_t>(NGHTTP2_NV_FLAG_NO_COPY_NAME |
                                        (copy_value ? 0 : NGHTTP2_NV_FLAG_NO_COPY_VALUE))};
}

nghttp2_nv Fixed(std::string_view name, std::string_view value) {
  return Field(name, value, false);
}

// A status as text, which outlives every frame.
std::string_view Digits(uint8_t code) {
  static constexpr std::string_view kNumbers = "0 1 2 3 4 5 6 7 8 9 10111213141516";
  return kNumbers.substr(size_t{2} * code, code < 10 ? 1 : 2);
}

bool IsPassed(Duration limit, Timestamp since, Timestamp now) {
  return limit > Duration::zero() && now - since >= limit;
}

}  // namespace

Session::Session(SessionShared& shared, Timestamp now)
    : shared_(shared),
      guard_(shared.limits.flood),
      now_(now),
      began_(now),
      last_received_(now),
      last_call_(now) {
  const SessionLimits& limits = shared.limits;
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_continuations(option, limits.continuations_max);
  // The guard judges resets, and knows how Envoy uses them; nghttp2's own limit would not.
  nghttp2_option_set_stream_reset_rate_limit(option, 1'000'000, 1'000'000);
  // Frames of types that nobody knows are to be ignored, but they are told of and counted.
  constexpr int kFirstUnknownType = 10;
  for (int type = kFirstUnknownType; type < 256; ++type) {
    nghttp2_option_set_user_recv_extension_type(option, static_cast<uint8_t>(type));
  }
  nghttp2_session_server_new3(&session_, SessionCallbacks::Get(), this, option,
                              shared.memory.interface());
  nghttp2_option_del(option);
  const std::array<nghttp2_settings_entry, 4> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams_max},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window_bytes},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.header_bytes_max},
       {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(limits.connection_window_bytes));
}

Session::~Session() {
  nghttp2_session_del(session_);
  // Deleting a session does not close its streams one by one.
  while (open_ != nullptr) {
    OnClose(*open_);
  }
}

bool Session::WantsMore() const {
  return !broken_ &&
         (nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0);
}

bool Session::Receive(std::string_view bytes, Timestamp now) {
  now_ = now;
  if (broken_) {
    return false;
  }
  guard_.Begin(now);
  if (!bytes.empty()) {
    last_received_ = now;
    ping_open_ = false;  // whatever comes shows that the peer is there
  }
  const uint32_t idle_resets = idle_resets_.Filter(bytes, [this](std::string_view piece) {
    if (broken_) {
      return;
    }
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(piece.data()), piece.size());
    if (taken < 0) {
      broken_ = true;
      if (fault_.empty()) {
        fault_ =
            taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? "not HTTP/2" : nghttp2_strerror(int(taken));
      }
    }
  });
  for (uint32_t i = 0; i < idle_resets && !broken_; ++i) {
    broken_ = !guard_.OnIdleFrame();
    if (broken_) {
      fault_ = "too many resets of streams that were not begun";
    }
  }
  return WantsMore();
}

bool Session::Send(base::ByteBuffer& output) {
  while (!broken_) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) {
      broken_ = true;
      fault_ = nghttp2_strerror(int(size));
      break;
    }
    if (size == 0) {
      return false;
    }
    output.Append({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
    if (output.size() > kOutputBytesMax) {
      return true;
    }
  }
  // nghttp2 is not asked any more: the last word by hand.
  const auto error =
      static_cast<char>(established_ ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR);
  const auto last = static_cast<uint32_t>(nghttp2_session_get_last_proc_stream_id(session_));
  const char frame[] = {0,
                        0,
                        8,
                        NGHTTP2_GOAWAY,
                        0,
                        0,
                        0,
                        0,
                        0,
                        static_cast<char>(last >> 24),
                        static_cast<char>(last >> 16),
                        static_cast<char>(last >> 8),
                        static_cast<char>(last),
                        0,
                        0,
                        0,
                        error};
  output.Append({frame, sizeof frame});
  return false;
}

bool Session::Drain(Timestamp now) {
  now_ = now;
  if (going_ == Going::kNo && !broken_) {
    nghttp2_submit_shutdown_notice(session_);
    // Its answer says that the peer has read the notice, so that nothing is on its way any more.
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    going_ = Going::kNoticed;
    going_since_ = now;
    for (Call* call = open_; call != nullptr;) {
      Call* const next = call->next_;
      if (call->answer_state_ == Call::Answer::kBegun) {
        if (Status status = call->method_->OnWake(*call); !status.ok()) {
          Finish(*call, std::move(status));
        } else if (call->answer_sent_ < call->answer_.size()) {
          nghttp2_session_resume_data(session_, call->stream_);
        }
      }
      call = next;
    }
  }
  return WantsMore();
}

void Session::OnPong() {
  if (going_ == Going::kNoticed) {
    going_ = Going::kLast;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }
}

bool Session::OnWake(Timestamp now) {
  now_ = now;
  const SessionLimits& limits = shared_.limits;
  for (Call* call = open_; call != nullptr;) {
    Call* const next = call->next_;
    if (call->answer_state_ <= Call::Answer::kBegun) {
      Status status;
      if (now - call->began_ >= call->timeout_) {
        status = {Code::kDeadlineExceeded, "the call's time is over"};
      } else if (!call->request_ended_ && call->answer_state_ == Call::Answer::kNone &&
                 IsPassed(limits.message_max, call->began_, now)) {
        status = {Code::kDeadlineExceeded, "the rest of the request did not come in time"};
      } else if (call->answer_state_ == Call::Answer::kBegun) {
        status = call->method_->OnWake(*call);
      }
      if (!status.ok()) {
        Finish(*call, std::move(status));
      } else if (call->answer_sent_ < call->answer_.size()) {
        nghttp2_session_resume_data(session_, call->stream_);
      }
    }
    call = next;
  }
  if (going_ == Going::kNoticed && now - going_since_ >= kNotice) {
    OnPong();
  } else if (going_ == Going::kLast && IsPassed(limits.age_grace, going_since_, now)) {
    broken_ = true;
  } else if (going_ == Going::kNo &&
             (IsPassed(limits.age_max, began_, now) ||
              (open_ == nullptr && IsPassed(limits.idle_max, last_call_, now)))) {
    Drain(now);
  }
  if (ping_open_ && IsPassed(limits.keepalive_timeout, pinged_, now)) {
    fault_ = "no answer to a ping";
    broken_ = true;
  } else if (!ping_open_ && open_ != nullptr && IsPassed(limits.keepalive, last_received_, now)) {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    ping_open_ = true;
    pinged_ = now;
  }
  return WantsMore();
}

Timestamp Session::NextWake(Timestamp now) const {
  constexpr Duration kSoon = std::chrono::seconds(1);
  if (open_ != nullptr || going_ != Going::kNo || ping_open_) {
    return now + kSoon;
  }
  const SessionLimits& limits = shared_.limits;
  Timestamp next = Timestamp::max();
  if (limits.idle_max > Duration::zero()) {
    next = std::min(next, last_call_ + limits.idle_max);
  }
  if (limits.age_max > Duration::zero()) {
    next = std::min(next, began_ + limits.age_max);
  }
  return std::max(next, now + kSoon);
}

int Session::Flooded(std::string_view why) {
  fault_ = why;
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int Session::OnBeginFrame(uint8_t type, uint8_t flags, size_t length) {
  const bool asks =
      type == NGHTTP2_HEADERS ||
      (type == NGHTTP2_DATA && (length != 0 || (flags & NGHTTP2_FLAG_END_STREAM) != 0));
  if (type == NGHTTP2_SETTINGS) {
    established_ = true;
  }
  return asks || guard_.OnIdleFrame() ? 0 : Flooded("too many frames that ask for nothing");
}

int Session::OnBeginRequest(int32_t stream) {
  guard_.OnCall();
  last_call_ = now_;
  Call* const call = shared_.calls.Take();
  if (call == nullptr) {
    return nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_REFUSED_STREAM);
  }
  call->session_ = this;
  call->stream_ = stream;
  call->began_ = now_;
  call->next_ = open_;
  if (open_ != nullptr) {
    open_->previous_ = call;
  }
  open_ = call;
  return nghttp2_session_set_stream_user_data(session_, stream, call);
}

int Session::OnHeader(Call& call, std::string_view name, std::string_view value) {
  constexpr uint32_t kFieldBytes = 32;
  call.header_bytes_ += static_cast<uint32_t>(name.size() + value.size()) + kFieldBytes;
  if (call.header_bytes_ > shared_.limits.header_bytes_max) {
    if (call.header_bytes_ / 4 <= shared_.limits.header_bytes_max) {
      return 0;  // answered at the end of the fields
    }
    return guard_.OnOversized() ? int{NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE}
                                : Flooded("header fields beyond the limit, again and again");
  }
  if (name == ":path") {
    call.method_ = shared_.methods.Find(value);
    if (call.method_ == nullptr) {
      constexpr size_t kShown = 200;
      call.text = value.substr(0, kShown);
    }
  } else if (name == ":method") {
    call.is_post_ = value == "POST";
  } else if (name == "content-type") {
    call.content_type_ = ParseContentType(value);
  } else if (name == "grpc-timeout") {
    const std::optional<Duration> timeout = ParseTimeout(value);
    call.bad_timeout_ = !timeout.has_value();
    call.timeout_ = timeout.value_or(Duration::max());
  }
  return 0;
}

int Session::OnHeadersEnd(Call& call) {
  if (call.header_bytes_ > shared_.limits.header_bytes_max) {
    Refuse(
        call, "431",
        {Code::kResourceExhausted, "header fields of more than " +
                                       std::to_string(shared_.limits.header_bytes_max) + " bytes"});
    return guard_.OnOversized() ? 0 : Flooded("header fields beyond the limit, again and again");
  }
  if (!call.is_post_) {
    Refuse(call, "405", {Code::kInternal, "gRPC is asked with POST"});
  } else if (call.content_type_ == ContentType::kOther) {
    Refuse(call, "415", {Code::kInternal, "expected content-type application/grpc"});
  } else if (call.content_type_ == ContentType::kEncoding) {
    Finish(call, {Code::kUnimplemented, "messages other than protobuf are not understood"});
  } else if (call.bad_timeout_) {
    Finish(call,
           {Code::kInternal, "grpc-timeout: expected up to 8 digits and one of H, M, S, m, u, n"});
  } else if (call.method_ == nullptr) {
    Finish(call, {Code::kUnimplemented, "unknown method " + call.text});
  }
  return 0;
}

int Session::OnData(Call& call, std::string_view bytes) {
  if (call.answer_state_ > Call::Answer::kBegun) {
    return 0;  // it has been answered; the rest does not matter
  }
  if (held_bytes_ + bytes.size() > shared_.limits.held_bytes_max ||
      !shared_.calls.HasRoom(bytes.size())) {
    Finish(call, {Code::kResourceExhausted, "too many bytes of unfinished requests"});
    return 0;
  }
  call.request_.append(bytes);
  held_bytes_ += bytes.size();
  shared_.calls.Hold(bytes.size());
  if (call.request_.size() >= kPrefixBytes) {
    const Prefix prefix = ReadPrefix(call.request_);
    if (prefix.compressed) {
      Finish(call, {Code::kUnimplemented, "compressed messages are not understood"});
    } else if (prefix.size > shared_.limits.message_bytes_max) {
      Finish(call, {Code::kResourceExhausted,
                    "a message of " + std::to_string(prefix.size) + " bytes; at most " +
                        std::to_string(shared_.limits.message_bytes_max)});
    } else if (call.method_->shape() == Method::Shape::kBidiStream) {
      Deliver(call);
    }
  }
  return 0;
}

void Session::OnRequestEnd(Call& call) {
  call.request_ended_ = true;
  if (call.answer_state_ > Call::Answer::kBegun) {
    return;
  }
  if (now_ - call.began_ >= call.timeout_) {
    Finish(call, {Code::kDeadlineExceeded, "the call's time is over"});
    return;
  }
  Deliver(call);
  if (call.answer_state_ > Call::Answer::kBegun) {
    return;
  }
  const Method::Shape shape = call.method_->shape();
  if (call.is_later_ && call.request_.empty()) {
    return;
  }
  if (!call.request_.empty()) {
    Finish(call, {Code::kInternal, "the request ends within a message"});
  } else if (shape != Method::Shape::kBidiStream && call.messages_ != 1) {
    Finish(call, {Code::kUnimplemented, "expected one message, found none"});
  } else if (shape != Method::Shape::kServerStream) {
    Finish(call, {});
  }
}

void Session::Deliver(Call& call) {
  const bool single = call.method_->shape() != Method::Shape::kBidiStream;
  size_t taken = 0;
  Status status;
  while (status.ok() && call.request_.size() - taken >= kPrefixBytes) {
    const std::string_view rest = std::string_view(call.request_).substr(taken);
    const Prefix prefix = ReadPrefix(rest);
    if (prefix.compressed) {
      status = {Code::kUnimplemented, "compressed messages are not understood"};
    } else if (prefix.size > shared_.limits.message_bytes_max) {
      status = {Code::kResourceExhausted, "a message of " + std::to_string(prefix.size) +
                                              " bytes; at most " +
                                              std::to_string(shared_.limits.message_bytes_max)};
    } else if (rest.size() - kPrefixBytes < prefix.size) {
      break;
    } else if (single && ++call.messages_ > 1) {
      status = {Code::kUnimplemented, "expected one message, found more"};
    } else {
      status = call.method_->OnMessage(call, rest.substr(kPrefixBytes, prefix.size));
      call.method_->messages_ += call.was_later_ ? 0 : 1;
      if (call.answer_state_ > Call::Answer::kBegun) {
        return;  // it was not that late, and has ended
      }
      taken += kPrefixBytes + prefix.size;
    }
  }
  if (!status.ok()) {
    Finish(call, std::move(status));
    return;
  }
  call.request_.erase(0, taken);
  held_bytes_ -= taken;
  shared_.calls.Release(taken);
  if (call.method_->shape() != Method::Shape::kUnary && call.messages_ + call.replies_ != 0) {
    Begin(call);
  }
}

void Call::End(Status status) {
  const uint64_t answers = session_->answers_;
  const uint64_t errors = session_->errors_;
  session_->Finish(*this, std::move(status));
  session_->answers_ = answers;
  session_->errors_ = errors;
  if (session_->on_later_ != nullptr) {
    session_->on_later_();
  }
}

void Session::DropRequest(Call& call) {
  held_bytes_ -= call.request_.size();
  shared_.calls.Release(call.request_.size());
  call.request_.clear();
}

// Header fields now, and answers as they come.
void Session::Begin(Call& call) {
  if (call.answer_state_ == Call::Answer::kBegun) {
    nghttp2_session_resume_data(session_, call.stream_);
    return;
  }
  const std::array<nghttp2_nv, 2> fields = {Fixed(":status", "200"),
                                            Fixed("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.source.ptr = &call;
  provider.read_callback = SessionCallbacks::OnRead;
  nghttp2_submit_response(session_, call.stream_, fields.data(), fields.size(), &provider);
  call.answer_state_ = Call::Answer::kBegun;
}

void Session::Finish(Call& call, Status status) {
  call.is_later_ = false;
  DropRequest(call);
  ++answers_;
  errors_ += static_cast<uint64_t>(!status.ok());
  if (!status.ok() && call.answer_state_ == Call::Answer::kNone) {
    --answers_;
    --errors_;
    Refuse(call, "200", std::move(status));
    return;
  }
  call.status_ = static_cast<uint8_t>(status.code);
  call.status_message_ = std::move(status.message);
  Begin(call);
  call.answer_state_ = Call::Answer::kEnding;
}

// Header fields that are the whole answer.
void Session::Refuse(Call& call, std::string_view http_status, Status status) {
  DropRequest(call);
  ++answers_;
  ++errors_;
  const std::string message = PercentEncode(status.message);
  std::array<nghttp2_nv, 5> fields = {
      Field(":status", http_status, true), Fixed("content-type", "application/grpc"),
      Fixed("grpc-status", Digits(static_cast<uint8_t>(status.code))),
      Field("grpc-message", message, true), Fixed("grpc-accept-encoding", "identity")};
  const size_t count = status.code == Code::kUnimplemented ? fields.size() : fields.size() - 1;
  nghttp2_submit_response(session_, call.stream_, fields.data(), count, nullptr);
  call.answer_state_ = Call::Answer::kTrailed;
}

ptrdiff_t Session::OnRead(Call& call, uint8_t* to, size_t size, uint32_t& flags) {
  const size_t part = std::min(size, call.answer_.size() - call.answer_sent_);
  if (part != 0) {
    std::memcpy(to, call.answer_.data() + call.answer_sent_, part);
    call.answer_sent_ += part;
  }
  if (call.answer_sent_ < call.answer_.size()) {
    return static_cast<ptrdiff_t>(part);
  }
  call.answer_.clear();
  call.answer_sent_ = 0;
  if (call.answer_state_ != Call::Answer::kEnding) {
    return part != 0 ? static_cast<ptrdiff_t>(part) : ptrdiff_t{NGHTTP2_ERR_DEFERRED};
  }
  flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  call.answer_state_ = Call::Answer::kTrailed;
  const std::string message = PercentEncode(call.status_message_);
  const std::array<nghttp2_nv, 2> fields = {Fixed("grpc-status", Digits(call.status_)),
                                            Field("grpc-message", message, true)};
  nghttp2_submit_trailer(session_, call.stream_, fields.data(), message.empty() ? 1 : 2);
  return static_cast<ptrdiff_t>(part);
}

void Session::OnSent(uint8_t type, uint8_t flags, int32_t stream, uint32_t error_code) {
  if (type == NGHTTP2_GOAWAY && error_code != NGHTTP2_NO_ERROR) {
    fault_ = nghttp2_http2_strerror(error_code);
  } else if (type == NGHTTP2_RST_STREAM && error_code != NGHTTP2_NO_ERROR) {
    if (!guard_.OnReset()) {
      Flooded("streams that had to be reset");
      broken_ = true;
    }
  } else if (type == NGHTTP2_HEADERS && (flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    auto* const call = static_cast<Call*>(nghttp2_session_get_stream_user_data(session_, stream));
    if (call != nullptr) {
      call->answer_state_ = Call::Answer::kSent;
      if (!call->request_ended_) {
        // It need not send the rest.
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR);
      }
    }
  }
}

int Session::OnResetReceived(Call* call) {
  const bool answered = call == nullptr || call->answer_state_ == Call::Answer::kSent;
  return answered || guard_.OnReset() ? 0 : Flooded("calls that are reset before their answer");
}

void Session::OnClose(Call& call) {
  DropRequest(call);
  (call.previous_ != nullptr ? call.previous_->next_ : open_) = call.next_;
  if (call.next_ != nullptr) {
    call.next_->previous_ = call.previous_;
  }
  shared_.calls.Give(call);
}

}  // namespace weir::codec::grpc
