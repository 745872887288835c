// The engine's nodes: connecting and connecting again, breakers and probes, what is due when.
#include <algorithm>

#include "redis/engine.h"

namespace weir::redis {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyType;

// As many as a Cluster can have; what is told beyond is not believed.
constexpr size_t kNodesMax = 1024;
// Between the probes that close a breaker.
constexpr Duration kProbePause = std::chrono::milliseconds(20);
// Pauses grow by up to a fifth.
constexpr double kJitter = 0.2;

Duration Scaled(Duration duration, double factor) {
  return Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * factor));
}

}  // namespace

Engine::Engine(const Options& options, const Clock& clock, Host& host, uint64_t seed)
    : options_(options), clock_(clock), host_(host), random_(seed), now_(clock.Now()) {}

Engine::~Engine() {
  stopping_ = true;
  for (const auto& node : nodes_) {
    for (const auto& link : node->links) {
      link->Close();
    }
  }
  pool_.ForEach([this](Flight& flight) {
    wheel_.Remove(flight);
    if (flight.call != nullptr) {
      Call* const call = flight.call;
      flight.call = nullptr;
      call->flight_ = nullptr;
      call->OnFailure({.kind = FailureKind::kStopped,
                       .server = ServerError::kNone,
                       .may_have_run = flight.state == Flight::State::kSent,
                       .text = "the client has ended"});
    }
  });
}

// splitmix64, as a fraction.
double Engine::Chance() {
  uint64_t value = random_ += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((value ^ (value >> 31)) >> 11) * 0x1p-53;
}

Node* Engine::FindOrAdd(const Address& address, bool is_sentinel) {
  for (const auto& node : nodes_) {
    if (node->address == address && node->is_sentinel == is_sentinel) {
      if (node->retired) {
        node->retired = false;
        node->fresh = !node->ready();
        for (const auto& link : node->links) {
          if (link->state() == Link::State::kDown) {
            link->due = now_;
          }
        }
        Arm(now_);
      }
      return node.get();
    }
  }
  if (nodes_.size() >= kNodesMax) {
    return nullptr;
  }
  nodes_.push_back(std::make_unique<Node>(address, options_.breaker));
  Node& node = *nodes_.back();
  node.is_sentinel = is_sentinel;
  const Greeting greeting{.user = is_sentinel ? options_.sentinel_user : options_.user,
                          .password = is_sentinel ? options_.sentinel_password : options_.password,
                          .client_name = options_.client_name,
                          .database = is_sentinel ? 0 : options_.database,
                          .to_sentinel = is_sentinel};
  for (uint32_t i = 0; i < (is_sentinel ? 1 : options_.connections); ++i) {
    node.links.push_back(std::make_unique<Link>(static_cast<LinkOwner&>(*this), node, greeting));
    node.links.back()->due = now_;
  }
  Arm(now_);
  return &node;
}

void Engine::Retire(Node& node) {
  node.retired = true;
  for (Flight* const flight : node.waiting) {
    FailSoon(*flight, {.kind = FailureKind::kNoNode, .text = "its node has gone"});
  }
  node.waiting.clear();
  Arm(now_);
}

// Ends what nobody needs; what is awaited of it is waited for.
void Engine::SweepRetired() {
  for (const auto& node : nodes_) {
    for (const auto& link : node->links) {
      if (node->retired && link->state() != Link::State::kDown && link->awaited() == 0) {
        link->Close();
      }
    }
  }
  const auto gone = [this](const std::unique_ptr<Node>& node) {
    if (!node->retired || node->in_flight != 0 || node->slots != 0 ||
        std::any_of(node->links.begin(), node->links.end(),
                    [](const auto& link) { return link->state() != Link::State::kDown; })) {
      return false;
    }
    pool_.ForEach([&node](Flight& flight) {
      if (flight.node == node.get()) {
        flight.node = nullptr;
      }
    });
    std::erase_if(sentinel_says_, [&](const auto& said) { return said.first == node.get(); });
    master_ = master_ == node.get() ? nullptr : master_;
    return true;
  };
  std::erase_if(nodes_, gone);
}

void Engine::Arm(Timestamp at) {
  if (at < armed_ && !stopping_) {
    armed_ = at;
    host_.WantTime(at);
  }
}

