#include "testing/shared_model.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/gcra_queue.h"
#include "algorithm/min_gap.h"
#include "algorithm/sliced_window.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"
#include "store/memory/answer.h"
#include "testing/oracle.h"

namespace weir::testing {

namespace {

using algorithm::Plan;
using script::Ask;
using script::Digest;
using script::Mark;
using script::SharedPlan;
using script::SharedTicks;

constexpr int64_t kUsNs = 1000;

store::Request RequestOf(const Ask& ask) {
  return {.cost = ask.cost,
          .mode = ask.mode,
          .max_wait_ns = ask.max_wait_ns,
          .lease_ns = ask.lease_us * kUsNs};
}

uint64_t Ns(int64_t us) {
  return static_cast<uint64_t>(us) * kUsNs;
}

// Buckets, queues, gaps: an instant.
template <class Algo>
class BucketModel final : public SharedModel {
 public:
  explicit BucketModel(const Plan& law) : law_(law) {}
  void Note(const Mark&) override {}

  Decision Charge(int64_t now_us, const Ask& ask) override {
    Decision decision;
    auto state = Load(now_us);
    const auto now = Algo::At(law_, {.ns = Ns(now_us)});
    if (store::Answer<Algo>::Apply(law_, state, now, RequestOf(ask), decision)) {
      Store(now_us, state.debt);
    }
    return decision;
  }

  uint32_t GiveBack(int64_t now_us, const Mark& mark) override {
    const int64_t at_us = at_us_;
    const uint64_t debt = debt_;
    const uint64_t moved_us = moved_us_;
    auto state = Load(now_us);
    const auto now = Algo::At(law_, {.ns = Ns(now_us)});
    // Ticks wrap, so a mark of long ago is read as the present, when nothing is owed either.
    const bool past = mark.words[0] < static_cast<uint64_t>(now_us);
    const uint64_t reach = past ? now.tick : mark.words[0] * law_.subdivision + mark.words[1];
    const uint64_t moved = found_us_ > mark.words[2] ? found_us_ - mark.words[2] : 0;
    const algorithm::Refund refund =
        Algo::GiveBack(law_, state, now, reach, mark.charged, Ns(static_cast<int64_t>(moved)));
    if (refund.changed) {
      // A gap without its last request is a key never seen, whatever the clock does next.
      Store(Algo::kCountsUnits ? now_us : 0, state.debt);
      moved_us_ += refund.moved_ns / kUsNs;
    } else {  // nothing is written
      at_us_ = at_us;
      debt_ = debt;
      moved_us_ = moved_us;
    }
    return refund.units;
  }

 private:
  typename Algo::State Load(int64_t now_us) {
    const Int128 passed = static_cast<Int128>(now_us - at_us_) * law_.subdivision;
    const Int128 debt = std::max<Int128>(static_cast<Int128>(debt_) - passed, 0);
    const int64_t free_us = at_us_ + static_cast<int64_t>(debt_ / law_.subdivision);
    found_us_ = free_us < now_us ? 0 : moved_us_;
    if (debt > static_cast<Int128>(law_.debt_max)) {
      found_us_ = 0;
      Store(now_us, law_.debt_max);
      return {law_.debt_max};
    }
    return {static_cast<uint64_t>(debt)};
  }
  void Store(int64_t now_us, uint64_t debt) {
    at_us_ = now_us;
    debt_ = debt;
    moved_us_ = found_us_;
  }

  const Plan& law_;
  int64_t at_us_ = 0;
  uint64_t debt_ = 0;
  uint64_t moved_us_ = 0;  // by which give-backs have pulled it forward, since it was fresh
  uint64_t found_us_ = 0;  // the same as of the last Load
};

// Windows of every start: where the current one ends, and its count.
class WindowModel final : public SharedModel {
 public:
  WindowModel(const SharedPlan& plan, const Digest& key) : plan_(plan), key_(key) {}
  void Note(const Mark&) override {}

  Decision Charge(int64_t now_us, const Ask& ask) override {
    const int64_t end = EndAt(now_us);
    const auto window = static_cast<int64_t>(plan_.law().window_ns) / kUsNs;
    const bool fresh = count_ == 0 || end_us_ <= now_us;
    if (!fresh && end_us_ > end + window) {
      end_us_ = end;
    }
    const int64_t until = fresh ? end : end_us_;
    const auto left_ns = static_cast<uint64_t>(until - now_us) * kUsNs;
    algorithm::FixedWindow::State state{0, fresh ? 0 : count_, left_ns};
    Decision decision;
    if (store::Answer<algorithm::FixedWindow>::Apply(plan_.law(), state, {0, left_ns},
                                                     RequestOf(ask), decision)) {
      count_ = state.count;
      end_us_ = until;
    }
    return decision;
  }

