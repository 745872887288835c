#include "redis/engine.h"

#include <algorithm>

#include "base/assert.h"
#include "redis/cluster.h"
#include "redis/slots.h"

namespace weir::redis {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyType;

constexpr uint8_t kRedirectsMax = 5;
constexpr uint8_t kRetriesMax = 3;
// Before the first retry; then twice as long each time.
constexpr Duration kRetryPause = std::chrono::milliseconds(1);

}  // namespace

void Call::Forget() noexcept {
  if (flight_ != nullptr) {
    flight_->call = nullptr;
    flight_ = nullptr;
  }
}

void Engine::Submit(Call& call, const Request& request) {
  WEIR_ASSERT(!call.pending());
  if (!turn_wanted_) {
    now_ = clock_.Now();
  }
  Flight& flight = pool_.Take();
  flight.call = &call;
  call.flight_ = &flight;
  if (!flight.Encode(request, options_.call_bytes_max)) {
    FailSoon(flight, {.kind = FailureKind::kTooLarge, .text = "the call is too large"});
    return;
  }
  flight.slot = request.slot < kSlots  ? request.slot
                : request.keys.empty() ? kSlotOfKey
                : is_divided()         ? SlotOf(request.keys.front())
                                       : uint16_t{0};
  flight.deadline = now_ + (request.timeout.count() > 0 ? request.timeout : options_.timeout);
  wheel_.Set(flight, flight.deadline);
  Arm(Wheel::FoundAt(flight.deadline));
  Dispatch(flight);
}

// To whoever has its slot.
void Engine::Dispatch(Flight& flight) {
  Node* node = nullptr;
  if (flight.slot < kSlots) {
    node = slots_[flight.slot];
  } else {
    for (const auto& one : nodes_) {
      if (!one->is_sentinel && !one->retired &&
          (node == nullptr || (!node->usable() && one->usable()))) {
        node = one.get();
      }
    }
  }
  flight.node = node;
  if (node == nullptr) {
    FailSoon(flight, {.kind = FailureKind::kNoNode, .text = "no node is known for the slot"});
    return;
  }
  ++node->counts.calls;
  Offer(*node, flight);
}

void Engine::Offer(Node& node, Flight& flight) {
  flight.node = &node;
  if (!node.breaker.closed()) {
    FailSoon(flight, {.kind = FailureKind::kBreakerOpen, .text = "the breaker is open"});
  } else if (node.in_flight + node.waiting.size() >= options_.in_flight_max) {
    FailSoon(flight, {.kind = FailureKind::kOverloaded, .text = "too many calls are in flight"});
  } else {
    SendTo(node, flight);
  }
}

void Engine::SendTo(Node& node, Flight& flight) {
  flight.node = &node;
  if (Link* const link = node.Pick(); link != nullptr) {
    flight.state = Flight::State::kSent;
    ++node.in_flight;
    if (link->awaited() == 0) {
      link->silent_since = now_;
    }
    link->SendCall(flight);
    MarkDirty();
  } else if (node.fresh) {
    flight.state = Flight::State::kQueued;
    node.waiting.push_back(&flight);
  } else {
    FailSoon(flight, {.kind = FailureKind::kDisconnected, .text = "not connected"});
  }
}

void Engine::MarkDirty() {
  if (!turn_wanted_) {
    turn_wanted_ = true;
    host_.WantTurnEnd();
  }
}

void Engine::Flush() {
  for (const auto& node : nodes_) {
    for (const auto& link : node->links) {
      if (link->has_output()) {
        ++node->counts.writes;
        link->Flush();
      }
    }
  }
}

// Who asks again at once is sent before what other connections brought is looked at, so that Redis
// has something to do meanwhile.
void Engine::OnHeard() {
  if (turn_wanted_) {
    Flush();
  }
}

void Engine::OnTurnEnd() {
  turn_wanted_ = false;
  Flush();
  telling_.swap(failing_);
  for (Flight* const flight : telling_) {
    const Failure failure = flight->failure;
    Fail(*flight, failure);
  }
  telling_.clear();
}

void Engine::Count(Node* node, FailureKind kind) {
  if (node != nullptr) {
    ++node->counts.failures[static_cast<size_t>(kind)];
  }
}

void Engine::FailSoon(Flight& flight, const Failure& failure) {
  flight.state = Flight::State::kFailing;
  flight.failure = failure;
  wheel_.Remove(flight);
  failing_.push_back(&flight);
  MarkDirty();
}

void Engine::Fail(Flight& flight, const Failure& failure) {
  Call* const call = flight.call;
  Count(flight.node, failure.kind);
  wheel_.Remove(flight);
  pool_.Give(flight);
  if (call != nullptr) {
    call->flight_ = nullptr;
    call->OnFailure(failure);
  }
}

void Engine::OnCallReply(Link& link, Flight& flight, const Reply& reply) {
  Node& node = link.node();
  --node.in_flight;
  Call* const call = flight.call;
  if (reply.type == ReplyType::kError) {
    OnCallError(node, flight, reply.text);
    return;
  }
  if (call != nullptr) {
    node.breaker.OnSuccess(now_);
  }
  if (node.trouble != Trouble::kNone) {
    Recovered(node, By::kAnswer);
  }
  ++node.counts.replies;
  wheel_.Remove(flight);
  pool_.Give(flight);
  if (call == nullptr) {
    ++node.counts.late_replies;
    return;
  }
  call->flight_ = nullptr;
  call->OnReply(reply);
}