void Engine::OnTime() {
  now_ = clock_.Now();
  armed_ = Timestamp::max();
  wheel_.Advance(now_, [this](Wheel::Entry& entry) { Expire(static_cast<Flight&>(entry), now_); });
  for (size_t i = 0; i < nodes_.size(); ++i) {  // more may come meanwhile
    Node& node = *nodes_[i];
    for (const auto& link : node.links) {
      TendLink(*link, now_);
    }
    TendProbe(node, now_);
  }
  if (now_ >= refresh_at_) {
    Refresh(now_);
  }
  SweepRetired();
  Timestamp next = std::min(wheel_.Next(), refresh_at_);
  for (const auto& node : nodes_) {
    next = std::min(next, NextDue(*node));
  }
  Arm(next);
}

Timestamp Engine::NextDue(const Node& node) const {
  Timestamp next = Timestamp::max();
  for (const auto& link : node.links) {
    if (link->ready()) {
      next = link->awaited() == 0 ? next
                                  : std::min(next, link->silent_since + options_.connect_timeout);
    } else if (!node.retired || link->state() != Link::State::kDown) {
      next = std::min(next, link->due);
    }
  }
  if (node.breaker.state() == BreakerState::kProbing) {
    next = std::min(next, node.probe_due);
  } else if (node.breaker.state() == BreakerState::kOpen && node.ready()) {
    next = std::min(next, node.breaker.probe_at());
  }
  return next;
}

void Engine::TendLink(Link& link, Timestamp now) {
  Node& node = link.node();
  switch (link.state()) {
    case Link::State::kDown:
      if (!node.retired && now >= link.due) {
        ++node.counts.connects;
        link.due = now + options_.connect_timeout;
        link.Open(host_, node.address);
      }
      return;
    case Link::State::kConnecting:
    case Link::State::kGreeting:
      if (now >= link.due) {
        link.Fail(link.stuck(), "no answer in time");
      }
      return;
    case Link::State::kReady:
      if (link.awaited() != 0 && now - link.silent_since >= options_.connect_timeout) {
        link.Fail(Trouble::kSilent, "nothing was heard for a while");
      }
      return;
  }
}

void Engine::ConnectLater(Link& link) {
  const uint32_t doublings = std::min<uint32_t>(link.failures, 16);
  const Duration pause =
      std::min(options_.reconnect_min * (int64_t{1} << doublings), options_.reconnect_max);
  ++link.failures;
  link.due = now_ + Scaled(pause, 1.0 + kJitter * Chance());
  Arm(link.due);
}

void Engine::OnReady(Link& link) {
  now_ = clock_.Now();
  Node& node = link.node();
  link.heard_noted = link.heard;
  link.silent_since = now_;
  link.failures = 0;
  const ServerFacts& facts = link.facts();
  if (node.is_sentinel) {
    Recovered(node, By::kConnection);
    link.Send(Ask::kMaster, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options_.master_name});
    MarkDirty();
    return;
  }
  node.counts.version = facts.version;
  node.counts.policy = facts.policy;
  node.counts.evicts =
      !facts.policy.empty() && facts.policy != "noeviction" && facts.memory_max != 0;
  if (facts.role == "replica" && options_.topology != Topology::kCluster) {
    SetTrouble(node, Trouble::kReadOnly, "it says that it is a replica");
    if (options_.topology == Topology::kSentinel) {  // who knows a master, soon
      node.fresh = false;
      link.Close();
      ConnectLater(link);
      RefreshSoon(options_.reconnect_min);
      return;
    }
  } else {
    Recovered(node, By::kConnection);
  }
  if (node.counts.evicts) {
    WarnOnce(node, Trouble::kEvicts, facts.policy);
  } else if (facts.policy.empty()) {
    WarnOnce(node, Trouble::kPolicyUnknown, {});
  }
  node.fresh = false;
  for (Flight* const flight : std::exchange(node.waiting, {})) {
    SendTo(node, *flight);
  }
  if (options_.topology == Topology::kCluster && slots_missing_ != 0) {
    RefreshSoon(Duration(0));
  }
  TendProbe(node, now_);
  Arm(NextDue(node));
}

