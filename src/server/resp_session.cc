#include "server/resp_session.h"

#include <algorithm>
#include <atomic>

#include "base/same_text.h"
#include "net/fiber.h"

namespace weir::server {

namespace {

using codec::resp::CommandLimits;
using codec::resp::ParseState;

// Answers pile up while a peer sends faster than it reads; past this it is made to read first.
constexpr size_t kOutputBytesMax = size_t{256} << 10;

constexpr std::string_view kCheck = "weir.check";

std::atomic<uint64_t> last_id{0};

}  // namespace

RespSession::RespSession(RespContext& context, const net::Peer& peer)
    : context_(context),
      parser_(context.options.password.empty() ? CommandLimits{}
                                               : CommandLimits::Unauthenticated()),
      tls_client_(peer.identity),
      id_(last_id.fetch_add(1, std::memory_order_relaxed) + 1),
      local_(peer.local),
      authenticated_(context.options.password.empty()) {}

net::Session::Progress RespSession::OnBytes(std::span<char> input, base::ByteBuffer& output) {
  ReadTimer timer(context_.counters);
  Deciders& deciders = context_.service.deciders();
  std::string_view rest(input.data(), input.size());
  Next next = Next::kIdle;
  while (!rest.empty()) {
    const ParseState state = parser_.Parse(rest);
    if (state == ParseState::kError) {
      DecideWaiting(deciders, output);
      LatencyCounters::Bump(context_.counters.protocol_errors, 1);
      Writer(output, protocol_).Error(parser_.error());
      return {input.size(), Next::kClose};
    }
    if (state == ParseState::kMore) {
      rest.remove_prefix(parser_.consumed());
      next = rest.empty() ? Next::kIdle : Next::kMessage;
      break;
    }
    Execute(parser_.arguments(), deciders, output);
    if (!parser_.arguments_are_in_input()) {
      DecideWaiting(deciders, output);  // before the next Parse takes them away
    }
    timer.CountAnswer();
    rest.remove_prefix(parser_.consumed());
    if (closing_) {
      next = Next::kClose;
      break;
    }
    if (output.size() > kOutputBytesMax) {
      next = Next::kAgain;
      break;
    }
  }
  DecideWaiting(deciders, output);
  if (draining_ && next == Next::kIdle && timer.answers() != 0) {
    next = Next::kClose;
  }
  return {input.size() - rest.size(), next};
}

void RespSession::Execute(Arguments arguments, Deciders& deciders, base::ByteBuffer& output) {
  const std::string_view name = arguments[0];
  if (authenticated_ && base::SameLetters(name, "cl.throttle")) {
    if (Throttle(ThrottleDialect::kRedisCell, arguments, deciders, output)) {
      return;
    }
  } else if (authenticated_ && base::SameLetters(name, "throttle")) {
    if (Throttle(ThrottleDialect::kThrottlecrab, arguments, deciders, output)) {
      return;
    }
  } else if (authenticated_ && deciders.shared != nullptr && base::SameLetters(name, kCheck)) {
    if (waiting_count_ != 0 || question_count_ == kQuestionsMax) {
      DecideWaiting(deciders, output);
    }
    if (questions_.size() == question_count_) {
      questions_.emplace_back();
    }
    questions_[question_count_++].arguments.assign(arguments.begin(), arguments.end());
  } else {
    DecideWaiting(deciders, output);
    Writer writer(output, protocol_);
    constexpr size_t kNameMax = 32;
    char lower[kNameMax];
    const size_t size = std::min(name.size(), kNameMax);
    std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(size), lower,
                   base::LowerCase);
    if (!Converse({lower, size}, arguments, deciders, writer)) {
      Fail("ERR unknown command '" + std::string(name.substr(0, 128)) +
               "', with args beginning with: " +
               (arguments.size() > 1 ? "'" + std::string(arguments[1].substr(0, 128)) + "'" : ""),
           writer);
    }
  }
}

// True if it was taken, to be decided soon.
bool RespSession::Throttle(ThrottleDialect dialect, Arguments arguments, Deciders& deciders,
                           base::ByteBuffer& output) {
  ThrottleCommand command;
  std::string error;
  const SharedQuota* rate = nullptr;
  bool good = command.Parse(dialect, arguments, error);
  if (good && deciders.shared_throttle != nullptr) {
    const auto found = deciders.shared_throttle->Find(command.ask);
    good = found.ok();
    if (good) {
      rate = *found;
    } else {
      error = "ERR " + found.error().message;
    }
  }
  if (!good) {
    DecideWaiting(deciders, output);
    Writer writer(output, protocol_);
    Fail(error, writer);
    return false;
  }
  if (waiting_count_ == kWaitingMax || question_count_ != 0) {
    DecideWaiting(deciders, output);
  }
  waiting_[waiting_count_++] = {deciders.throttle->Prepare(command.key), dialect, command.ask,
                                command.key, rate};
  return true;
}

void RespSession::DecideWaiting(Deciders& deciders, base::ByteBuffer& output) {
  if (question_count_ != 0) {
    AskTogether(deciders, output);
    return;
  }
  if (waiting_count_ == 0) {
    return;
  }
  if (deciders.shared_throttle != nullptr) {
    DecideShared(*deciders.shared_throttle, output);
    return;
  }
  Writer writer(output, protocol_);
  const Timestamp now = context_.service.Now();
  for (size_t i = 0; i < waiting_count_; ++i) {
    const Waiting& one = waiting_[i];
    const algorithm::ThrottleAnswer answer = deciders.throttle->Take(one.key, one.ask, now);
    writer.Integers(ToNumbers(one.dialect, one.ask, answer));
  }
  waiting_count_ = 0;
}

// Their arguments lie in the input, which stays where it is until they are answered; those that do
// not are never kept past their own command (OnBytes).
void RespSession::AskTogether(Deciders& deciders, base::ByteBuffer& output) {
  net::ForEachTogether(question_count_, [&](size_t i) {
    Writer writer(questions_[i].answer, protocol_);
    Converse(kCheck, questions_[i].arguments, deciders, writer);
  });
  for (size_t i = 0; i < question_count_; ++i) {
    output.Append(questions_[i].answer.view());
    questions_[i].answer.Clear();
  }
  question_count_ = 0;
}

void RespSession::DecideShared(SharedThrottle& throttle, base::ByteBuffer& output) {
  std::array<SharedThrottle::Question, kWaitingMax> questions;
  for (size_t i = 0; i < waiting_count_; ++i) {
    questions[i] = {.key = waiting_[i].text, .ask = waiting_[i].ask, .rate = waiting_[i].rate};
  }
  const std::span asked(questions.data(), waiting_count_);
  throttle.Take(asked);
  Writer writer(output, protocol_);
  for (size_t i = 0; i < asked.size(); ++i) {
    writer.Integers(ToNumbers(waiting_[i].dialect, waiting_[i].ask, asked[i].answer));
  }
  waiting_count_ = 0;
}

}  // namespace weir::server
