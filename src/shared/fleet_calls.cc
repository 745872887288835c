// What is asked of the shared store besides decisions, and what it tells about itself.
#include <algorithm>
#include <map>
#include <utility>

#include "base/wide_math.h"
#include "shared/fleet_store.h"
#include "shared/one_call.h"
#include "shared/receipts.h"

namespace weir::shared {

namespace {

void Sum(const LaneCounters& from, SharedStoreStats& to) {
  const auto value = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  for (size_t i = 0; i < kSharedBases; ++i) {
    to.decisions[i] += value(from.decisions[i]);
    to.admitted[i] += value(from.admitted[i]);
  }
  for (size_t i = 0; i < kStoreTroubles; ++i) {
    to.troubles[i] += value(from.troubles[i]);
  }
  to.repeated_ids += value(from.repeated_ids);
  to.refunds += value(from.refunds);
  to.refunds_lost += value(from.refunds_lost);
  to.unsure_ids += value(from.unsure);
  to.repaid_units += value(from.repaid_units);
  to.repaid_lost += value(from.repaid_lost);
}

}  // namespace

void FleetStore::EndLane(const Lane& lane) {
  const base::MutexLock lock(mutex_);
  Sum(lane.counters(), ended_);
  std::erase(lanes_, &lane);
  statuses_.erase(&lane);
  events_.Forget(who_[&lane].get());
  who_.erase(&lane);
}

uint32_t FleetStore::GiveBackLocally(SharedReceipt& receipt) noexcept {
  const FleetQuota& quota = QuotaOf(receipt);
  if (quota.holds()) {
    return quota.local_holds && quota.local_holds->Release(LocalHoldOf(receipt)) ? receipt.charged
                                                                                 : 0;
  }
  LocalReceipt local = LocalReceiptOf(receipt);
  return book_->GiveBack(BookKeyOf(receipt), quota.book, local, common_.NowNs());
}

uint32_t FleetStore::GiveBack(std::span<SharedReceipt> receipts) noexcept {
  uint32_t most = 0;
  std::vector<std::unique_ptr<OneCall>> calls;
  std::vector<script::GiveBackCall> texts;
  for (SharedReceipt& receipt : receipts) {
    if (receipt.charged == 0 || receipt.quota == nullptr) {
      continue;
    }
    if (receipt.basis != Basis::kStore) {
      most = std::max(most, GiveBackLocally(receipt));
      continue;
    }
    const script::Paid paid = PaidOf(receipt);
    script::GiveBackCall& text = texts.emplace_back();
    text.Encode({&paid, 1});
    calls.push_back(std::make_unique<OneCall>(text.script(), text.keys(), text.arguments()));
    if (!QuotaOf(receipt).holds()) {
      book_->ForgetDenial(BookKeyOf(receipt));
    }
  }
  if (!calls.empty()) {
    std::vector<OneCall*> all;
    for (const auto& call : calls) {
      all.push_back(call.get());
    }
    Ask(all);
    for (size_t i = 0; i < calls.size(); ++i) {
      uint32_t units = 0;
      if (calls[i]->trouble == StoreTrouble::kNone &&
          texts[i].Decode(calls[i]->integers, {&units, 1})) {
        most = std::max(most, units);
      }
    }
  }
  for (SharedReceipt& receipt : receipts) {
    receipt = {};
  }
  return most;
}

bool FleetStore::Renew(SharedReceipt& hold, Duration lease) noexcept {
  if (hold.charged == 0 || hold.quota == nullptr || !QuotaOf(hold).holds()) {
    return false;
  }
  if (hold.basis != Basis::kStore) {
    RenewOptions options;
    if (lease > Duration::zero()) {
      options.lease = lease;
    }
    const FleetQuota& quota = QuotaOf(hold);
    return quota.local_holds && quota.local_holds->Renew(LocalHoldOf(hold), options);
  }
  const Duration lasts = lease > Duration::zero() ? lease : hold.quota->quota.window();
  OneCall call(script::RenewCall(PaidOf(hold), static_cast<uint64_t>(lasts.count()) / 1000));
  OneCall* const all[] = {&call};
  Ask(all);
  return call.trouble == StoreTrouble::kNone && !call.integers.empty() && call.integers[0] == 1;
}

ResetOutcome FleetStore::Reset(const SharedQuota& quota, std::string_view key) noexcept {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return ResetOutcome::kRefused;
  }
  const auto& own = static_cast<const FleetQuota&>(quota);
  const script::Digest digest = secret_.Of(own.scope, own.plan.kind(), key);
  OneCall call(script::ResetCall(digest));
  OneCall* const all[] = {&call};
  Ask(all);
  if (call.trouble != StoreTrouble::kNone || call.integers.empty()) {
    return ResetOutcome::kRefused;
  }
  book_->Forget({digest[0], digest[1]});
  return call.integers[0] != 0 ? ResetOutcome::kDone : ResetOutcome::kUnknown;
}

