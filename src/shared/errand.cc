#include "shared/errand.h"

#include <charconv>
#include <utility>
#include <vector>

namespace weir::shared {

void ReadIntegers(const codec::resp::Reply& reply, std::vector<int64_t>& integers) {
  integers.clear();
  if (reply.type == codec::resp::ReplyType::kInteger) {
    integers.push_back(reply.integer);
    return;
  }
  if (reply.type != codec::resp::ReplyType::kArray) {
    return;
  }
  for (const codec::resp::Reply& element : reply.elements()) {
    int64_t value = element.integer;
    if (element.type != codec::resp::ReplyType::kInteger) {
      const char* const end = element.text.data() + element.text.size();
      const auto [at, error] = std::from_chars(element.text.data(), end, value);
      if (element.text.empty() || error != std::errc{} || at != end) {
        integers.clear();
        return;
      }
    }
    integers.push_back(value);
  }
}

void Errand::Refund(const script::Paid& paid) {
  quota_ = nullptr;
  give_back_.Encode({&paid, 1});
  lane_.client().Submit(*this, {.script = &ScriptOf(give_back_.script()),
                                .keys = give_back_.keys(),
                                .arguments = give_back_.arguments()});
}

void Errand::Repay(const FleetQuota& quota, const script::Digest& key, uint32_t units) {
  quota_ = &quota;
  key_ = key;
  units_ = units;
  again_ = false;
  Count();
}

void Errand::Count() {
  const script::Ask ask{
      .plan = &quota_->plan, .key = key_, .cost = units_, .mode = ChargeMode::kCountAlways};
  asked_ns_ = lane_.common.NowNs();
  charge_.Encode({&ask, 1}, {.around_us = lane_.common.WallUs()});
  lane_.client().Submit(*this, {.script = &ScriptOf(charge_.script()),
                                .keys = charge_.keys(),
                                .arguments = charge_.arguments()});
}

void Errand::OnReply(const codec::resp::Reply& reply) noexcept {
  LaneCounters& counters = lane_.counters();
  if (quota_ == nullptr) {
    LaneCounters::Add(counters.refunds);
    lane_.Recycle(*this);
    return;
  }
  std::vector<int64_t> integers;
  ReadIntegers(reply, integers);
  Decision decision;
  switch (charge_.Decode(integers, {&decision, 1})) {
    case script::Reading::kAgain:
      if (!std::exchange(again_, true)) {
        Count();
        return;
      }
      [[fallthrough]];
    case script::Reading::kBad:
      LaneCounters::Add(counters.repaid_lost, units_);
      break;
    case script::Reading::kDone:
      LaneCounters::Add(counters.repaid_units, units_);
      lane_.common.book.NoteReply({key_[0], key_[1]}, quota_->book, decision, units_, asked_ns_,
                                  KeyBook::Denial::kForget);
      break;
  }
  lane_.Recycle(*this);
}

void Errand::OnFailure(const redis::Failure& failure) noexcept {
  LaneCounters& counters = lane_.counters();
  LaneCounters::Add(counters.troubles[static_cast<size_t>(TroubleOf(failure))]);
  if (quota_ == nullptr) {
    LaneCounters::Add(counters.refunds_lost);
  } else if (failure.may_have_run) {
    LaneCounters::Add(counters.repaid_lost, units_);  // told twice would be worse
  } else {
    lane_.common.book.PutOwedBack({key_[0], key_[1]}, quota_->book, units_, lane_.common.NowNs());
  }
  lane_.Recycle(*this);
}

}  // namespace weir::shared
