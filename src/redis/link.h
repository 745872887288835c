// One connection to a server: the greeting, the questions in order, and the answers, which come in
// the same order. That order is all that joins an answer with its question: one that nobody waits
// for any more keeps its place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "codec/resp/reply_parser.h"
#include "redis/flight.h"
#include "redis/host.h"

namespace weir::redis {

class Link;

// What a server can be asked, by whom the answer is for.
enum class Ask : uint8_t {
  kCall,
  kAsking,  // before a call; its answer says nothing
  kHello,
  kAuth,
  kName,
  kSelect,
  kRole,
  kInfo,
  kPing,
  kSlotMap,    // of a Cluster
  kMaster,     // of a Sentinel
  kSubscribe,  // of a Sentinel
};

// How to introduce oneself.
struct Greeting {
  std::string user;
  Secret password;
  std::string client_name;
  uint32_t database = 0;
  bool to_sentinel = false;
};

// What a server said of itself.
struct ServerFacts {
  std::string version;
  std::string mode;    // standalone, cluster, sentinel
  std::string role;    // master, replica
  std::string policy;  // maxmemory-policy
  uint64_t memory_max = 0;
};

class LinkOwner {
 public:
  virtual void OnReady(Link& link) = 0;
  // To everything but the greeting. `flight` is that of kCall. May close the link.
  virtual void OnAnswer(Link& link, Ask ask, Flight* flight, const codec::resp::Reply& reply) = 0;
  virtual void OnPush(Link& link, const codec::resp::Reply& reply) = 0;
  // After all answers that one read brought.
  virtual void OnHeard() = 0;
  // It has ended by itself, or could not begin. OnLost has been called for every call under way.
  virtual void OnDown(Link& link, Trouble why, std::string_view text) = 0;
  virtual void OnLost(Link& link, Flight& flight) = 0;

 protected:
  ~LinkOwner() = default;
};

class Link final : public ChannelUser {
 public:
  enum class State : uint8_t { kDown, kConnecting, kGreeting, kReady };

  Link(LinkOwner& owner, Node& node, const Greeting& greeting)
      : owner_(owner), node_(node), greeting_(greeting) {}

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool ready() const noexcept { return state_ == State::kReady; }
  [[nodiscard]] Node& node() const noexcept { return node_; }
  [[nodiscard]] const ServerFacts& facts() const noexcept { return facts_; }
  [[nodiscard]] bool is_resp3() const noexcept { return resp3_; }
  // Questions without an answer; calls are some of them.
  [[nodiscard]] size_t awaited() const noexcept { return tail_ - head_; }
  // What is wrong if it is not ready by now.
  [[nodiscard]] Trouble stuck() const noexcept {
    return state_ == State::kGreeting ? Trouble::kSilent : channel_->stuck();
  }
  [[nodiscard]] bool has_output() const noexcept { return !output_.empty(); }

  // REQUIRES: kDown.
  void Open(Host& host, const Address& address);
  // At once; OnLost is called, OnDown is not.
  void Close();
  // As if the connection had ended for that reason.
  void Fail(Trouble why, std::string_view text);

  // REQUIRES: ready(). They leave with Flush.
  void SendCall(Flight& flight);
  void Send(Ask ask, std::initializer_list<std::string_view> words);
  void Flush();

  void OnOpened() override;
  void OnBytes(base::ByteBuffer& input) override;
  void OnClosed(Trouble why, std::string_view text) override { Fail(why, text); }

  // For the owner, who keeps time. kDown: when to connect; until kReady: when to give up.
  Timestamp due{};
  // kReady and something is awaited: since when nothing has been heard.
  Timestamp silent_since{};
  uint32_t failures = 0;  // to connect, in a row
  bool subscribed = false;
  uint64_t heard = 0;  // reads that brought something
  uint64_t heard_noted = 0;
  bool was_ready = false;  // before it ended

 private:
  struct Expected {
    Flight* flight;
    Ask ask;
  };

  void Expect(Ask ask, Flight* flight);
  void OnReply(const codec::resp::Reply& reply);
  void OnGreeting(Ask ask, const codec::resp::Reply& reply);
  void OnHello(const codec::resp::Reply& reply);
  void GreetOld();
  void GreetOn();
  void Refused(const codec::resp::Reply& reply);
  void ReadInfo(std::string_view text);
  void Clear();

  LinkOwner& owner_;
  Node& node_;
  const Greeting greeting_;
  State state_ = State::kDown;
  bool resp3_ = false;
  bool told_on_ = false;     // the second part of the greeting is under way
  uint64_t generation_ = 0;  // of connections, to notice an end from inside a callback
  std::unique_ptr<Channel> channel_;
  base::ByteBuffer output_;
  codec::resp::ReplyParser parser_;
  ServerFacts facts_;
  // A ring of a power of two; [head_, tail_) are awaited.
  std::vector<Expected> expected_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace weir::redis
