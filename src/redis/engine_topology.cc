// The engine's map: who has which slot, and how that is found out.
#include <algorithm>
#include <charconv>

#include "redis/cluster.h"
#include "redis/engine.h"
#include "redis/slots.h"

namespace weir::redis {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyType;

// Many calls learn of one change at the same time; they ask once.
constexpr Duration kRefreshApart = std::chrono::milliseconds(100);
constexpr Duration kRefreshInTrouble = std::chrono::milliseconds(400);
constexpr Duration kRefreshIfWell = std::chrono::seconds(15);

std::optional<Address> AddressOf(std::string_view host, std::string_view port) {
  Address address{.host = std::string(host), .port = 0, .unix_path = {}};
  const char* const end = port.data() + port.size();
  if (host.empty() || std::from_chars(port.data(), end, address.port).ptr != end ||
      address.port == 0) {
    return std::nullopt;
  }
  return address;
}

std::string_view NextWord(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

}  // namespace

void Engine::Start() {
  now_ = clock_.Now();
  const bool sentinel = options_.topology == Topology::kSentinel;
  for (const Address& address : options_.addresses) {
    (void)FindOrAdd(address, sentinel);
  }
  if (options_.topology == Topology::kSingle) {
    Assign(0, kSlots - 1, nodes_.front().get());
  } else if (options_.topology == Topology::kList) {
    const Rendezvous rendezvous(options_.addresses);
    for (uint16_t slot = 0; slot < kSlots; ++slot) {
      slots_[slot] = nodes_[rendezvous.InstanceOf(slot)].get();
    }
  } else {
    RefreshSoon(kRefreshInTrouble);
  }
  CountSlots();
}

void Engine::Assign(uint16_t first, uint16_t last, Node* node) {
  std::fill(slots_.begin() + first, slots_.begin() + last + 1, node);
}

void Engine::CountSlots() {
  for (const auto& node : nodes_) {
    node->slots = 0;
  }
  slots_missing_ = 0;
  for (Node* const node : slots_) {
    if (node == nullptr) {
      ++slots_missing_;
    } else {
      ++node->slots;
    }
  }
}

uint32_t Engine::GroupOf(std::string_view key) const noexcept {
  switch (options_.topology) {
    case Topology::kCluster:
      return SlotOf(key);
    case Topology::kList:
      for (uint32_t i = 0; i < nodes_.size(); ++i) {  // the list does not change
        if (nodes_[i].get() == slots_[SlotOf(key)]) {
          return i;
        }
      }
      return 0;
    default:
      return 0;
  }
}

bool Engine::HasTrouble() const {
  return slots_missing_ != 0 || std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
           return node->slots != 0 && !node->usable();
         });
}

bool Engine::ready() const noexcept {
  return !HasTrouble();
}

bool Engine::IsUsable(uint16_t slot) const noexcept {
  const Node* const node = slots_[slot % kSlots];
  return node != nullptr && node->usable() && node->in_flight < options_.in_flight_max;
}

bool Engine::IsSettling(std::string_view key) const noexcept {
  const Node* const node = settling() ? slots_[SlotOf(key)] : nullptr;
  return node != nullptr && node->breaker.closed() && clock_.Now() < node->breaker.settled_at();
}

void Engine::RefreshSoon(Duration after) {
  if (stopping_ || options_.topology == Topology::kSingle || options_.topology == Topology::kList) {
    return;
  }
  const Timestamp at = std::max(now_ + after, refreshed_at_ + kRefreshApart);
  if (at < refresh_at_) {
    refresh_at_ = at;
    Arm(at);
  }
}

// Asks again who has what. Whatever comes of it, it is asked again: soon while something is wrong.
void Engine::Refresh(Timestamp now) {
  refreshed_at_ = now;
  const Duration pause = HasTrouble() ? kRefreshInTrouble : kRefreshIfWell;
  refresh_at_ =
      now + Duration(static_cast<int64_t>(static_cast<double>(pause.count()) * (1 + Chance() / 5)));
  ++refreshes_;
  if (options_.topology == Topology::kSentinel) {
    for (const auto& node : nodes_) {
      Link& link = *node->links.front();
      // In version 2 a connection that has subscribed takes no questions.
      if (node->is_sentinel && link.ready() && link.awaited() == 0 &&
          (link.is_resp3() || !link.subscribed)) {
        link.silent_since = now;
        link.Send(Ask::kMaster, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options_.master_name});
        MarkDirty();
      }
    }
    return;
  }
  // Each time another node: one of them may be alone with its view.
  const size_t begin = ++refresh_turn_;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = *nodes_[(begin + i) % nodes_.size()];
    if (node.usable() && !node.retired) {
      Link& link = *node.Pick();
      if (link.awaited() == 0) {
        link.silent_since = now;
      }
      link.Send(Ask::kSlotMap, {"CLUSTER", "SLOTS"});
      MarkDirty();
      return;
    }
  }
  // Nobody that we know is there; maybe one of those that we began with is.
  for (const Address& address : options_.addresses) {
    (void)FindOrAdd(address, false);
  }
}

