// One decision by a rule set: what the request is asked for, all or nothing, and what that means.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weir/rules.h"

#include "rules/bound_set.h"
#include "rules/matcher.h"
#include "rules/request_view.h"
#include "rules/rule_limiter_state.h"

namespace weir {

class RuleCheck {
 public:
  RuleCheck(RuleLimiter::State& state, rules::BoundSet& set, const RuleRequest& request,
            RuleReply& reply) noexcept;

  void Run() noexcept;

 private:
  void Refuse(Outcome outcome, RuleRefusal why, const RuleView* rule) noexcept;
  [[nodiscard]] bool Settled() noexcept;
  // False: the request is refused.
  [[nodiscard]] bool Gather(uint32_t rank) noexcept;
  [[nodiscard]] const RuleVariant& Choose(const rules::CompiledRule& rule, std::string_view key,
                                          uint32_t& first_slot) const noexcept;
  [[nodiscard]] Cost CostOf(const rules::CompiledRule& rule) const noexcept;
  void Charge(std::span<RulePart> parts) noexcept;
  void ChargeTogether(std::span<RulePart> parts) noexcept;
  // All of them, those in shadow apart, with one question to the shared store.
  void ChargeShared(std::span<RulePart> parts) noexcept;
  [[nodiscard]] Decision Ask(const RulePart& part, Receipt* receipt) const noexcept;
  void Judge(std::span<const RulePart> parts) noexcept;
  void Count(std::span<const RulePart> parts) noexcept;

  RuleLimiter::State& state_;
  rules::BoundSet& set_;
  const RuleRequest& request_;
  RuleReply& reply_;
  rules::RequestView view_;
  WallTime wall_{};
};

}  // namespace weir