namespace {

// What may be admitted twice: once by the master that was lost, once by the replica that had not
// heard of it.
std::string FailoverBound(const Quota& quota) {
  constexpr Duration kStep = std::chrono::seconds(2);
  const std::string burst = std::to_string(quota.burst());
  switch (quota.algorithm()) {
    case Algorithm::kConcurrency:
    case Algorithm::kCalendar:
    case Algorithm::kFixedWindow:
      return "at most " + burst;
    default: {
      const auto window = static_cast<uint64_t>(quota.window().count());
      const auto step = static_cast<uint64_t>(kStep.count());
      const uint64_t more = base::MulDivFloor(quota.limit(), step, window) + 1;
      return "at most " + burst + " and " + std::to_string(more) + " for each 2 s that it took";
    }
  }
}

}  // namespace

std::string FleetStore::Bound(const SharedQuota& quota, OnStoreFailure on_failure) const {
  const std::string nodes = std::to_string(options_.nodes);
  size_t loops = 0;
  {
    const base::MutexLock lock(mutex_);
    loops = lanes_.size();
  }
  const uint64_t in_flight = uint64_t{client_options_.in_flight_max} * loops;
  std::string text =
      "exact over all nodes while Redis answers; a failover of Redis may add what its replica had "
      "not got: " +
      FailoverBound(quota.quota) +
      "; with other quotas on other slots of a Cluster, a node that ends between charge and refund "
      "leaves what it had in flight charged: at most " +
      std::to_string(in_flight) + " requests of this one";
  switch (on_failure) {
    case OnStoreFailure::kLocal:
      if (quota.quota.algorithm() == Algorithm::kConcurrency) {
        return text + "; without Redis each of " + nodes + " nodes holds at most " +
               std::to_string(quota.quota.limit() / options_.nodes) +
               ", beside what was held before";
      }
      return text + "; without Redis each of " + nodes +
             " nodes admits its part from where a key stood: the whole fleet at most one burst "
             "more than the quota, " +
             std::to_string(quota.quota.burst()) + ", which is paid back when Redis returns";
    case OnStoreFailure::kAllow:
      return text + "; without Redis everything is admitted";
    case OnStoreFailure::kDeny:
      return text + "; without Redis nothing is admitted";
  }
  return text;
}

SharedStoreStats FleetStore::Stats() const {
  SharedStoreStats stats;
  {
    const base::MutexLock lock(mutex_);
    stats = ended_;
    for (const Lane* const lane : lanes_) {
      Sum(lane->counters(), stats);
    }
  }
  const BookStats book = book_->Stats(common_.NowNs());
  stats.notes = book.live;
  stats.notes_evicted = book.evicted;
  stats.notes_owed_evicted = book.evicted_owed;
  stats.state_changes = events_.changes();
  stats.away = events_.away();
  return stats;
}

std::vector<redis::NodeStatus> FleetStore::Nodes() const {
  std::map<std::string, redis::NodeStatus> by_address;
  const base::MutexLock lock(mutex_);
  for (const auto& [lane, status] : statuses_) {
    for (const redis::NodeStatus& node : status.nodes) {
      const auto [found, fresh] = by_address.emplace(node.address, node);
      if (fresh) {
        continue;
      }
      redis::NodeStatus& sum = found->second;
      sum.ready = sum.ready && node.ready;
      sum.breaker = std::max(sum.breaker, node.breaker);
      sum.trouble = sum.trouble == redis::Trouble::kNone ? node.trouble : sum.trouble;
      sum.in_flight += node.in_flight;
      for (size_t i = 0; i < redis::kFailureKinds; ++i) {
        sum.failures[i] += node.failures[i];
      }
      sum.calls += node.calls;
      sum.replies += node.replies;
      sum.late_replies += node.late_replies;
      sum.no_script += node.no_script;
      sum.redirects += node.redirects;
      sum.retries += node.retries;
      sum.connects += node.connects;
      sum.disconnects += node.disconnects;
      sum.writes += node.writes;
      sum.breaker_transitions += node.breaker_transitions;
    }
  }
  std::vector<redis::NodeStatus> nodes;
  for (auto& [address, node] : by_address) {
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace weir::shared
