// Takes resets of streams that were never begun out of what a peer sends.
//
// Clients of grpc-core reset a stream whose deadline is over before its HEADERS were written. That
// is against HTTP/2, and nghttp2 ends the connection for it, with every other call on it. So such
// frames are passed over here, to be counted like others that ask for nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::codec::grpc {

class IdleResets {
 public:
  // Calls pass(piece) for all bytes but those, in order, in as few pieces as can be. Returns how
  // many frames were left out. Bytes of a frame's head that is not whole are kept for the next.
  template <class Pass>
  uint32_t Filter(std::string_view bytes, Pass pass) {
    uint32_t left_out = 0;
    size_t at = 0;
    size_t from = 0;  // what begins here has not been passed on
    const auto pass_until = [&](size_t end) {
      if (end > from) {
        pass(bytes.substr(from, end - from));
      }
    };
    while (at < bytes.size()) {
      const size_t rest = bytes.size() - at;
      if (dropping_ != 0) {
        const auto step = static_cast<uint32_t>(std::min<size_t>(dropping_, rest));
        dropping_ -= step;
        at += step;
        from = at;
      } else if (passing_ != 0) {
        const auto step = static_cast<uint32_t>(std::min<size_t>(passing_, rest));
        passing_ -= step;
        at += step;
      } else if (held_ == 0 && rest >= kHeadBytes) {
        const Head head = Read(bytes.data() + at);
        if (IsIdleReset(head)) {
          ++left_out;
          pass_until(at);
          from = at;
          dropping_ = kHeadBytes + head.length;
        } else {
          passing_ = kHeadBytes + head.length;
        }
      } else {
        const size_t step = std::min(kHeadBytes - held_, rest);
        pass_until(at);
        std::memcpy(held_head_.data() + held_, bytes.data() + at, step);
        held_ += step;
        at += step;
        from = at;
        if (held_ == kHeadBytes) {
          held_ = 0;
          const Head head = Read(held_head_.data());
          if (IsIdleReset(head)) {
            ++left_out;
            dropping_ = head.length;
          } else {
            pass(std::string_view(held_head_.data(), kHeadBytes));
            passing_ = head.length;
          }
        }
      }
    }
    pass_until(bytes.size());
    return left_out;
  }

 private:
  static constexpr size_t kHeadBytes = 9;
  static constexpr uint32_t kPrefaceBytes = 24;
  static constexpr uint8_t kHeaders = 1;
  static constexpr uint8_t kResetStream = 3;

  struct Head {
    uint32_t length;
    uint8_t type;
    uint32_t stream;
  };

  static Head Read(const char* bytes) noexcept {
    const auto byte = [bytes](size_t i) { return uint32_t{static_cast<uint8_t>(bytes[i])}; };
    return {.length = byte(0) << 16 | byte(1) << 8 | byte(2),
            .type = static_cast<uint8_t>(byte(3)),
            .stream = (byte(5) & 0x7f) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)};
  }

  bool IsIdleReset(const Head& head) noexcept {
    if (head.type == kHeaders) {
      last_begun_ = std::max(last_begun_, head.stream);
    }
    // Only of the peer's own streams, and well formed; nghttp2 judges the rest.
    return head.type == kResetStream && head.length == 4 && head.stream % 2 == 1 &&
           head.stream > last_begun_;
  }

  uint32_t passing_ = kPrefaceBytes;
  uint32_t dropping_ = 0;
  uint32_t last_begun_ = 0;
  size_t held_ = 0;
  std::array<char, kHeadBytes> held_head_{};
};

}  // namespace weir::codec::grpc
