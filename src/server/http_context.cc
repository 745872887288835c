#include "server/http_context.h"

#include <chrono>

#include "base/wide_math.h"

namespace weir::server {

HttpContext::Instant HttpContext::Now() {
  const WallTime wall = service.WallNow();
  const auto second = std::chrono::floor<std::chrono::seconds>(wall);
  if (second != date_second_) {
    date_second_ = second;
    codec::http::FormatDate(wall, date_);
  }
  return {service.Now(), wall, {date_.data(), date_.size()}};
}

const std::shared_ptr<codec::http::AnswerWriter>& HttpContext::AnswersFor(
    const RuleLimiter::Pin& pin) {
  const RuleSet& held = pin.rules();
  if (answered_for_.get() != &held) [[unlikely]] {
    answered_for_ = pin.share();
    answers_ = std::make_shared<codec::http::AnswerWriter>(options.answers, held.rules());
  }
  return answers_;
}

Duration HttpContext::Jitter(Duration retry_after) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const auto most = static_cast<uint64_t>(retry_after.count()) / 10;
  return Duration(static_cast<int64_t>(base::MulHigh(random_, most)));
}

}  // namespace weir::server
