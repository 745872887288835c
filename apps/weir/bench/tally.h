// What came of the requests. Latency runs from the moment a request should have left, so that a
// server which stops answering for a while is charged for all that waited meanwhile, and not only
// for the one request that happened to be under way (coordinated omission).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "weir/time.h"

#include "apps/weir/bench/answer.h"
#include "base/histogram.h"

namespace weir::bench {

class Tally {
 public:
  // A request that left later than this after its time is a late send: the generator, or a server
  // that leaves no connection free, did not keep the schedule.
  static constexpr Duration kLate = std::chrono::milliseconds(1);

  // What should have left before `counted_from` is warm-up and counts nowhere.
  explicit Tally(Timestamp counted_from)
      : counted_from_(counted_from), last_answer_(counted_from) {}

  void Sent(Timestamp due, Timestamp now) noexcept {
    if (due < counted_from_) {
      return;
    }
    ++sent_;
    const Duration lateness = now - due;
    lateness_.Record(static_cast<uint64_t>(lateness.count()));
    late_ += lateness > kLate ? 1 : 0;
  }

  void Answered(Timestamp due, Timestamp now, Answer answer) noexcept {
    if (due < counted_from_) {
      return;
    }
    ++answers_[static_cast<size_t>(answer)];
    latency_.Record(static_cast<uint64_t>((now - due).count()));
    last_answer_ = now;
  }

  // Requests that found no connection with room to the end.
  void Unsent(uint64_t count) noexcept { unsent_ = count; }

  // The words of an answer that was an error; the first stand for all.
  void Explain(std::string words) { error_ = std::move(words); }

  [[nodiscard]] uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] uint64_t unsent() const noexcept { return unsent_; }
  [[nodiscard]] uint64_t late() const noexcept { return late_; }
  [[nodiscard]] uint64_t count(Answer answer) const noexcept {
    return answers_[static_cast<size_t>(answer)];
  }
  [[nodiscard]] uint64_t answers() const noexcept { return latency_.count(); }
  [[nodiscard]] uint64_t unanswered() const noexcept { return sent_ - answers(); }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  // From the first moment that counts to the last answer.
  [[nodiscard]] Duration elapsed() const noexcept { return last_answer_ - counted_from_; }
  [[nodiscard]] double answers_per_second() const noexcept {
    const double seconds = std::chrono::duration<double>(elapsed()).count();
    return seconds > 0 ? static_cast<double>(answers()) / seconds : 0;
  }
  [[nodiscard]] const base::Histogram& latency() const noexcept { return latency_; }
  [[nodiscard]] const base::Histogram& lateness() const noexcept { return lateness_; }

 private:
  Timestamp counted_from_;
  Timestamp last_answer_;
  uint64_t sent_ = 0;
  uint64_t unsent_ = 0;
  uint64_t late_ = 0;
  std::array<uint64_t, 3> answers_{};  // by Answer
  std::string error_;
  base::Histogram latency_;
  base::Histogram lateness_;
};

}  // namespace weir::bench
