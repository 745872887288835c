// What every session of HTTP/1 does with what it reads: one request after the other is answered,
// until there is no whole one left, one is not HTTP, or the client or we want to end.
#pragma once

#include <cstddef>
#include <span>

#include "base/byte_buffer.h"
#include "codec/http/answer.h"
#include "codec/http/request_parser.h"
#include "net/session.h"

namespace weir::server {

// `answer` takes a Request and says whether the connection stays; `refuse` writes the last answer,
// about parser.status(). `progress` says what of the read has been consumed before `input`.
template <class Answer, class Refuse>
net::Session::Progress AnswerRequests(codec::http::RequestParser& parser, std::span<char> input,
                                      base::ByteBuffer& output, net::Session::Progress progress,
                                      Answer answer, Refuse refuse) {
  using Next = net::Session::Next;
  // Then the peer is to take some of it first.
  constexpr size_t kOutputBytesMax = size_t{256} << 10;
  while (!input.empty()) {
    const codec::http::ParseState state = parser.Parse(input);
    if (state == codec::http::ParseState::kMore) {
      if (parser.TakeContinue()) {
        output.Append(codec::http::kContinue);
      }
      progress.next = Next::kMessage;
      return progress;
    }
    if (state == codec::http::ParseState::kError) {
      refuse();
      progress.next = Next::kClose;
      return progress;
    }
    const bool stays = answer(parser.request());
    progress.consumed += parser.consumed();
    input = input.subspan(parser.consumed());
    if (!stays) {
      progress.next = Next::kClose;
      return progress;
    }
    if (output.size() > kOutputBytesMax) {
      progress.next = Next::kAgain;
      return progress;
    }
  }
  return progress;
}

}  // namespace weir::server
