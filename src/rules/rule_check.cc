#include "rules/rule_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <new>

#include "base/room.h"
#include "rules/key_builder.h"

namespace weir {

namespace {

using rules::Alternative;
using rules::CompiledRule;
using rules::OnMissing;
using rules::RuleCounters;
using Cell = rules::RuleCounters::Cell;

bool IsAllowedMode(ChargeMode mode) noexcept {
  return mode == ChargeMode::kAdmit || mode == ChargeMode::kCountAlways ||
         mode == ChargeMode::kDryRun;
}

// Nobody counted: there is nothing to say about what is left.
bool IsUncounted(const Decision& decision) noexcept {
  return decision.basis == Basis::kOpen;
}

}  // namespace

RuleCheck::RuleCheck(RuleLimiter::State& state, rules::BoundSet& set, const RuleRequest& request,
                     RuleReply& reply) noexcept
    : state_(state),
      set_(set),
      request_(request),
      reply_(reply),
      view_(set.compiled->attributes, set.compiled->special, request.attributes,
            state.options.addresses) {
  reply.outcome = Outcome::kAllowed;
  reply.problem = Problem::kNone;
  reply.why = RuleRefusal::kNone;
  reply.refusing = nullptr;
  reply.retry_after = {};
  reply.start_after = {};
  reply.version = set.compiled->version;
  reply.trouble = StoreTrouble::kNone;
  reply.deciding_ = nullptr;
  reply.size_ = 0;
  reply.key_bytes_ = 0;
  reply.has_receipts_ = false;
}

void RuleCheck::Refuse(Outcome outcome, RuleRefusal why, const RuleView* rule) noexcept {
  reply_.outcome = outcome;
  reply_.why = why;
  reply_.refusing = rule;
  reply_.size_ = 0;
}

// Whether there is an answer before any rule is looked at.
bool RuleCheck::Settled() noexcept {
  if (view_.refusal() != RuleRefusal::kNone || !IsAllowedMode(request_.mode)) {
    const bool fits = view_.refusal() == RuleRefusal::kNone;
    Refuse(Outcome::kRefused, fits ? RuleRefusal::kBadMode : view_.refusal(), nullptr);
    return true;
  }
  if (set_.needs_wall) {
    wall_ = request_.wall ? *request_.wall : state_.clock.WallNow();
    if (wall_.time_since_epoch().count() >= set_.next_due_ns.load(std::memory_order_acquire))
        [[unlikely]] {
      state_.MakeDueChanges(set_, wall_);
    }
  }
  if (!set_.compiled->block.empty() && set_.compiled->block.Find(view_, wall_) != nullptr) {
    Refuse(Outcome::kDenied, RuleRefusal::kBlocked, nullptr);
    return true;
  }
  return !set_.compiled->allow.empty() && set_.compiled->allow.Find(view_, wall_) != nullptr;
}

void RuleCheck::Run() noexcept {
  if (Settled()) {
    return;
  }
  rules::Winners winners;
  rules::FindWinners(*set_.compiled, view_, state_.Context(wall_), winners);
  const std::span ranks(winners.ranks.data(), winners.size);
  const auto is_shadow = [this](uint32_t rank) {
    return set_.compiled->rules[set_.compiled->alternatives[rank].rule].view->shadow;
  };
  for (const uint32_t rank : ranks) {
    if (!is_shadow(rank) && !Gather(rank)) {
      return;
    }
  }
  const size_t counted = reply_.size_;
  for (const uint32_t rank : ranks) {
    if (is_shadow(rank) && !Gather(rank)) {
      return;
    }
  }
  const std::span<RulePart> all(reply_.parts_, reply_.size_);
  reply_.has_receipts_ = request_.keep_receipts;
  if (state_.options.shared != nullptr) [[unlikely]] {
    ChargeShared(all);
    Judge(all.first(counted));
  } else {
    Charge(all.first(counted));
    Judge(all.first(counted));
    for (RulePart& part : all.subspan(counted)) {
      part.decision =
          Ask(part, request_.keep_receipts ? &reply_.receipts_[&part - all.data()] : nullptr);
    }
  }
  if (request_.mode != ChargeMode::kDryRun && request_.cost.units != 0) {
    Count(all);
  }
}

const RuleVariant& RuleCheck::Choose(const CompiledRule& rule, std::string_view key,
                                     uint32_t& first_slot) const noexcept {
  const auto& variants = rule.view->variants;
  size_t chosen = 0;
  if (rule.by != rules::AttributeTable::kNone) {
    const std::string_view tier = view_.Value(rule.by);
    for (size_t i = 1; i < variants.size() && !variants[i].is_override; ++i) {
      if (variants[i].tier == tier) {
        chosen = i;
        break;
      }
    }
  }
  if (!rule.overrides.empty()) [[unlikely]] {
    const auto found = rule.overrides.find(key);
    if (found != rule.overrides.end() && wall_ < found->second.expires) {
      chosen = found->second.variant;
    }
  }
  first_slot = rule.first_slot[chosen];
  return variants[chosen];
}

Cost RuleCheck::CostOf(const CompiledRule& rule) const noexcept {
  uint64_t units = rule.model->cost.units;
  if (rule.cost_attribute != rules::AttributeTable::kNone) {
    const std::string_view text = view_.Value(rule.cost_attribute);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) {
      units = std::min(value, rule.model->cost.most);
    }
  }
  uint64_t product = 0;
  return __builtin_mul_overflow(units, request_.cost.units, &product) ? ~uint64_t{0} : product;
}