void Engine::OnDown(Link& link, Trouble why, std::string_view text) {
  now_ = clock_.Now();
  Node& node = link.node();
  node.fresh = false;
  node.counts.disconnects += link.was_ready ? 1 : 0;
  for (Flight* const flight : std::exchange(node.waiting, {})) {
    Fail(*flight, {.kind = FailureKind::kDisconnected, .text = "not connected"});
  }
  ConnectLater(link);
  if (node.ready()) {
    return;
  }
  if (node.breaker.state() == BreakerState::kProbing) {
    node.probe_awaited = false;
    node.breaker.OnProbe(now_, false, Chance());
  }
  if (!node.retired) {
    SetTrouble(node, why, text);
    RefreshSoon(Duration(0));
  }
}

void Engine::OnLost(Link& link, Flight& flight) {
  Node& node = link.node();
  --node.in_flight;
  if (stopping_) {
    return;  // all that is left is told at once
  }
  if (flight.call == nullptr) {
    wheel_.Remove(flight);
    pool_.Give(flight);
    return;
  }
  now_ = clock_.Now();
  CountFailure(node, Breaker::Cause::kAway);
  Fail(flight, {.kind = FailureKind::kDisconnected,
                .server = ServerError::kNone,
                .may_have_run = true,
                .text = "the connection was lost"});
}

void Engine::OnAnswer(Link& link, Ask ask, Flight* flight, const Reply& reply) {
  if (link.heard != link.heard_noted) {
    link.heard_noted = link.heard;
    now_ = clock_.Now();
    link.silent_since = now_;
  }
  switch (ask) {
    case Ask::kCall:
      OnCallReply(link, *flight, reply);
      break;
    case Ask::kPing:
      OnPing(link.node(), reply);
      break;
    case Ask::kSlotMap:
      OnSlotMap(link, reply);
      break;
    case Ask::kMaster:
      OnMaster(link, reply);
      break;
    default:
      break;
  }
  if (Node& node = link.node(); !node.breaker.closed() && link.awaited() == 0) {
    TendProbe(node, now_, /*spoke=*/true);
  }
}

void Engine::CountFailure(Node& node, Breaker::Cause cause) {
  if (node.breaker.OnFailure(now_, cause, Chance())) {
    TellBreaker(node);
    RefreshSoon(Duration(0));
    Arm(node.breaker.probe_at());
  }
}

// `spoke`: it has just answered the last that it was asked.
void Engine::TendProbe(Node& node, Timestamp now, bool spoke) {
  if (node.breaker.state() == BreakerState::kOpen) {
    const bool due = now >= node.breaker.probe_at() || (spoke && node.breaker.listens());
    if (due && node.ready()) {
      node.breaker.BeginProbing();
      Probe(node, now);
    }
  } else if (node.breaker.state() == BreakerState::kProbing && now >= node.probe_due) {
    if (node.probe_awaited) {
      node.probe_awaited = false;
      node.breaker.OnProbe(now, false, Chance());
    } else {
      Probe(node, now);
    }
  }
}

// One question of our own, so that no request pays for finding out.
void Engine::Probe(Node& node, Timestamp now) {
  Link* const link = node.Pick();
  if (link == nullptr) {
    node.breaker.OnProbe(now, false, Chance());
    return;
  }
  if (link->awaited() == 0) {
    link->silent_since = now;
  }
  link->Send(Ask::kPing, {"PING"});
  MarkDirty();
  node.probe_awaited = true;
  node.probe_due = now + options_.timeout;
  Arm(node.probe_due);
}

void Engine::OnPing(Node& node, const Reply& reply) {
  if (node.breaker.state() != BreakerState::kProbing || !node.probe_awaited) {
    return;  // later than it may be
  }
  node.probe_awaited = false;
  // Any answer will do, but one that says it cannot serve.
  const ServerError error =
      reply.type == ReplyType::kError ? ServerErrorOf(reply.text) : ServerError::kNone;
  const bool good = !IsNodesFault(error) || error == ServerError::kNoPermission;
  if (node.breaker.OnProbe(now_, good, Chance())) {
    settled_at_ = std::max(settled_at_, node.breaker.settled_at());
    TellBreaker(node);
  } else if (node.breaker.state() == BreakerState::kProbing) {
    node.probe_due = now_ + Scaled(kProbePause, 1.0 + kJitter * Chance());
    Arm(node.probe_due);
  } else {
    Arm(node.breaker.probe_at());
  }
}

}  // namespace weir::redis