  uint32_t GiveBack(int64_t now_us, const Mark& mark) override {
    const bool open = now_us < end_us_ && mark.words[0] == static_cast<uint64_t>(end_us_);
    return open ? algorithm::WindowCount::GiveBack(count_, mark.charged).units : 0;
  }

 private:
  [[nodiscard]] int64_t EndAt(int64_t now_us) const {
    const Plan& law = plan_.law();
    const auto window = static_cast<int64_t>(law.window_ns) / kUsNs;
    if (law.algorithm == Algorithm::kCalendar) {
      return plan_.PeriodAt(now_us).end_ns / kUsNs;
    }
    if (law.start == WindowStart::kFirstHit) {
      return now_us + window;
    }
    const bool per_key = law.start == WindowStart::kPerKey;
    const auto shift =
        per_key ? static_cast<int64_t>(key_[0] % static_cast<uint64_t>(window)) : int64_t{0};
    return ((now_us + shift) / window + 1) * window - shift;
  }

  const SharedPlan& plan_;
  const Digest key_;
  int64_t end_us_ = 0;
  uint64_t count_ = 0;
};

class SlidingModel final : public SharedModel {
 public:
  explicit SlidingModel(const Plan& law) : law_(law) {}
  void Note(const Mark&) override {}

  Decision Charge(int64_t now_us, const Ask& ask) override {
    using algorithm::SlidingWindow;
    const int64_t window = Window();
    const int64_t end = (now_us / window + 1) * window;
    if (end_us_ > end + window) {
      end_us_ = end;
    }
    const int64_t ahead = end_us_ - end;
    const uint64_t previous = ahead >= 0 ? previous_ : ahead == -window ? current_ : 0;
    const uint64_t current = ahead >= 0 ? current_ : 0;
    const int64_t until = std::max(end, end_us_);
    const auto left_ns = static_cast<uint64_t>(until - now_us) * kUsNs;
    const uint64_t weighted = ahead > 0 ? previous : SlidingWindow::Weigh(law_, previous, left_ns);
    SlidingWindow::State state{0, previous, current, left_ns, weighted};
    Decision decision;
    if (store::Answer<SlidingWindow>::Apply(law_, state, {0, left_ns}, RequestOf(ask), decision)) {
      end_us_ = until;
      previous_ = previous;
      current_ = state.current;
    }
    return decision;
  }

  uint32_t GiveBack(int64_t now_us, const Mark& mark) override {
    const bool open = now_us < end_us_ && mark.words[0] == static_cast<uint64_t>(end_us_);
    return open ? algorithm::WindowCount::GiveBack(current_, mark.charged).units : 0;
  }

 private:
  [[nodiscard]] int64_t Window() const { return static_cast<int64_t>(law_.window_ns) / kUsNs; }

  const Plan& law_;
  int64_t end_us_ = 0;
  uint64_t previous_ = 0;
  uint64_t current_ = 0;
};

// Those that live in records: the same bodies as in memory.
template <class Algo>
class RecordModel final : public SharedModel {
 public:
  explicit RecordModel(const Plan& law) : law_(law) {}

  Decision Charge(int64_t now_us, const Ask& ask) override {
    Cut(now_us);
    const store::Request request = RequestOf(ask);
    auto now = Algo::At(law_, {.ns = Ns(now_us)});
    if constexpr (Algo::kNumbersPlaces) {
      now.lease_ns = request.lease_ns != 0 ? request.lease_ns : now.lease_ns;
    }
    auto state = Algo::Load(law_, body_, now);
    Decision decision;
    if (store::Answer<Algo>::Apply(law_, state, now, request, decision)) {
      std::vector<uint64_t> body(std::max<size_t>(Algo::BodyWords(law_, state), body_.size()));
      if (body.size() == body_.size()) {
        Algo::Store(law_, body_, state);
      } else {
        Algo::Store(law_, body, state);
        body_ = std::move(body);
      }
      if constexpr (Algo::kNumbersPlaces) {
        last_place_ = state.place;
        last_fence_ = state.fence;
      }
    }
    return decision;
  }