void Engine::OnSlotMap(Link& link, const Reply& reply) {
  Node& asked = link.node();
  if (reply.type == ReplyType::kError) {
    if (reply.text.find("cluster support disabled") != std::string_view::npos) {
      SetTrouble(asked, Trouble::kNoCluster, reply.text);
    } else {
      TellError(asked, ServerErrorOf(reply.text), reply.text);
    }
    return;
  }
  const auto ranges = ReadClusterSlots(reply, asked.address);
  if (!ranges) {
    SetTrouble(asked, Trouble::kNotRedis, ranges.error().message);
    return;
  }
  if (ranges->empty()) {
    return;  // it is being made; refreshed soon, as slots are missing
  }
  const std::vector<Node*> before(slots_.begin(), slots_.end());
  slots_.fill(nullptr);
  for (const SlotRange& range : *ranges) {
    Assign(range.first, range.last, FindOrAdd(range.master, false));
  }
  CountSlots();
  for (const auto& node : nodes_) {
    if (node->slots == 0 && !node->retired) {
      Retire(*node);
    }
  }
  if (!std::equal(before.begin(), before.end(), slots_.begin())) {
    ++topology_changes_;
    if (std::count(before.begin(), before.end(), nullptr) == kSlots) {
      const auto masters = std::count_if(nodes_.begin(), nodes_.end(),
                                         [](const auto& node) { return node->slots != 0; });
      TellTopology("Redis Cluster: " + std::to_string(masters) + " masters, " +
                   std::to_string(kSlots - slots_missing_) + " slots");
    }
  }
}

void Engine::OnMaster(Link& link, const Reply& reply) {
  Node& sentinel = link.node();
  std::erase_if(sentinel_says_, [&](const auto& said) { return said.first == &sentinel; });
  if (reply.type == ReplyType::kArray && reply.size == 2) {
    if (const auto address = AddressOf(reply.element(0).text, reply.element(1).text)) {
      sentinel_says_.emplace_back(&sentinel, *address);
      ChooseMaster();
      Recovered(sentinel, By::kAnswer);
    }
  } else if (reply.type == ReplyType::kError) {
    TellError(sentinel, ServerErrorOf(reply.text), reply.text);
  } else {
    SetTrouble(sentinel, Trouble::kNoMaster, options_.master_name);
  }
  if (!link.subscribed) {
    link.subscribed = true;
    link.Send(Ask::kSubscribe, {"SUBSCRIBE", "+switch-master"});
    MarkDirty();
  }
}

// What most of those say that can be heard; whom we have if they are at odds.
void Engine::ChooseMaster() {
  const Address* best = nullptr;
  int64_t votes = 0;
  for (const auto& [node, address] : sentinel_says_) {
    const auto count = std::count_if(sentinel_says_.begin(), sentinel_says_.end(),
                                     [&](const auto& said) { return said.second == address; });
    const bool ours = master_ != nullptr && master_->address == address;
    if (count > votes || (count == votes && ours)) {
      best = &address;
      votes = count;
    }
  }
  if (best != nullptr) {
    UseMaster(*best);
  }
}

void Engine::UseMaster(const Address& address) {
  if (master_ != nullptr && master_->address == address) {
    return;
  }
  Node* const before = master_;
  Node* const found = FindOrAdd(address, false);
  if (found == nullptr) {
    return;
  }
  master_ = found;
  Assign(0, kSlots - 1, master_);
  CountSlots();
  ++topology_changes_;
  TellTopology("Redis master '" + options_.master_name + "' is at " + master_->name +
               (before == nullptr ? "" : ", no longer at " + before->name));
  if (before != nullptr) {
    Retire(*before);
  }
}

// "+switch-master": name, old address and port, new address and port.
void Engine::OnPush(Link& link, const Reply& reply) {
  if (!link.node().is_sentinel || reply.size != 3 || reply.element(0).text != "message" ||
      reply.element(1).text != "+switch-master") {
    return;
  }
  now_ = clock_.Now();
  std::string_view text = reply.element(2).text;
  if (NextWord(text) != options_.master_name) {
    return;
  }
  const std::string_view old_host = NextWord(text);
  const auto old = AddressOf(old_host, NextWord(text));
  const std::string_view host = NextWord(text);
  if (const auto address = AddressOf(host, NextWord(text))) {
    // The others will say so in a moment; what they said before counts no more.
    for (auto& said : sentinel_says_) {
      if (said.first == &link.node() || (old && said.second == *old)) {
        said.second = *address;
      }
    }
    UseMaster(*address);
  }
}

}  // namespace weir::redis