void Engine::OnCallError(Node& node, Flight& flight, std::string_view text) {
  if (flight.call == nullptr) {
    ++node.counts.late_replies;
    wheel_.Remove(flight);
    pool_.Give(flight);
    return;
  }
  const ServerError error = ServerErrorOf(text);
  if (IsNodesFault(error)) {
    CountFailure(node, Breaker::Cause::kAway);
  } else {
    node.breaker.OnSuccess(now_);
  }
  switch (error) {
    case ServerError::kNoScript:
      if (flight.script != nullptr && !flight.with_text) {
        ++node.counts.no_script;
        flight.with_text = true;
        SendTo(node, flight);
        return;
      }
      break;
    case ServerError::kMoved:
    case ServerError::kAsk:
      Follow(node, flight, error, text);
      return;
    case ServerError::kTryAgain:
    case ServerError::kClusterDown:
      Pause(node, flight, text);
      return;
    case ServerError::kReadOnly:
      RefreshSoon(Duration(0));
      break;
    default:
      break;
  }
  TellError(node, error, text);
  Fail(flight, {.kind = FailureKind::kServer,
                .server = error,
                .may_have_run = !ProvesNothingRan(error, text),
                .text = text});
}

// MOVED: the slot has another owner, from now on. ASK: this one call goes elsewhere.
void Engine::Follow(Node& node, Flight& flight, ServerError error, std::string_view text) {
  const bool cluster = options_.topology == Topology::kCluster;
  const auto redirect = ReadRedirect(text, node.address);
  if (cluster && (!redirect || flight.redirects >= kRedirectsMax)) {
    // Whoever it is has no address yet, or two name each other: that will be settled in a moment.
    RefreshSoon(Duration(0));
    Pause(node, flight, text);
    return;
  }
  Node* const target = redirect && cluster ? FindOrAdd(redirect->to, false) : nullptr;
  if (target == nullptr) {
    if (!cluster) {
      SetTrouble(node, Trouble::kIsCluster, text);
    }
    Fail(flight,
         {.kind = FailureKind::kServer, .server = error, .may_have_run = false, .text = text});
    return;
  }
  ++flight.redirects;
  ++target->counts.redirects;
  flight.asking = error == ServerError::kAsk;
  if (error == ServerError::kMoved) {
    Node*& owner = slots_[redirect->slot];
    (owner == nullptr ? slots_missing_ : owner->slots) -= 1;
    owner = target;
    ++target->slots;
    RefreshSoon(Duration(0));
  }
  Offer(*target, flight);
}

// The slot is on its way, or the Cluster sorts itself out: again in a moment.
void Engine::Pause(Node& node, Flight& flight, std::string_view text) {
  const ServerError error = ServerErrorOf(text);
  if (error == ServerError::kClusterDown) {
    SetTrouble(node, Trouble::kClusterDown, text);
    RefreshSoon(Duration(0));
  }
  const Timestamp again = now_ + kRetryPause * (1 << flight.retries);
  if (flight.retries >= kRetriesMax || again >= flight.deadline) {
    Fail(flight,
         {.kind = FailureKind::kServer, .server = error, .may_have_run = false, .text = text});
    return;
  }
  ++flight.retries;
  ++node.counts.retries;
  flight.state = Flight::State::kPausing;
  flight.asking = false;
  wheel_.Remove(flight);
  wheel_.Set(flight, again);
  Arm(Wheel::FoundAt(again));
}

// Its time has come: to be tried again, or to be given up.
void Engine::Expire(Flight& flight, Timestamp now) {
  if (flight.call == nullptr) {  // forgotten
    if (flight.state == Flight::State::kQueued) {
      std::erase(flight.node->waiting, &flight);
    }
    if (flight.state != Flight::State::kSent) {
      pool_.Give(flight);
    }
    return;
  }
  switch (flight.state) {
    case Flight::State::kPausing:
      if (now >= flight.deadline) {
        Fail(flight, {.kind = FailureKind::kTimeout, .text = "no answer within the deadline"});
      } else {
        wheel_.Set(flight, flight.deadline);
        Arm(Wheel::FoundAt(flight.deadline));
        Dispatch(flight);
      }
      return;
    case Flight::State::kQueued:
      std::erase(flight.node->waiting, &flight);
      Fail(flight, {.kind = FailureKind::kDisconnected, .text = "not connected in time"});
      return;
    case Flight::State::kSent: {
      // Its answer will come, or not, at its place in the queue; until then that place is kept.
      Call* const call = flight.call;
      flight.call = nullptr;
      call->flight_ = nullptr;
      Count(flight.node, FailureKind::kTimeout);
      CountFailure(*flight.node, Breaker::Cause::kSilence);
      call->OnFailure({.kind = FailureKind::kTimeout,
                       .server = ServerError::kNone,
                       .may_have_run = true,
                       .text = "no answer within the deadline"});
      return;
    }
    default:
      return;
  }
}

}  // namespace weir::redis
