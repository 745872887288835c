// The client without sockets and clocks: calls and bytes and moments in, bytes and wishes out.
//
// A call goes to the node that its slot belongs to, or fails at once: because nobody is known to
// have the slot, the node is not connected, its breaker is open, or it has enough to do. An answer
// is taken by its position. It is sent again only if the answer proves that nothing ran: NOSCRIPT
// (with the text), MOVED and ASK (elsewhere), TRYAGAIN and CLUSTERDOWN (in a moment, three times).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "redis/call.h"
#include "redis/flight.h"
#include "redis/host.h"
#include "redis/link.h"
#include "redis/node.h"
#include "redis/options.h"
#include "redis/status.h"
#include "redis/wheel.h"

namespace weir::redis {

class Engine final : private LinkOwner {
 public:
  Engine(const Options& options, const Clock& clock, Host& host, uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void Start();
  void Submit(Call& call, const Request& request);
  // As the host was asked to call them.
  void OnTurnEnd();
  void OnTime();

  // Otherwise one node has all slots.
  [[nodiscard]] bool is_divided() const noexcept {
    return options_.topology == Topology::kCluster || options_.topology == Topology::kList;
  }
  [[nodiscard]] uint32_t GroupOf(std::string_view key) const noexcept;
  [[nodiscard]] bool ready() const noexcept;
  [[nodiscard]] bool IsUsable(uint16_t slot) const noexcept;
  [[nodiscard]] bool IsSettling(std::string_view key) const noexcept;
  [[nodiscard]] bool settling() const noexcept { return now_ < settled_at_; }
  [[nodiscard]] Status status() const;
  [[nodiscard]] const Options& options() const noexcept { return options_; }

 private:
  // engine.cc: calls.
  void Dispatch(Flight& flight);
  // To this one, unless it is left alone or has enough to do.
  void Offer(Node& node, Flight& flight);
  void SendTo(Node& node, Flight& flight);
  void OnCallReply(Link& link, Flight& flight, const codec::resp::Reply& reply);
  void OnCallError(Node& node, Flight& flight, std::string_view text);
  void Follow(Node& node, Flight& flight, ServerError error, std::string_view text);
  void Pause(Node& node, Flight& flight, std::string_view text);
  void Expire(Flight& flight, Timestamp now);
  // Tells the call and gives the flight back, now or at the end of the turn.
  void Fail(Flight& flight, const Failure& failure);
  void FailSoon(Flight& flight, const Failure& failure);
  void MarkDirty();
  void Flush();
  void Count(Node* node, FailureKind kind);

  // engine_nodes.cc: connections, breakers, time.
  // nullptr: there are too many already.
  Node* FindOrAdd(const Address& address, bool is_sentinel);
  void Retire(Node& node);
  void SweepRetired();
  void TendLink(Link& link, Timestamp now);
  void TendProbe(Node& node, Timestamp now, bool spoke = false);
  void Probe(Node& node, Timestamp now);
  void OnPing(Node& node, const codec::resp::Reply& reply);
  void ConnectLater(Link& link);
  void CountFailure(Node& node, Breaker::Cause cause);
  [[nodiscard]] Timestamp NextDue(const Node& node) const;
  void Arm(Timestamp at);
  [[nodiscard]] double Chance();

  void OnReady(Link& link) override;
  void OnAnswer(Link& link, Ask ask, Flight* flight, const codec::resp::Reply& reply) override;
  void OnPush(Link& link, const codec::resp::Reply& reply) override;
  void OnHeard() override;
  void OnDown(Link& link, Trouble why, std::string_view text) override;
  void OnLost(Link& link, Flight& flight) override;

  // engine_topology.cc: who has which slot.
  void Refresh(Timestamp now);
  void RefreshSoon(Duration after);
  void OnSlotMap(Link& link, const codec::resp::Reply& reply);
  void OnMaster(Link& link, const codec::resp::Reply& reply);
  void ChooseMaster();
  void UseMaster(const Address& address);
  void Assign(uint16_t first, uint16_t last, Node* node);
  void CountSlots();
  [[nodiscard]] bool HasTrouble() const;

  // engine_events.cc: what is told.
  void SetTrouble(Node& node, Trouble trouble, std::string_view why);
  void WarnOnce(Node& node, Trouble trouble, std::string_view why);
  // By what an error says, whichever of the two that is.
  void TellError(Node& node, ServerError error, std::string_view why);
  enum class By : uint8_t { kConnection, kAnswer };
  void Recovered(Node& node, By by);
  void TellBreaker(Node& node);
  void TellTopology(const std::string& text);

  const Options options_;
  const Clock& clock_;
  Host& host_;
  uint64_t random_;
  Timestamp now_{};  // of this turn
  bool turn_wanted_ = false;
  bool stopping_ = false;

  std::vector<std::unique_ptr<Node>> nodes_;
  std::array<Node*, kSlots> slots_{};
  uint32_t slots_missing_ = kSlots;

  FlightPool pool_;
  Wheel wheel_;
  Timestamp armed_ = Timestamp::max();
  Timestamp settled_at_{};  // of all breakers the last
  std::vector<Flight*> failing_;
  std::vector<Flight*> telling_;  // those of the turn that ends

  Timestamp refresh_at_ = Timestamp::max();
  Timestamp refreshed_at_{-std::chrono::hours(1)};
  size_t refresh_turn_ = 0;
  std::vector<std::pair<const Node*, Address>> sentinel_says_;
  Node* master_ = nullptr;
  uint64_t refreshes_ = 0;
  uint64_t topology_changes_ = 0;
};

}  // namespace weir::redis
