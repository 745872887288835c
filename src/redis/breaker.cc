#include "redis/breaker.h"

namespace weir::redis {

namespace {

// Who has been well for this long is looked at sooner again. Not less than the longer pause: then
// every opening has ten seconds of its own, either of being well before it or of being left alone
// after it, and of any three the last is at least so much later than the first.
constexpr Duration kForgiven = std::chrono::seconds(10);
// Pauses grow by up to a fifth, so that the nodes of a fleet do not all come back at once.
constexpr double kJitter = 0.2;
// To see a node again once the pause is over: to connect, to probe.
constexpr Duration kFindAgain = std::chrono::milliseconds(500);

}  // namespace

bool Breaker::OnFailure(Timestamp now, Cause cause, double chance) noexcept {
  if (state_ != BreakerState::kClosed) {
    return false;  // calls from before it opened
  }
  Turn(now);
  row_since_ = row_ == 0 ? now : row_since_;
  ++row_;
  for (Tally* const tally : {&slices_[slice_], &sum_}) {
    ++tally->calls;
    ++tally->failures;
  }
  half_since_ = half_ ? half_since_ : now;
  half_ = HalfFails();
  const Duration lasted = cause == Cause::kSilence ? options_.silence_min : Duration(0);
  const bool in_a_row = row_ >= options_.consecutive_failures && now - row_since_ >= lasted;
  const bool half = half_ && now - half_since_ >= lasted;
  if (!in_a_row && !half) {
    return false;
  }
  const bool forgiven = !opened_before_ || now - closed_at_ >= kForgiven;
  ++transitions_;
  opened_before_ = true;
  Open(now, forgiven && cause == Cause::kAway ? options_.open_after_disconnect : options_.open,
       chance);
  listens_ = forgiven && cause == Cause::kSilence;
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
  if (now < probe_at_) {
    settle_ = kFindAgain;  // it was heard, and by the others at the same moment
  }
  state_ = BreakerState::kClosed;
  closed_at_ = now;
  row_ = 0;
  Forget();
  ++transitions_;
  return true;
}

void Breaker::TurnTo(Timestamp now) noexcept {
  if (now - slice_start_ >= kSlice * static_cast<int64_t>(2 * slices_.size())) {
    Forget();
    slice_start_ = now;
    return;
  }
  while (now - slice_start_ >= kSlice) {
    slice_start_ += kSlice;
    slice_ = (slice_ + 1) % slices_.size();
    sum_.calls -= slices_[slice_].calls;
    sum_.failures -= slices_[slice_].failures;
    slices_[slice_] = {};
  }
}

void Breaker::Forget() noexcept {
  sum_ = {};
  slices_ = {};
  half_ = false;
}

void Breaker::Open(Timestamp now, Duration hold, double chance) noexcept {
  state_ = BreakerState::kOpen;
  listens_ = false;
  const double factor = 1.0 + kJitter * chance;
  settle_ =
      kFindAgain + Duration(static_cast<int64_t>(static_cast<double>(hold.count()) * kJitter));
  probe_at_ = now + Duration(static_cast<int64_t>(static_cast<double>(hold.count()) * factor));
}

}  // namespace weir::redis
