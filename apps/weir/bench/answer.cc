#include "apps/weir/bench/answer.h"

#include <strings.h>

#include "apps/weir/http_response.h"
#include "codec/resp/reply_parser.h"

namespace weir::bench {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyState;
using codec::resp::ReplyType;

constexpr size_t kShownBytes = 200;  // of an error's words

class HttpAnswers final : public AnswerReader {
 public:
  AnswerState Read(std::string_view input) override {
    switch (reader_.Read(input)) {
      case app::ResponseState::kMore:
        return AnswerState::kMore;
      case app::ResponseState::kResponse:
        return AnswerState::kAnswer;
      case app::ResponseState::kError:
        break;
    }
    return AnswerState::kBroken;
  }

  [[nodiscard]] size_t consumed() const noexcept override { return reader_.consumed(); }
  [[nodiscard]] bool closes() const noexcept override { return reader_.response().closes; }

  [[nodiscard]] Answer answer() const noexcept override {
    const int status = reader_.response().status;
    if (status == 429) {
      return Answer::kDenied;
    }
    return status < 300 ? Answer::kAllowed : Answer::kError;
  }

  [[nodiscard]] std::string Explain() const override {
    if (!reader_.error().empty()) {
      return reader_.error();
    }
    return "status " + std::to_string(reader_.response().status) + ": " +
           std::string(reader_.response().body.substr(0, kShownBytes));
  }

 private:
  app::HttpResponseReader reader_;
};

// Where a reply says whether the request was allowed, and the number that means a denial.
struct DenialMark {
  uint32_t element = 0;
  int64_t denied = 0;
};

class RespAnswers final : public AnswerReader {
 public:
  RespAnswers(bool has_mark, DenialMark mark) : has_mark_(has_mark), mark_(mark) {}

  AnswerState Read(std::string_view input) override {
    switch (parser_.Parse(input)) {
      case ReplyState::kMore:
        return AnswerState::kMore;
      case ReplyState::kReply:
        return AnswerState::kAnswer;
      case ReplyState::kError:
        break;
    }
    return AnswerState::kBroken;
  }

  [[nodiscard]] size_t consumed() const noexcept override { return parser_.consumed(); }
  [[nodiscard]] bool closes() const noexcept override { return false; }

  [[nodiscard]] Answer answer() const noexcept override {
    const Reply& reply = parser_.reply();
    if (reply.type == ReplyType::kError) {
      return Answer::kError;
    }
    if (!has_mark_) {
      return Answer::kAllowed;
    }
    if (!reply.is_aggregate() || reply.size <= mark_.element) {
      return Answer::kError;
    }
    return reply.element(mark_.element).integer == mark_.denied ? Answer::kDenied
                                                                : Answer::kAllowed;
  }

  [[nodiscard]] std::string Explain() const override {
    if (!parser_.error().empty()) {
      return std::string(parser_.error());
    }
    const Reply& reply = parser_.reply();
    return reply.type == ReplyType::kError
               ? std::string(reply.text.substr(0, kShownBytes))
               : "a reply of another shape than that command's: expected an array";
  }

 private:
  codec::resp::ReplyParser parser_;
  bool has_mark_;
  DenialMark mark_;
};

}  // namespace

std::unique_ptr<AnswerReader> MakeHttpAnswers() {
  return std::make_unique<HttpAnswers>();
}

std::unique_ptr<AnswerReader> MakeRespAnswers(std::string_view command) {
  const auto is = [command](std::string_view name) {
    return command.size() == name.size() &&
           strncasecmp(command.data(), name.data(), name.size()) == 0;
  };
  if (is("CL.THROTTLE")) {
    return std::make_unique<RespAnswers>(true, DenialMark{.element = 0, .denied = 1});
  }
  if (is("THROTTLE")) {
    return std::make_unique<RespAnswers>(true, DenialMark{.element = 0, .denied = 0});
  }
  if (is("WEIR.CHECK") || is("WEIR.PEEK") || is("WEIR.HOLD")) {
    return std::make_unique<RespAnswers>(true, DenialMark{.element = 1, .denied = 0});
  }
  return std::make_unique<RespAnswers>(false, DenialMark{});
}

}  // namespace weir::bench
