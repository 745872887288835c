#include "shared/one_call.h"

#include <utility>

#include "shared/errand.h"

namespace weir::shared {

OneCall::OneCall(const script::SmallCall& call)
    : script_(&ScriptOf(call.script)),
      keys_{std::string(call.key.view())},
      arguments_(call.texts.begin(), call.texts.begin() + static_cast<ptrdiff_t>(call.count)) {}

OneCall::OneCall(script::Id script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> arguments)
    : script_(&ScriptOf(script)),
      keys_(keys.begin(), keys.end()),
      arguments_(arguments.begin(), arguments.end()) {}

OneCall::OneCall(std::string_view key, std::vector<std::string> command)
    : keys_{std::string(key)}, arguments_(std::move(command)) {}

void OneCall::Submit(Lane& lane, Completion& completion) {
  lane_ = &lane;
  completion_ = &completion;
  completion.Add();
  const std::vector<std::string_view> keys(keys_.begin(), keys_.end());
  const std::vector<std::string_view> arguments(arguments_.begin(), arguments_.end());
  lane.client().Submit(*this, {.script = script_, .keys = keys, .arguments = arguments});
}

void OneCall::OnReply(const codec::resp::Reply& reply) noexcept {
  ReadIntegers(reply, integers);
  text = reply.text;
  completion_->Done();
}

void OneCall::OnFailure(const redis::Failure& failure) noexcept {
  trouble = TroubleOf(failure);
  may_have_run = failure.may_have_run;
  LaneCounters::Add(lane_->counters().troubles[static_cast<size_t>(trouble)]);
  completion_->Done();
}

}  // namespace weir::shared
