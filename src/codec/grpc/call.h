// One call: what has come of its request, and what is to be sent of its answer. Pooled, so that a
// call costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "codec/grpc/framing.h"
#include "codec/grpc/status.h"

namespace weir::codec::grpc {

class Method;
class Session;

class Call {
 public:
  // Room for an answer of that many bytes, to be filled at once.
  [[nodiscard]] char* Reply(size_t size) {
    const size_t at = answer_.size();
    answer_.resize(at + kPrefixBytes + size);
    WritePrefix(static_cast<uint32_t>(size), answer_.data() + at);
    ++replies_;
    return answer_.data() + at + kPrefixBytes;
  }

  // A unary method that cannot answer yet says so within OnMessage, and later, if the call is still
  // there then, replies and ends it. Nothing else may be done with the call in between.
  struct Later {
    Call* call;
    uint64_t serial;

    // None: it has ended meanwhile; nobody wants the answer.
    [[nodiscard]] Call* Find() const noexcept {
      return call->serial_ == serial && call->is_later_ ? call : nullptr;
    }
  };
  [[nodiscard]] Later AnswerLater() noexcept {
    is_later_ = was_later_ = true;
    return {this, serial_};
  }
  // REQUIRES: found by a Later.
  void End(Status status);

  // What was replied and is not sent yet, each message behind its prefix.
  [[nodiscard]] std::string_view answer() const noexcept { return answer_; }

  // For the method, between its calls: 0 and empty at first.
  uint32_t note = 0;
  std::string text;

 private:
  friend class Session;
  friend class CallPool;

  enum class Answer : uint8_t {
    kNone,
    kBegun,    // header fields are on their way; answers follow
    kEnding,   // the last answer is there, or there is none
    kTrailed,  // the status has been given to nghttp2
    kSent,     // and by that to the peer
  };

  static constexpr size_t kKeptBytes = 4096;

  void Reset() {
    ++serial_;
    note = 0;
    text.clear();
    method_ = nullptr;
    request_.clear();
    answer_.clear();
    if (request_.capacity() > kKeptBytes) {
      request_.shrink_to_fit();
    }
    if (answer_.capacity() > kKeptBytes) {
      answer_.shrink_to_fit();
    }
    status_message_.clear();
    answer_sent_ = 0;
    header_bytes_ = 0;
    messages_ = replies_ = 0;
    timeout_ = Duration::max();
    status_ = 0;
    content_type_ = ContentType::kOther;
    answer_state_ = Answer::kNone;
    is_post_ = bad_timeout_ = request_ended_ = is_later_ = was_later_ = false;
    next_ = previous_ = nullptr;
  }

  Session* session_ = nullptr;
  Method* method_ = nullptr;
  uint64_t serial_ = 0;  // another for each use
  std::string request_;  // bytes of messages that were not given to the method yet
  std::string answer_;
  std::string status_message_;
  size_t answer_sent_ = 0;
  Timestamp began_{};
  Duration timeout_ = Duration::max();
  int32_t stream_ = 0;
  uint32_t header_bytes_ = 0;
  uint32_t messages_ = 0;
  uint32_t replies_ = 0;
  uint8_t status_ = 0;
  ContentType content_type_ = ContentType::kOther;
  Answer answer_state_ = Answer::kNone;
  bool is_post_ = false;
  bool bad_timeout_ = false;
  bool request_ended_ = false;
  bool is_later_ = false;   // and not answered yet
  bool was_later_ = false;  // at any time
  // Of the session's open calls, or of the pool's free ones.
  Call* next_ = nullptr;
  Call* previous_ = nullptr;
};

// Calls of all sessions of a loop, used again and again; and what their requests hold in all.
class CallPool {
 public:
  static constexpr size_t kOpenMax = 100'000;
  static constexpr size_t kBytesMax = size_t{64} << 20;

  // None: too many are open.
  [[nodiscard]] Call* Take() {
    if (open_ == kOpenMax) {
      return nullptr;
    }
    ++open_;
    if (free_ == nullptr) {
      all_.push_back(std::make_unique<Call>());
      return all_.back().get();
    }
    Call* const call = free_;
    free_ = call->next_;
    call->next_ = nullptr;
    return call;
  }

  void Give(Call& call) {
    call.Reset();
    call.next_ = free_;
    free_ = &call;
    --open_;
  }

  [[nodiscard]] bool HasRoom(size_t bytes) const noexcept {
    return held_bytes_ + bytes <= kBytesMax;
  }
  void Hold(size_t bytes) noexcept { held_bytes_ += bytes; }
  void Release(size_t bytes) noexcept { held_bytes_ -= bytes; }

 private:
  std::vector<std::unique_ptr<Call>> all_;
  Call* free_ = nullptr;
  size_t open_ = 0;
  size_t held_bytes_ = 0;
};

}  // namespace weir::codec::grpc
