#include "redis/link.h"

#include <algorithm>
#include <charconv>

namespace weir::redis {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyState;
using codec::resp::ReplyType;

// A Cluster's slots, badly scattered, are the largest reply there is.
constexpr codec::resp::ReplyLimits kLimits{.depth_max = 8, .replies_max = 1 << 19};
constexpr size_t kKeptBytes = size_t{256} << 10;

std::string_view LineOf(std::string_view info, std::string_view name) {
  size_t at = info.find(name);
  while (at != std::string_view::npos && at != 0 && info[at - 1] != '\n') {
    at = info.find(name, at + 1);
  }
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = info.substr(at + name.size());
  return rest.substr(0, rest.find('\r'));
}

}  // namespace

void Link::Open(Host& host, const Address& address) {
  state_ = State::kConnecting;
  parser_ = codec::resp::ReplyParser(kLimits);
  facts_ = {};
  resp3_ = told_on_ = subscribed = false;
  channel_ = host.Open(address, *this);
}

void Link::Close() {
  Clear();
}

// Ends the connection and gives up what was awaited of it.
void Link::Clear() {
  ++generation_;
  was_ready = state_ == State::kReady;
  state_ = State::kDown;
  channel_.reset();
  output_.Clear();
  output_.Shrink(kKeptBytes);
  while (head_ != tail_) {
    const Expected expected = expected_[head_++ & (expected_.size() - 1)];
    if (expected.flight != nullptr) {
      owner_.OnLost(*this, *expected.flight);
    }
  }
}

void Link::Fail(Trouble why, std::string_view text) {
  if (state_ != State::kDown) {
    const std::string kept(text);  // it may point into what is about to go
    Clear();
    owner_.OnDown(*this, why, kept);
  }
}

void Link::Expect(Ask ask, Flight* flight) {
  if (tail_ - head_ == expected_.size()) {
    std::vector<Expected> larger(std::max<size_t>(64, 2 * expected_.size()));
    for (size_t i = head_; i != tail_; ++i) {
      larger[i & (larger.size() - 1)] = expected_[i & (expected_.size() - 1)];
    }
    expected_.swap(larger);
  }
  expected_[tail_++ & (expected_.size() - 1)] = {.flight = flight, .ask = ask};
}

void Link::SendCall(Flight& flight) {
  if (flight.asking) {
    Expect(Ask::kAsking, nullptr);
  }
  Expect(Ask::kCall, &flight);
  flight.WriteTo(output_);
}

void Link::Send(Ask ask, std::initializer_list<std::string_view> words) {
  // With version 3 the answer to a subscription is a push.
  if (ask != Ask::kSubscribe || !resp3_) {
    Expect(ask, nullptr);
  }
  WriteCommand(words, output_);
}

void Link::Flush() {
  if (channel_ != nullptr && !output_.empty()) {
    channel_->Send(output_);
  }
}

void Link::OnOpened() {
  state_ = State::kGreeting;
  Expect(Ask::kHello, nullptr);
  const std::string& password = greeting_.password.Reveal();
  const std::string_view user =
      greeting_.user.empty() ? std::string_view("default") : greeting_.user;
  if (password.empty()) {
    WriteCommand({"HELLO", "3", "SETNAME", greeting_.client_name}, output_);
  } else {
    WriteCommand({"HELLO", "3", "AUTH", user, password, "SETNAME", greeting_.client_name}, output_);
  }
  Flush();
}

void Link::OnBytes(base::ByteBuffer& input) {
  ++heard;
  const uint64_t generation = generation_;
  while (!input.empty()) {
    const ReplyState state = parser_.Parse(input.view());
    if (state == ReplyState::kMore) {
      break;
    }
    if (state == ReplyState::kError) {
      const char first = input.view().front();
      if (first == 0x15 || first == 0x16) {  // the types of TLS's alerts and handshakes
        Fail(Trouble::kPlainToTls, "it answers with TLS");
      } else {
        Fail(Trouble::kNotRedis, parser_.error());
      }
      return;
    }
    OnReply(parser_.reply());
    if (generation != generation_) {
      return;
    }
    input.Consume(parser_.consumed());
  }
  owner_.OnHeard();
}