  uint32_t GiveBack(int64_t now_us, const Mark& mark) override {
    if (body_.empty()) {
      return 0;
    }
    const std::vector<uint64_t> body = body_;
    const uint64_t shift_us = shift_us_;
    Cut(now_us);
    const uint32_t units = TakeOut(now_us, mark);
    if (units == 0) {  // nothing is written
      body_ = body;
      shift_us_ = shift_us;
    }
    return units;
  }

  // Which of its own holds a mark of the store stands for.
  void Note(const Mark& mark) override {
    if constexpr (Algo::kNumbersPlaces) {
      places_[mark.words[0]] = {last_fence_, last_place_};
    }
  }

  [[nodiscard]] bool knows_reset() const override {
    return !Algo::kNumbersPlaces || body_.size() <= algorithm::Concurrency::WordsFor(4);
  }

 private:
  uint32_t TakeOut(int64_t now_us, const Mark& mark) {
    const auto now = Algo::At(law_, {.ns = Ns(now_us)});
    if constexpr (Algo::kNumbersPlaces) {
      const auto [fence, place] = places_[mark.words[0]];
      return Algo::End(body_, now, fence, place).units;
    } else {
      const bool stamps = std::is_same_v<Algo, algorithm::SlidingLog>;
      const uint64_t at = stamps ? (mark.words[0] - shift_us_) * kUsNs : mark.words[0];
      return Algo::GiveBack(law_, body_, now, at, mark.charged).units;
    }
  }

  // A clock that was set back by more than a window: everything moves along with it.
  void Cut(int64_t now_us) {
    if (body_.empty()) {
      return;
    }
    if constexpr (std::is_same_v<Algo, algorithm::SlidingLog>) {
      const uint64_t capacity = body_.size() - 1;
      const uint64_t head = body_[0] & base::LowBits(20);
      const uint64_t count = body_[0] >> 20 & base::LowBits(20);
      if (count == 0) {
        return;
      }
      const uint64_t newest = body_[1 + (head + count - 1) % capacity];
      if (newest > Ns(now_us) + law_.window_ns) {
        for (uint64_t i = 0; i < count; ++i) {
          body_[1 + (head + i) % capacity] -= newest - Ns(now_us);
        }
        shift_us_ += newest / kUsNs - static_cast<uint64_t>(now_us);
      }
    } else if constexpr (std::is_same_v<Algo, algorithm::SlicedWindow>) {
      const uint64_t slice = Ns(now_us) / law_.slice_ns;
      if (body_[0] * law_.slice_ns > Ns(now_us) + law_.window_ns) {
        std::vector<uint64_t> moved(body_.size());
        const uint64_t ring = body_.size() - 1;
        moved[0] = slice;
        for (uint64_t i = 0; i < ring; ++i) {
          moved[1 + (slice - i) % ring] = body_[1 + (body_[0] - i) % ring];
        }
        body_ = std::move(moved);
      }
    }
  }

  const Plan& law_;
  std::vector<uint64_t> body_;
  uint64_t shift_us_ = 0;
  uint64_t last_fence_ = 0;
  uint64_t last_place_ = 0;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> places_;
};

}  // namespace

std::unique_ptr<SharedModel> MakeSharedModel(const SharedPlan& plan, const Digest& key) {
  const Plan& law = plan.law();
  switch (plan.script()) {
    case script::Id::kBucket:
      if (plan.is_queue()) {
        return std::make_unique<BucketModel<algorithm::GcraQueue<SharedTicks>>>(law);
      }
      return std::make_unique<BucketModel<algorithm::Gcra<SharedTicks>>>(law);
    case script::Id::kGap:
      return std::make_unique<BucketModel<algorithm::MinGap<SharedTicks>>>(law);
    case script::Id::kWindow:
      return std::make_unique<WindowModel>(plan, key);
    case script::Id::kSliding:
      return std::make_unique<SlidingModel>(law);
    case script::Id::kSliced:
      return std::make_unique<RecordModel<algorithm::SlicedWindow>>(law);
    case script::Id::kLog:
      return std::make_unique<RecordModel<algorithm::SlidingLog>>(law);
    default:
      return std::make_unique<RecordModel<algorithm::Concurrency>>(law);
  }
}

}  // namespace weir::testing
