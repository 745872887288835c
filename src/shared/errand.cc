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
  kind_ = Kind::kRefund;
  give_back_.Encode({&paid, 1});
  SubmitGiveBack();
}

void Errand::SubmitGiveBack() {
  lane_.client().Submit(*this, {.script = &ScriptOf(give_back_.script()),
                                .keys = give_back_.keys(),
                                .arguments = give_back_.arguments()});
}

void Errand::Repay(const FleetQuota& quota, const script::Digest& key, uint32_t units) {
  kind_ = Kind::kRepay;
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

void Errand::MakeSure(std::span<const script::Ask> asks, const script::Digest& id,
                      const script::Claim& claim, Admitted admitted) {
  kind_ = Kind::kSure;
  asks_.assign(asks.begin(), asks.end());
  id_ = id;
  claim_ = admitted == Admitted::kYes ? script::Claim() : claim;
  admitted_ = admitted;
  again_ = false;
  asked_ns_ = lane_.common.NowNs();
  TryAgain();
}

void Errand::Undo(std::span<const script::Paid> paid, const script::GiveBackCall::Record& record,
                  const script::Claim& claim) {
  kind_ = Kind::kUndo;
  asked_ns_ = lane_.common.NowNs();
  give_back_.EncodeUndo(paid, record, claim);
  SubmitGiveBack();
}

void Errand::TryAgain() {
  if (kind_ == Kind::kUndo) {
    SubmitGiveBack();
    return;
  }
  charge_.Encode(asks_, {.id = &id_,
                         .id_memory_ms = lane_.common.id_memory_ms,
                         .claim = claim_,
                         .tells_nobody = true,
                         .around_us = again_ ? 0 : lane_.common.WallUs()});
  lane_.client().Submit(*this, {.script = &ScriptOf(charge_.script()),
                                .keys = charge_.keys(),
                                .arguments = charge_.arguments()});
}

void Errand::OnSure() {
  std::vector<Decision> decisions(asks_.size());
  std::vector<script::Mark> marks(asks_.size());
  const script::Reading reading = charge_.Decode(integers_, decisions, marks);
  if (reading == script::Reading::kAgain && !std::exchange(again_, true)) {
    TryAgain();
    return;
  }
  std::vector<script::Paid> paid;
  for (size_t i = 0; i < asks_.size() && reading == script::Reading::kDone; ++i) {
    if (admitted_ == Admitted::kNo && !asks_[i].apart && marks[i].charged != 0) {
      paid.push_back({.plan = asks_[i].plan, .key = asks_[i].key, .mark = marks[i]});
    }
  }
  if (paid.empty()) {
    lane_.Recycle(*this);
    return;
  }
  Undo(paid, {.key = asks_.front().key, .id = id_}, claim_);
}

void Errand::OnReply(const codec::resp::Reply& reply) noexcept {
  LaneCounters& counters = lane_.counters();
  if (kind_ == Kind::kRefund || kind_ == Kind::kUndo) {
    LaneCounters::Add(counters.refunds);
    lane_.Recycle(*this);
    return;
  }
  ReadIntegers(reply, integers_);
  if (kind_ == Kind::kSure) {
    OnSure();
    return;
  }
  Decision decision;
  switch (charge_.Decode(integers_, {&decision, 1})) {
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
      lane_.common.book.NoteReply(
          {key_[0], key_[1]}, quota_->book, decision, units_, asked_ns_, KeyBook::Denial::kForget,
          lane_.IsSettling(key_) ? KeyBook::Word::kSettling : KeyBook::Word::kFinal);
      break;
  }
  lane_.Recycle(*this);
}

std::string_view Errand::key() const noexcept {
  return kind_ == Kind::kUndo ? give_back_.keys().front() : charge_.keys().front();
}

bool Errand::expired() const noexcept {
  return lane_.common.NowNs() - asked_ns_ >=
         static_cast<int64_t>(lane_.common.id_memory_ms) * 1'000'000;
}

bool Errand::MayTryAgain(const redis::Failure& failure) const {
  return (kind_ == Kind::kSure || kind_ == Kind::kUndo) &&
         failure.kind != redis::FailureKind::kStopped && !expired();
}

void Errand::GiveUp() {
  LaneCounters& counters = lane_.counters();
  // Of a charge to be made sure of nobody can tell any more what became of it.
  LaneCounters::Add(kind_ == Kind::kSure ? counters.unsure : counters.refunds_lost);
  lane_.Recycle(*this);
}

void Errand::OnFailure(const redis::Failure& failure) noexcept {
  LaneCounters& counters = lane_.counters();
  LaneCounters::Add(counters.troubles[static_cast<size_t>(TroubleOf(failure))]);
  if (MayTryAgain(failure)) {
    lane_.Later(*this);
    return;
  }
  if (kind_ != Kind::kRepay) {
    GiveUp();
    return;
  }
  if (failure.may_have_run) {
    LaneCounters::Add(counters.repaid_lost, units_);  // told twice would be worse
  } else {
    lane_.common.book.PutOwedBack({key_[0], key_[1]}, quota_->book, units_, lane_.common.NowNs());
  }
  lane_.Recycle(*this);
}

}  // namespace weir::shared
