// Any bytes as what servers answer to the Redis client: no crash, and every call ends exactly once,
// whatever they say, in whatever pieces.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "fuzz/pieces.h"
#include "redis/engine.h"

namespace {

using weir::fuzz::Require;
using namespace weir::redis;  // NOLINT(google-build-using-namespace): all of it is used

class World final : public Host {
 public:
  struct Line {
    ChannelUser* user = nullptr;
    bool opened = false;
    weir::base::ByteBuffer input;
  };

  std::unique_ptr<Channel> Open(const Address&, ChannelUser& user) override {
    lines.push_back(std::make_shared<Line>());
    lines.back()->user = &user;
    return std::make_unique<Wire>(lines.back());
  }
  void WantTurnEnd() override { turn_wanted = true; }
  void WantTime(weir::Timestamp) override {}
  void Tell(const Event& event) override { Require(event.text.size() < 4096); }

  std::vector<std::shared_ptr<Line>> lines;
  bool turn_wanted = false;

 private:
  class Wire final : public Channel {
   public:
    explicit Wire(std::shared_ptr<Line> line) : line_(std::move(line)) {}
    ~Wire() override { line_->user = nullptr; }
    void Send(weir::base::ByteBuffer& output) override { output.Clear(); }

   private:
    const std::shared_ptr<Line> line_;
  };
};

class Asker final : public Call {
 public:
  void OnReply(const weir::codec::resp::Reply&) noexcept override { ++ended; }
  void OnFailure(const Failure&) noexcept override { ++ended; }
  int asked = 0;
  int ended = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = weir::fuzz::Text(data, size);
  if (input.empty()) {
    return 0;
  }
  constexpr std::string_view kUrls[] = {"redis://h", "redis+cluster://a,b",
                                        "redis+sentinel://s/name", "redis+list://a,b,c"};
  const auto options = Options::Parse(kUrls[static_cast<uint8_t>(input.front()) % 4]);
  input.remove_prefix(1);
  static const Script script("one", "return 1");
  weir::fuzz::Pieces pieces(input);
  weir::ManualClock clock;
  World world;
  std::vector<Asker> askers(6);
  {
    Engine engine(*options, clock, world, 1);
    engine.Start();
    const auto settle = [&] {
      engine.OnTime();
      for (int turns = 0; world.turn_wanted && turns < 4; ++turns) {
        world.turn_wanted = false;
        engine.OnTurnEnd();
      }
    };
    size_t next = 0;
    while (!input.empty()) {
      settle();
      for (Asker& asker : askers) {
        if (!asker.pending() && pieces.Next() < 4) {
          const std::string key = "k" + std::to_string(pieces.Next());
          const std::string_view keys[] = {key};
          engine.Submit(asker, {.script = &script, .keys = keys, .arguments = keys});
          ++asker.asked;
        }
      }
      const std::string_view piece = input.substr(0, pieces.Next());
      input.remove_prefix(piece.size());
      // The next connection that lives gets it.
      for (size_t i = 0; i < std::min<size_t>(world.lines.size(), 64); ++i) {
        const auto line = world.lines[(next + i) % world.lines.size()];
        if (line->user != nullptr) {
          next += i + (pieces.Next() < 3 ? 1 : 0);
          if (!line->opened) {
            line->opened = true;
            line->user->OnOpened();
          }
          line->input.Append(piece);
          line->user->OnBytes(line->input);
          break;
        }
      }
      clock.Advance(std::chrono::milliseconds(pieces.Next()));
    }
    settle();
  }
  for (const Asker& asker : askers) {
    Require(asker.asked == asker.ended && !asker.pending());
  }
  return 0;
}
