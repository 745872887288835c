// An engine whose world is a script: connections are buffers, time moves when told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "weir/time.h"

#include "codec/resp/command_parser.h"
#include "redis/engine.h"

namespace weir::redis {

// A call that remembers how it ended.
class Probed final : public Call {
 public:
  void OnReply(const codec::resp::Reply& reply) noexcept override {
    ++ended;
    value = reply.type == codec::resp::ReplyType::kInteger ? std::to_string(reply.integer)
                                                           : std::string(reply.text);
    if (then) {
      then();
    }
  }
  void OnFailure(const Failure& failure) noexcept override {
    ++ended;
    failed = failure;
    text = failure.text;
  }

  int ended = 0;
  std::string value;
  std::optional<Failure> failed;
  std::string text;
  std::function<void()> then;  // after a reply
};

class ScriptedHost final : public Host {
 public:
  struct Line;

  class ScriptedChannel final : public Channel {
   public:
    explicit ScriptedChannel(std::shared_ptr<Line> line) : line_(std::move(line)) {}
    ~ScriptedChannel() override { line_->user = nullptr; }
    void Send(base::ByteBuffer& output) override {
      ++line_->writes;
      line_->sent.append(output.view());
      output.Clear();
    }

   private:
    const std::shared_ptr<Line> line_;
  };

  // One connection, as its server sees it.
  struct Line {
    std::string address;
    ChannelUser* user = nullptr;  // nullptr: the client has closed it
    std::string sent;
    int writes = 0;
    base::ByteBuffer input;

    // The commands that came since it was last asked, words parted by blanks.
    std::vector<std::string> Commands() {
      std::vector<std::string> commands;
      codec::resp::CommandParser parser;
      while (!sent.empty() && parser.Parse(sent) == codec::resp::ParseState::kCommand) {
        std::string command;
        for (const std::string_view word : parser.arguments()) {
          command += (command.empty() ? "" : " ") + std::string(word);
        }
        commands.push_back(command);
        sent.erase(0, parser.consumed());
      }
      return commands;
    }
    void Say(std::string_view bytes) {
      input.Append(bytes);
      if (user != nullptr) {
        user->OnBytes(input);
      }
    }
    void Open() const { user->OnOpened(); }
    void End(Trouble why = Trouble::kLost) const { user->OnClosed(why, "it was cut"); }
  };

  std::unique_ptr<Channel> Open(const Address& address, ChannelUser& user) override {
    lines.push_back(std::make_shared<Line>());
    lines.back()->address = address.ToText();
    lines.back()->user = &user;
    return std::make_unique<ScriptedChannel>(lines.back());
  }
  void WantTurnEnd() override { turn_wanted = true; }
  void WantTime(Timestamp at) override { wanted_at = at; }
  void Tell(const Event& event) override { events.push_back(event); }

  std::vector<std::shared_ptr<Line>> lines;
  bool turn_wanted = false;
  std::optional<Timestamp> wanted_at;
  std::vector<Event> events;
};

class EngineTest : public ::testing::Test {
 protected:
  using Line = ScriptedHost::Line;

  static constexpr std::string_view kHello =
      "%3\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
      "$4\r\nrole\r\n$6\r\nmaster\r\n";

  void Make(const std::string& url) {
    Result<Options> options = Options::Parse(url);
    ASSERT_TRUE(options);
    Make(*options);
  }
  void Make(const Options& options) {
    engine = std::make_unique<Engine>(options, clock, host, 42);
    engine->Start();
    Advance(Duration(0));
  }
  // Moves time and calls what was wanted by then, in steps of at most a millisecond.
  void Advance(Duration by) {
    const Timestamp end = clock.Now() + by;
    do {
      while (host.wanted_at && *host.wanted_at <= clock.Now()) {
        host.wanted_at.reset();
        engine->OnTime();
      }
      Turn();
      if (clock.Now() < end) {
        clock.Advance(std::min<Duration>(end - clock.Now(), std::chrono::milliseconds(1)));
      } else {
        return;
      }
    } while (true);
  }
  void Turn() {
    while (host.turn_wanted) {
      host.turn_wanted = false;
      engine->OnTurnEnd();
    }
  }
  // Opens and greets the connection. REQUIRES: no database is chosen.
  void Greet(Line& line) {
    line.Open();
    ASSERT_EQ(line.Commands().size(), 1U);
    line.Say(kHello);
    ASSERT_EQ(line.Commands(), std::vector<std::string>{"INFO memory"});
    line.Say(Info());
    Turn();
  }
  static std::string Info(std::string_view policy = "noeviction", std::string_view most = "0") {
    const std::string text = "# Memory\r\nmaxmemory:" + std::string(most) +
                             "\r\nmaxmemory_policy:" + std::string(policy) + "\r\n";
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  Line& line(size_t index) { return *host.lines.at(index); }
  Line& last() { return *host.lines.back(); }

  void Get(Probed& call, std::string_view key, Duration timeout = Duration(0)) {
    const std::string_view words[] = {"GET", key};
    engine->Submit(call,
                   {.keys = std::span(words).subspan(1), .arguments = words, .timeout = timeout});
  }
  // Asks on and on, for as long as it takes a breaker to call that silence.
  void FallSilent() {
    std::vector<std::unique_ptr<Probed>> calls;
    for (int i = 0; i < 6; ++i) {
      calls.push_back(std::make_unique<Probed>());
      Get(*calls.back(), "k");
      Advance(std::chrono::milliseconds(8));
    }
  }
  void Eval(Probed& call, std::string_view key) {
    const std::string_view keys[] = {key};
    const std::string_view arguments[] = {"7"};
    engine->Submit(call, {.script = &script, .keys = keys, .arguments = arguments});
  }

  std::vector<Trouble> Troubles(Event::Kind kind = Event::Kind::kTrouble) const {
    std::vector<Trouble> troubles;
    for (const Event& event : host.events) {
      if (event.kind == kind) {
        troubles.push_back(event.trouble);
      }
    }
    return troubles;
  }

  ManualClock clock;
  ScriptedHost host;
  Script script{"one", "return 1"};
  std::unique_ptr<Engine> engine;
};

}  // namespace weir::redis