void Link::OnReply(const Reply& reply) {
  if (reply.type == ReplyType::kPush) {
    owner_.OnPush(*this, reply);
    return;
  }
  if (head_ == tail_) {
    // Messages of a subscription in version 2 look like answers.
    if (subscribed && reply.type == ReplyType::kArray) {
      owner_.OnPush(*this, reply);
    } else {
      Fail(Trouble::kNotRedis, "an answer to no question: " + std::string(reply.text));
    }
    return;
  }
  const Expected expected = expected_[head_++ & (expected_.size() - 1)];
  if (expected.ask == Ask::kAsking) {
    return;  // if it was refused, so is the call behind it
  }
  if (state_ == State::kReady) {
    owner_.OnAnswer(*this, expected.ask, expected.flight, reply);
  } else {
    OnGreeting(expected.ask, reply);
  }
}

void Link::OnGreeting(Ask ask, const Reply& reply) {
  const bool error = reply.type == ReplyType::kError;
  switch (ask) {
    case Ask::kHello:
      OnHello(reply);
      return;
    case Ask::kAuth:
      if (error) {
        Refused(reply);
        return;
      }
      break;
    case Ask::kSelect:
      if (error) {
        Fail(Trouble::kMisconfigured, reply.text);
        return;
      }
      break;
    case Ask::kRole:
      if (reply.type == ReplyType::kArray && reply.size > 0) {
        facts_.role = reply.element(0).text == "slave" ? "replica" : reply.element(0).text;
      }
      break;
    case Ask::kInfo:
      if (!error) {
        ReadInfo(reply.text);
      }
      break;
    default:
      break;
  }
  if (head_ != tail_) {
    return;
  }
  if (!told_on_) {
    GreetOn();
  } else {
    state_ = State::kReady;
    owner_.OnReady(*this);
  }
}

void Link::OnHello(const Reply& reply) {
  if (reply.type != ReplyType::kError) {
    resp3_ = true;
    for (uint32_t i = 0; i + 1 < reply.size; i += 2) {
      const std::string_view name = reply.element(i).text;
      const std::string_view value = reply.element(i + 1).text;
      if (name == "version") {
        facts_.version = value;
      } else if (name == "mode") {
        facts_.mode = value;
      } else if (name == "role") {
        facts_.role = value;
      }
    }
    GreetOn();
    return;
  }
  // Older than version 6, or something that speaks only the old protocol.
  if (reply.text.starts_with("NOPROTO") || reply.text.starts_with("NOPERM") ||
      reply.text.find("unknown command") != std::string_view::npos) {
    GreetOld();
  } else {
    Refused(reply);
  }
}

void Link::GreetOld() {
  const std::string& password = greeting_.password.Reveal();
  if (!password.empty() && greeting_.user.empty()) {
    Send(Ask::kAuth, {"AUTH", password});
  } else if (!password.empty()) {
    Send(Ask::kAuth, {"AUTH", greeting_.user, password});
  }
  Send(Ask::kName, {"CLIENT", "SETNAME", greeting_.client_name});
  Flush();
}

// Whoever it is knows us now: the rest.
void Link::GreetOn() {
  told_on_ = true;
  if (greeting_.to_sentinel) {
    state_ = State::kReady;
    owner_.OnReady(*this);
    return;
  }
  if (greeting_.database != 0) {
    Send(Ask::kSelect, {"SELECT", std::to_string(greeting_.database)});
  }
  if (!resp3_) {
    Send(Ask::kRole, {"ROLE"});
  }
  Send(Ask::kInfo, {"INFO", "memory"});
  Flush();
}

void Link::Refused(const Reply& reply) {
  const std::string_view text = reply.text;
  const bool password = text.starts_with("WRONGPASS") || text.starts_with("NOAUTH") ||
                        text.find("AUTH") != std::string_view::npos ||
                        text.find("password") != std::string_view::npos;
  const bool permission = text.starts_with("DENIED") || text.starts_with("NOPERM");
  Fail(permission ? Trouble::kPermission
       : password ? Trouble::kPassword
                  : Trouble::kUnreachable,
       text);
}

void Link::ReadInfo(std::string_view text) {
  facts_.policy = LineOf(text, "maxmemory_policy:");
  const std::string_view most = LineOf(text, "maxmemory:");
  std::from_chars(most.data(), most.data() + most.size(), facts_.memory_max);
}

}  // namespace weir::redis
