#include "redis/breaker.h"

namespace weir::redis {

namespace {

// Who has been well for this long gets the shorter pause again.
constexpr Duration kForgiven = std::chrono::seconds(30);
// Pauses grow by up to a fifth, so that the nodes of a fleet do not all come back at once.
constexpr double kJitter = 0.2;
// To see a node again once the pause is over: to connect, to probe.
constexpr Duration kFindAgain = std::chrono::milliseconds(500);

}  // namespace

bool Breaker::OnFailure(Timestamp now, Cause cause, double chance) noexcept {
  if (state_ != BreakerState::kClosed) {
    return false;  // calls from before it opened
  }
  Count(now);
  ++failures_;
  ++consecutive_;
  if (consecutive_ < options_.consecutive_failures &&
      (calls_ < options_.calls_min || 2 * failures_ < calls_)) {
    return false;
  }
  const bool lenient = cause == Cause::kAway && (!opened_before_ || now - closed_at_ >= kForgiven);
  ++transitions_;
  opened_before_ = true;
  Open(now, lenient ? options_.open_after_disconnect : options_.open, chance);
  return true;
}

bool Breaker::OnProbe(Timestamp now, bool good, double chance) noexcept {
  if (!good) {
    Open(now, options_.open, chance);
    return false;
  }
  if (++successes_ < options_.successes_to_close) {
    return false;
  }
  state_ = BreakerState::kClosed;
  closed_at_ = now;
  window_start_ = now;
  consecutive_ = calls_ = failures_ = 0;
  ++transitions_;
  return true;
}

void Breaker::Open(Timestamp now, Duration hold, double chance) noexcept {
  state_ = BreakerState::kOpen;
  const double factor = 1.0 + kJitter * chance;
  settle_ =
      kFindAgain + Duration(static_cast<int64_t>(static_cast<double>(hold.count()) * kJitter));
  probe_at_ = now + Duration(static_cast<int64_t>(static_cast<double>(hold.count()) * factor));
}

}  // namespace weir::redis
