// A call whose answer somebody waits for, with texts of its own. For what is asked seldom.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/shared_store.h"

#include "redis/call.h"
#include "shared/completion.h"
#include "shared/lane.h"
#include "store/redis/other_calls.h"

namespace weir::shared {

class OneCall final : public redis::Call {
 public:
  explicit OneCall(const script::SmallCall& call);
  OneCall(script::Id script, std::span<const std::string_view> keys,
          std::span<const std::string_view> arguments);
  // A plain command about this key.
  OneCall(std::string_view key, std::vector<std::string> command);

  void Submit(Lane& lane, Completion& completion);

  // Afterwards. Other than kNone: there is no answer.
  StoreTrouble trouble = StoreTrouble::kNone;
  bool may_have_run = false;  // although there is no answer
  std::vector<int64_t> integers;
  std::string text;

  void OnReply(const codec::resp::Reply& reply) noexcept override;
  void OnFailure(const redis::Failure& failure) noexcept override;

 private:
  const redis::Script* script_ = nullptr;
  std::vector<std::string> keys_;
  std::vector<std::string> arguments_;
  Lane* lane_ = nullptr;
  Completion* completion_ = nullptr;
};

}  // namespace weir::shared