bool RuleCheck::Gather(uint32_t rank) noexcept {
  const Alternative& alternative = set_.compiled->alternatives[rank];
  const CompiledRule& rule = set_.compiled->rules[alternative.rule];
  const RuleView& view = *rule.view;
  const bool missing = rule.model->on_missing == OnMissing::kDeny && !rules::HasKey(rule, view_);
  if (view.action == RuleAction::kUnlimited) {
    return true;
  }
  if (view.action == RuleAction::kBlock || missing) {
    const bool counts = request_.mode != ChargeMode::kDryRun;
    if (view.shadow) {
      if (counts) {
        set_.counters[alternative.rule]->Add(&Cell::shadow_denied);
      }
      return true;
    }
    if (counts) {
      set_.counters[alternative.rule]->Add(&Cell::refused);
    }
    Refuse(Outcome::kDenied, missing ? RuleRefusal::kMissing : RuleRefusal::kBlocked, &view);
    return false;
  }
  const std::span<char> room = std::span(reply_.keys_).subspan(reply_.key_bytes_);
  const size_t size =
      rules::BuildKey(rule, alternative.pattern, view_, state_.options.ipv6_prefix_bits, room);
  if (size == 0) {
    Refuse(Outcome::kRefused, RuleRefusal::kKeysTooLong, &view);
    return false;
  }
  const std::string_view key(room.data(), size);
  reply_.key_bytes_ += size;
  uint32_t first_slot = 0;
  const RuleVariant& variant = Choose(rule, key, first_slot);
  const Cost cost = CostOf(rule);
  for (size_t i = 0; i < variant.quotas.size(); ++i) {
    const rules::BoundSlot& slot = set_.slots[first_slot + i];
    RulePart* const part = reply_.parts_ + reply_.size_++;
    new (part) RulePart{.rule = &view,
                        .quota = slot.quota.load(std::memory_order_acquire),
                        .key = key,
                        .decision = Decision(Decision::Blank()),
                        .cost = cost,
                        .shadow = view.shadow,
                        .limiter = slot.limiter,
                        .shared = slot.shared.load(std::memory_order_acquire)};
  }
  return true;
}

Decision RuleCheck::Ask(const RulePart& part, Receipt* receipt) const noexcept {
  if (request_.mode == ChargeMode::kAdmit && receipt == nullptr) [[likely]] {
    return request_.now ? part.limiter->Check(part.key, *request_.now, part.cost)
                        : part.limiter->Check(part.key, part.cost);
  }
  return part.limiter->Check(
      part.key,
      CheckOptions{
          .cost = part.cost, .mode = request_.mode, .now = request_.now, .receipt = receipt});
}

void RuleCheck::Charge(std::span<RulePart> parts) noexcept {
  if (parts.size() > 1 && request_.mode != ChargeMode::kDryRun) {
    ChargeTogether(parts);
    return;
  }
  for (RulePart& part : parts) {
    part.decision =
        Ask(part, request_.keep_receipts ? &reply_.receipts_[&part - parts.data()] : nullptr);
  }
}

void RuleCheck::ChargeTogether(std::span<RulePart> parts) noexcept {
  base::Room<weir::Charge, kMaxCharges> charges;
  base::Room<Decision, kMaxCharges> decisions;
  for (size_t i = 0; i < parts.size(); ++i) {
    new (charges.data() + i) weir::Charge{.limiter = parts[i].limiter,
                                          .key = parts[i].key,
                                          .cost = parts[i].cost,
                                          .mode = request_.mode};
    new (decisions.data() + i) Decision(Decision::Blank());
  }
  CheckAll(
      {charges.data(), parts.size()}, {decisions.data(), parts.size()}, request_.now,
      request_.keep_receipts ? std::span(reply_.receipts_, parts.size()) : std::span<Receipt>());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].decision = decisions.data()[i];
  }
}

void RuleCheck::ChargeShared(std::span<RulePart> parts) noexcept {
  if (parts.empty()) {
    return;
  }
  base::Room<SharedAsk, kMaxCharges> asks;
  for (size_t i = 0; i < parts.size(); ++i) {
    new (asks.data() + i) SharedAsk{.quota = parts[i].shared,
                                    .key = parts[i].key,
                                    .cost = parts[i].cost,
                                    .apart = parts[i].shadow,
                                    .on_failure = parts[i].rule->on_store_failure};
  }
  SharedRequest request{.asks = {asks.data(), parts.size()},
                        .mode = request_.mode,
                        .id = request_.id,
                        .keep_receipts = request_.keep_receipts};
  if (request_.reserve != nullptr) {
    request.lease = request_.reserve->lasts;
    state_.options.shared->Reserve(request, request_.cost.units, request_.reserve->lasts,
                                   request_.reserve->token);
  } else {
    state_.options.shared->Decide(request);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const SharedAsk& ask = asks.data()[i];
    parts[i].decision = ask.decision;
    if (request_.keep_receipts) {
      new (reply_.shared_receipts_ + i) SharedReceipt(ask.receipt);
    }
    if (!ask.apart && !ask.decision.allowed() && ask.trouble != StoreTrouble::kNone) {
      reply_.trouble = ask.trouble;
    }
  }
}

