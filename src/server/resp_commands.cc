// What clients of Redis say besides asking for decisions: enough for every stock client to connect.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>

#include "weir/version.h"

#include "base/same_text.h"
#include "server/resp_session.h"

namespace weir::server {

namespace {

using codec::resp::CommandLimits;
using codec::resp::Protocol;

constexpr std::string_view kRedisVersion = "7.0.0";  // whose commands and replies are spoken here

// Name, arguments with the name (below 0: at least), as COMMAND tells of it. Every key is the first
// argument, if there is one.
struct Known {
  std::string_view name;
  int arity;
  bool has_key;
  bool operators_only = false;
};

constexpr Known kCommands[] = {
    {"auth", -2, false},
    {"cl.throttle", -5, true},
    {"client", -2, false},
    {"command", -1, false},
    {"config", -2, false},
    {"del", -2, true},
    {"echo", 2, false},
    {"hello", -1, false},
    {"info", -1, false},
    {"ping", -1, false},
    {"quit", -1, false},
    {"reset", 1, false},
    {"select", 2, false},
    {"throttle", -5, true},
    {"weir.check", -3, false},
    {"weir.explain", -3, false, true},
    {"weir.hold", -3, false},
    {"weir.peek", -3, false},
    {"weir.release", 2, false},
    {"weir.renew", 2, false},
    {"weir.reset", -3, false, true},
    {"weir.settle", 3, false},
    {"weir.usage", -3, false},
};

const Known* Find(std::string_view name) {
  for (const Known& known : kCommands) {
    if (base::SameLetters(name, known.name)) {
      return &known;
    }
  }
  return nullptr;
}

// As Redis reads integers: no plus sign, no leading zero, nothing besides.
std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool plain = digits == "0" ? digits.size() == text.size() : !digits.starts_with('0');
  return problem == std::errc() && rest == end && plain ? std::optional(number) : std::nullopt;
}

constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";
constexpr std::string_view kBadName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

bool IsClientName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace

bool RespSession::Converse(std::string_view name, Arguments arguments, Deciders& deciders,
                           Writer& writer) {
  if (!authenticated_ && name != "auth" && name != "hello" && name != "quit" && name != "reset") {
    Fail("NOAUTH Authentication required.", writer);
    return true;
  }
  const Known* const known = Find(name);
  if (known == nullptr) {
    return false;
  }
  const auto size = static_cast<int>(arguments.size());
  if (known->arity > 0 ? size != known->arity : size < -known->arity) {
    WrongArity(name, writer);
    return true;
  }
  if (name == "ping") {
    if (size > 2) {
      WrongArity(name, writer);
    } else if (size == 2) {
      writer.Bulk(arguments[1]);
    } else {
      writer.Simple("PONG");
    }
  } else if (name == "echo") {
    writer.Bulk(arguments[1]);
  } else if (name == "hello") {
    Hello(arguments, writer);
  } else if (name == "auth") {
    Auth(arguments, writer);
  } else if (name == "select") {
    const auto index = IntegerOf(arguments[1]);
    if (index == 0) {
      writer.Ok();
    } else {
      Fail(index ? "ERR DB index is out of range" : kNotAnInteger, writer);
    }
  } else if (name == "client") {
    Client(arguments, writer);
  } else if (name == "command") {
    Command(arguments, writer);
  } else if (name == "config") {
    Config(arguments, writer);
  } else if (name == "info") {
    Info(deciders, writer);
  } else if (name == "del") {
    Delete(arguments, deciders, writer);
  } else if (name == "reset") {
    authenticated_ = context_.options.password.empty();
    parser_.set_limits(authenticated_ ? CommandLimits{} : CommandLimits::Unauthenticated());
    protocol_ = Protocol::k2;
    name_.clear();
    writer.Simple("RESET");
  } else if (name == "quit") {
    closing_ = true;
    writer.Ok();
  } else if (known->operators_only && !MayAdminister()) {
    Fail("NOPERM '" + std::string(name) +
             "' is for operators: ask from this machine, or with the password of "
             "--resp-password-file",
         writer);
  } else {
    const base::Pool<RuleReply>::Lease reply(context_.replies);
    RuleCommands commands(deciders, context_.service, tls_client_, *reply, context_.denials,
                          writer);
    if (!commands.Run(name, arguments.subspan(1))) {
      LatencyCounters::Bump(context_.counters.errors, 1);
    }
  }
  return true;
}

void RespSession::WrongArity(std::string_view name, Writer& writer) {
  Fail("ERR wrong number of arguments for '" + std::string(name) + "' command", writer);
}

void RespSession::Fail(std::string_view error, Writer& writer) {
  LatencyCounters::Bump(context_.counters.errors, 1);
  writer.Error(error);
}

// HELLO [version [AUTH user password] [SETNAME name]]
void RespSession::Hello(Arguments arguments, Writer& writer) {
  Protocol wanted = protocol_;
  if (arguments.size() > 1) {
    const auto version = IntegerOf(arguments[1]);
    if (version != 2 && version != 3) {
      Fail(version ? "NOPROTO unsupported protocol version"
                   : "ERR Protocol version is not an integer or out of range",
           writer);
      return;
    }
    wanted = version == 3 ? Protocol::k3 : Protocol::k2;
  }
  std::string_view name = name_;
  bool named = false;
  for (size_t i = 2; i < arguments.size();) {
    if (base::SameLetters(arguments[i], "auth") && i + 2 < arguments.size()) {
      if (!Authenticate(arguments[i + 1], arguments[i + 2], writer)) {
        return;
      }
      i += 3;
    } else if (base::SameLetters(arguments[i], "setname") && i + 1 < arguments.size()) {
      name = arguments[i + 1];
      if (!IsClientName(name)) {
        Fail(kBadName, writer);
        return;
      }
      named = true;
      i += 2;
    } else {
      Fail("ERR Syntax error in HELLO option '" + std::string(arguments[i].substr(0, 64)) + "'",
           writer);
      return;
    }
  }
  if (!authenticated_) {
    Fail(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time",
        writer);
    return;
  }
  if (named) {
    name_ = name;
  }
  protocol_ = wanted;
  writer.set_protocol(protocol_);
  writer.Map(7);
  writer.Bulk("server");
  writer.Bulk("weir");
  writer.Bulk("version");
  writer.Bulk(kRedisVersion);
  writer.Bulk("proto");
  writer.Integer(protocol_ == Protocol::k3 ? 3 : 2);
  writer.Bulk("id");
  writer.Integer(static_cast<int64_t>(id_));
  writer.Bulk("mode");
  writer.Bulk("standalone");
  writer.Bulk("role");
  writer.Bulk("master");
  writer.Bulk("modules");
  writer.Array(0);
}

// AUTH [user] password
void RespSession::Auth(Arguments arguments, Writer& writer) {
  if (arguments.size() > 3) {
    Fail("ERR syntax error", writer);
    return;
  }
  if (arguments.size() == 2 && context_.options.password.empty()) {
    Fail(
        "ERR AUTH <password> called without any password configured for the default user. Are "
        "you sure your configuration is correct?",
        writer);
    return;
  }
  const std::string_view user = arguments.size() == 3 ? arguments[1] : "default";
  if (Authenticate(user, arguments.back(), writer)) {
    writer.Ok();
  }
}

bool RespSession::Authenticate(std::string_view user, std::string_view password, Writer& writer) {
  // Where none is needed any will do for the default user, as in Redis.
  if (user == "default" && (context_.options.password.empty() ||
                            base::SameSecret(password, context_.options.password))) {
    authenticated_ = true;
    parser_.set_limits({});
    return true;
  }
  Fail("WRONGPASS invalid username-password pair or user is disabled.", writer);
  return false;
}

void RespSession::Client(Arguments arguments, Writer& writer) {
  const std::string_view what = arguments[1];
  if (base::SameLetters(what, "setname") && arguments.size() == 3) {
    if (!IsClientName(arguments[2])) {
      Fail(kBadName, writer);
      return;
    }
    name_ = arguments[2];
    writer.Ok();
  } else if (base::SameLetters(what, "getname")) {
    if (name_.empty()) {
      writer.Null();
    } else {
      writer.Bulk(name_);
    }
  } else if (base::SameLetters(what, "id")) {
    writer.Integer(static_cast<int64_t>(id_));
  } else if (base::SameLetters(what, "setinfo") || base::SameLetters(what, "no-evict") ||
             base::SameLetters(what, "no-touch")) {
    writer.Ok();
  } else if (base::SameLetters(what, "info")) {
    writer.Bulk("id=" + std::to_string(id_) + " name=" + name_ +
                " resp=" + (protocol_ == Protocol::k3 ? "3" : "2"));
  } else {
    Fail("ERR unknown subcommand '" + std::string(what.substr(0, 64)) +
             "' of CLIENT; known are SETNAME, GETNAME, ID, INFO, SETINFO",
         writer);
  }
}

// Nothing can be set here, and little is asked for: redis-benchmark wants to know of "save".
void RespSession::Config(Arguments arguments, Writer& writer) {
  if (!base::SameLetters(arguments[1], "get")) {
    Fail("ERR CONFIG here knows only GET; the server's own configuration is in weir serve --help",
         writer);
    return;
  }
  size_t known = 0;
  for (const std::string_view name : arguments.subspan(2)) {
    known += static_cast<size_t>(name == "save" || name == "appendonly");
  }
  writer.Map(known);
  for (const std::string_view name : arguments.subspan(2)) {
    if (name == "save" || name == "appendonly") {
      writer.Bulk(name);
      writer.Bulk(name == "save" ? "" : "no");
    }
  }
}

void RespSession::Command(Arguments arguments, Writer& writer) {
  if (arguments.size() > 1 && base::SameLetters(arguments[1], "count")) {
    writer.Integer(static_cast<int64_t>(std::size(kCommands)));
    return;
  }
  if (arguments.size() > 1 && base::SameLetters(arguments[1], "docs")) {
    writer.Map(0);
    return;
  }
  if (arguments.size() > 1 && base::SameLetters(arguments[1], "list")) {
    writer.Array(std::size(kCommands));
    for (const Known& known : kCommands) {
      writer.Bulk(known.name);
    }
    return;
  }
  if (arguments.size() > 1 && !base::SameLetters(arguments[1], "info")) {
    Fail("ERR unknown subcommand '" + std::string(arguments[1].substr(0, 64)) +
             "' of COMMAND; known are COUNT, DOCS, INFO, LIST",
         writer);
    return;
  }
  const auto tell = [&writer](const Known& known) {
    writer.Array(6);
    writer.Bulk(known.name);
    writer.Integer(known.arity);
    writer.Set(2);
    writer.Simple(known.has_key ? "write" : "readonly");
    writer.Simple("fast");
    writer.Integer(known.has_key ? 1 : 0);
    writer.Integer(known.has_key ? (known.name == "del" ? -1 : 1) : 0);
    writer.Integer(known.has_key ? 1 : 0);
  };
  if (arguments.size() <= 2) {
    writer.Array(std::size(kCommands));
    std::for_each(std::begin(kCommands), std::end(kCommands), tell);
    return;
  }
  writer.Array(arguments.size() - 2);
  for (const std::string_view name : arguments.subspan(2)) {
    if (const Known* const known = Find(name)) {
      tell(*known);
    } else {
      writer.Null();
    }
  }
}

void RespSession::Info(Deciders& deciders, Writer& writer) {
  const StoreStats stats = deciders.store->Stats();
  std::string text =
      "# Server\r\nredis_version:" + std::string(kRedisVersion) +
      "\r\nweir_version:" + std::string(kVersion) +
      "\r\nredis_mode:standalone\r\n\r\n# Stats\r\ndecisions:" + std::to_string(stats.decisions) +
      "\r\ndenials:" + std::to_string(stats.denials) +
      "\r\noverflow:" + std::to_string(stats.overflow) +
      "\r\n\r\n# Memory\r\nbudget_bytes:" + std::to_string(stats.budget_bytes) +
      "\r\nlive_slots:" + std::to_string(stats.live_slots) +
      "\r\nslots:" + std::to_string(stats.slots) + "\r\n";
  writer.Verbatim(text);
}

// A throttled key starts anew, as it does in redis-cell when its key is deleted.
void RespSession::Delete(Arguments arguments, Deciders& deciders, Writer& writer) {
  const Timestamp now = context_.service.Now();
  int64_t known = 0;
  for (const std::string_view key : arguments.subspan(1)) {
    const bool was_there = deciders.shared_throttle != nullptr
                               ? deciders.shared_throttle->Forget(key)
                               : deciders.throttle->Forget(deciders.throttle->Prepare(key), now);
    known += was_there ? 1 : 0;
  }
  writer.Integer(known);
}

}  // namespace weir::server
