#include "server/http_context.h"

#include <chrono>

#include "base/wide_math.h"

namespace weir::server {

HttpContext::Instant HttpContext::Now() {
  const Timestamp now = service.Now();
  // The wall clock is followed a thousand times a second, and in between by the other clock.
  constexpr Duration kFollowed = std::chrono::milliseconds(1);
  if (now < followed_at_ || now - followed_at_ >= kFollowed) {
    followed_at_ = now;
    followed_wall_ = service.WallNow();
  }
  const WallTime wall = followed_wall_ + (now - followed_at_);
  const auto second = std::chrono::floor<std::chrono::seconds>(wall);
  if (second != date_second_) {
    date_second_ = second;
    codec::http::FormatDate(wall, date_);
  }
  return {now, wall, {date_.data(), date_.size()}};
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