void RuleCheck::Judge(std::span<const RulePart> parts) noexcept {
  const RulePart* leading = nullptr;
  for (const RulePart& part : parts) {
    const Decision& decision = part.decision;
    if (!decision.allowed()) {
      // A refusal can never pass, so it outweighs any wait.
      const bool first = reply_.outcome == Outcome::kAllowed;
      const bool graver =
          decision.outcome == Outcome::kRefused && reply_.outcome == Outcome::kDenied;
      const bool longer = !first && decision.outcome == reply_.outcome &&
                          decision.retry_after > leading->decision.retry_after;
      if (first || graver || longer) {
        leading = &part;
        reply_.outcome = decision.outcome;
        reply_.problem = decision.problem;
      }
      reply_.retry_after = std::max(reply_.retry_after, decision.retry_after);
      continue;
    }
    reply_.start_after = std::max(reply_.start_after, decision.start_after());
    if (reply_.outcome == Outcome::kAllowed && !IsUncounted(decision) &&
        (leading == nullptr || uint64_t{decision.remaining} * leading->decision.limit <
                                   uint64_t{leading->decision.remaining} * decision.limit)) {
      leading = &part;
    }
  }
  if (reply_.outcome != Outcome::kAllowed) {
    reply_.start_after = Duration::zero();
  }
  reply_.deciding_ = leading;
}

// Each rule once, by the worst of its quotas; these follow one another.
void RuleCheck::Count(std::span<const RulePart> parts) noexcept {
  for (size_t i = 0; i < parts.size();) {
    const RuleView* const rule = parts[i].rule;
    RuleCounters& counters =
        *set_.counters[static_cast<size_t>(rule - set_.compiled->views.data())];
    Outcome worst = Outcome::kAllowed;
    const bool shadow = parts[i].shadow;
    for (; i < parts.size() && parts[i].rule == rule; ++i) {
      counters.Add(parts[i].decision);
      worst = std::max(worst, parts[i].decision.outcome);
    }
    if (worst != Outcome::kAllowed) {
      counters.Add(worst == Outcome::kRefused ? &Cell::refused
                   : shadow                   ? &Cell::shadow_denied
                                              : &Cell::denied);
    } else if (shadow || reply_.allowed()) {
      counters.Add(&Cell::allowed);  // not if another rule refused: then this one took nothing
    }
  }
}

void RuleLimiter::Check(const Pin& pin, const RuleRequest& request, RuleReply& reply) noexcept {
  RuleCheck(*state_, *pin.set_, request, reply).Run();
}

RuleVerdict RuleLimiter::Check(std::span<const Attribute> attributes, Cost cost) noexcept {
  RuleReply reply;
  const Pin held = pin();
  Check(held, RuleRequest{.attributes = attributes, .cost = cost}, reply);
  RuleVerdict verdict;
  verdict.outcome = reply.outcome;
  verdict.why = reply.why;
  verdict.retry_after = reply.retry_after;
  const RuleView* speaks = reply.refusing;
  if (const RulePart* const part = reply.deciding()) {
    verdict.decision = part->decision;
    speaks = part->rule;
  }
  if (speaks != nullptr) {
    verdict.name_bytes_ = speaks->name.copy(verdict.name_.data(), verdict.name_.size());
  }
  return verdict;
}

uint32_t RuleLimiter::GiveBack(RuleReply& reply, std::optional<Timestamp> now) noexcept {
  if (reply.has_receipts_ && state_->options.shared != nullptr) {
    reply.has_receipts_ = false;
    return state_->options.shared->GiveBack({reply.shared_receipts_, reply.size_});
  }
  uint32_t most = 0;
  for (size_t i = 0; reply.has_receipts_ && i < reply.size_; ++i) {
    Limiter& limiter = *reply.parts_[i].limiter;
    Receipt& receipt = reply.receipts_[i];
    const uint32_t given = now ? limiter.GiveBack(receipt, *now) : limiter.GiveBack(receipt);
    most = std::max(most, given);
  }
  reply.has_receipts_ = false;
  return most;
}

std::string_view ToString(RuleRefusal why) noexcept {
  switch (why) {
    case RuleRefusal::kNone:
      return "none";
    case RuleRefusal::kBlocked:
      return "blocked";
    case RuleRefusal::kMissing:
      return "missing attribute";
    case RuleRefusal::kAttributeTooLong:
      return "attribute too long";
    case RuleRefusal::kTooManyAttributes:
      return "too many attributes";
    case RuleRefusal::kKeysTooLong:
      return "keys too long";
    case RuleRefusal::kBadMode:
      return "mode not allowed";
  }
  return "unknown";
}

}  // namespace weir
