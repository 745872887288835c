#include "shared/deciding.h"

#include <algorithm>
#include <utility>

#include "shared/errand.h"

namespace weir::shared {

namespace {

Decision Refusal(Problem problem, const Quota& quota) noexcept {
  Decision decision;
  decision.outcome = Outcome::kRefused;
  decision.problem = problem;
  decision.limit = quota.burst();
  return decision;
}

bool HasUnits(const Quota& quota) noexcept {
  return quota.algorithm() != Algorithm::kMinGap;
}

}  // namespace

Problem ProblemOf(const SharedAsk& ask, const Quota& quota) noexcept {
  if (ask.key.empty()) {
    return Problem::kKeyEmpty;
  }
  if (ask.key.size() > kMaxKeyBytes) {
    return Problem::kKeyTooLong;
  }
  if (ask.cost.units > Cost::kMax) {
    return Problem::kCostTooLarge;
  }
  if (HasUnits(quota) && ask.cost.units > quota.burst()) {
    return Problem::kCostAboveBurst;
  }
  if (ask.max_wait < Duration::zero()) {
    return Problem::kMaxWaitTooShort;
  }
  return Problem::kNone;
}

Deciding::~Deciding() = default;

void Deciding::Start(SharedRequest& request, Completion& completion,
                     std::unique_ptr<Deciding> self) {
  self_ = std::move(self);
  request_ = &request;
  completion_ = &completion;
  completion.Add();
  groups_used_ = 0;
  open_ = 0;
  now_ns_ = lane_.common.NowNs();
  Prepare();
  SettleRepeated();
  SettleKnown();
  if (std::none_of(parts_.begin(), parts_.end(),
                   [](const Part& part) { return part.fate == Fate::kOpen; })) {
    Finish();
    return;
  }
  Send(MustCheckFirst() ? Phase::kChecking : Phase::kCharging);
}

void Deciding::Prepare() {
  parts_.clear();
  if (!request_->id.empty()) {
    id_ = lane_.common.secret.OfName(request_->id);
    claim_ = lane_.NewClaim();
  }
  for (SharedAsk& ask : request_->asks) {
    Part& part = parts_.emplace_back();
    part.ask = &ask;
    part.quota = static_cast<const FleetQuota*>(ask.quota);
    ask.trouble = StoreTrouble::kNone;
    ask.receipt = {};
    const Problem problem = ProblemOf(ask, part.quota->quota);
    const bool counts = request_->mode == ChargeMode::kCountAlways;
    if (problem != Problem::kNone && !(counts && problem == Problem::kCostAboveBurst)) {
      ask.decision = Refusal(problem, part.quota->quota);
      part.fate = Fate::kSettled;
      continue;
    }
    part.digest = lane_.common.secret.Of(part.quota->scope, part.quota->plan.kind(), ask.key);
    if (lane_.open() && lane_.client().is_divided()) {
      part.group = lane_.client().GroupOf(script::KeyName::OfState(part.digest));
    }
  }
}

// What this node admitted under the id while the store was away, it admits again.
void Deciding::SettleRepeated() {
  LocalIds& ids = lane_.common.local_ids;
  if (request_->id.empty() || !ids.any() || request_->mode == ChargeMode::kDryRun) {
    return;
  }
  for (Part& part : parts_) {
    if (part.fate != Fate::kOpen) {
      continue;
    }
    if (const auto answer = ids.Find(id_, part.digest, now_ns_)) {
      part.ask->decision = answer->decision;
      part.local = answer->receipt;
      part.fate = Fate::kSettled;
      part.repeats = true;
      LaneCounters::Add(lane_.counters().repeated_ids);
    }
  }
}

// What needs no question: denials that are still good. One of them, or an ask that can never be
// admitted, settles the request; what the others would have said is then not worth a round trip.
void Deciding::SettleKnown() {
  if (!all_or_nothing()) {
    return;
  }
  bool settled = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.fate == Fate::kSettled && part.has_say();
  });
  // An id may stand for a charge that was admitted before: then the answer is yes once more.
  const bool remembers = request_->id.empty() && lane_.common.denial_memory > Duration::zero();
  for (Part& part : parts_) {
    SharedAsk& ask = *part.ask;
    if (remembers && part.fate == Fate::kOpen && ask.cost.units != 0 && !part.quota->holds() &&
        lane_.common.book.FindDenial(part.book_key(), part.quota->book, ask.cost.units, now_ns_,
                                     lane_.common.denial_memory, ask.decision)) {
      part.fate = Fate::kSettled;
      settled = settled || part.has_say();
    }
  }
  if (!settled && request_->id.empty() && lane_.open() && lane_.client().settling()) {
    for (Part& part : parts_) {
      HoldToShare(part);
      settled = settled || (part.fate == Fate::kSettled && part.has_say());
    }
  }
  for (Part& part : parts_) {
    if (settled && part.fate == Fate::kOpen && part.has_say()) {
      LeaveShare(part);
      FillLastKnown(part);
    }
  }
}

// The store has only just returned. What it has room for may be what other nodes admitted, who have
// not told it yet: until they have, this one goes on with its share.
void Deciding::HoldToShare(Part& part) {
  SharedAsk& ask = *part.ask;
  if (part.fate != Fate::kOpen || ask.cost.units == 0 || part.quota->holds() ||
      !lane_.IsSettling(part.digest)) {
    return;
  }
  RepayFirst(part);
  switch (lane_.common.book.TakeSettling(part.book_key(), part.quota->book, ask.cost.units, now_ns_,
                                         ask.decision)) {
    case KeyBook::Settling::kNot:
      return;
    case KeyBook::Settling::kFits:
      part.settles = true;
      return;
    case KeyBook::Settling::kDenied:
      part.fate = Fate::kSettled;
      return;
  }
}

// It was not admitted after all.
void Deciding::LeaveShare(Part& part) noexcept {
  if (std::exchange(part.settles, false)) {
    lane_.common.book.GiveBackSettling(part.book_key(), part.quota->book, part.ask->cost.units);
  }
}

// Nothing is charged, so this is about what is left: as the store said last.
void Deciding::FillLastKnown(Part& part) const noexcept {
  part.fate = Fate::kSettled;
  Decision& decision = part.ask->decision;
  decision = Decision();
  decision.outcome = Outcome::kAllowed;
  decision.basis = Basis::kCached;
  decision.limit = part.quota->quota.burst();
  decision.remaining = part.quota->holds() ? decision.limit
                                           : lane_.common.book.LastRemaining(
                                                 part.book_key(), decision.limit, now_ns_);
}

bool Deciding::MustCheckFirst() const noexcept {
  if (!all_or_nothing() || !request_->id.empty()) {
    return false;
  }
  const auto asks = [](const Part& part) { return part.fate == Fate::kOpen && part.has_say(); };
  const auto first = std::find_if(parts_.begin(), parts_.end(), asks);
  const bool several = std::any_of(first, parts_.end(), [&](const Part& part) {
    return asks(part) && part.group != first->group;
  });
  return several && std::any_of(first, parts_.end(), [&](const Part& part) {
           return asks(part) &&
                  lane_.common.book.IsNearLimit(part.book_key(), part.ask->cost.units, now_ns_);
         });
}

Deciding::Group& Deciding::NewGroup(ChargeMode mode) {
  if (groups_used_ == groups_.size()) {
    groups_.push_back(std::make_unique<Group>(*this));
  }
  Group& group = *groups_[groups_used_++];
  group.parts.clear();
  group.mode = mode;
  group.again_ = false;
  group.may_have_run_ = false;
  return group;
}

void Deciding::Send(Phase phase) {
  phase_ = phase;
  const size_t first = groups_used_;
  const ChargeMode mode = phase == Phase::kChecking ? ChargeMode::kDryRun : request_->mode;
  for (Part& part : parts_) {
    if (part.fate != Fate::kOpen) {
      continue;
    }
    if (phase == Phase::kChecking &&
        (!part.has_say() ||
         !lane_.common.book.IsNearLimit(part.book_key(), part.ask->cost.units, now_ns_))) {
      continue;
    }
    part.checked = phase == Phase::kChecking;
    RepayFirst(part);
    const auto fits = [&](const std::unique_ptr<Group>& group) {
      return group->parts.front()->group == part.group &&
             std::none_of(group->parts.begin(), group->parts.end(),
                          [&](const Part* other) { return other->digest == part.digest; });
    };
    const auto begin = groups_.begin() + static_cast<ptrdiff_t>(first);
    const auto end = groups_.begin() + static_cast<ptrdiff_t>(groups_used_);
    const auto found = std::find_if(begin, end, fits);
    Group& group = found != end ? **found : NewGroup(mode);
    group.parts.push_back(&part);
  }
  open_ = groups_used_ - first;
  wants_marks_ = request_->keep_receipts || open_ > 1;
  for (size_t i = first, end = groups_used_; i < end; ++i) {
    groups_[i]->Submit();  // the last of them may end all of this, if the lane ends
  }
}

// Of one connection, so it is there before the question.
void Deciding::RepayFirst(const Part& part) {
  KeyBook& book = lane_.common.book;
  if (!book.owes() || part.quota->holds() || !lane_.open()) {
    return;
  }
  const script::KeyName name = script::KeyName::OfState(part.digest);
  if (!lane_.client().IsUsable(redis::SlotOf(name))) {
    return;
  }
  const uint32_t units = book.TakeOwed(part.book_key(), part.quota->book, now_ns_);
  if (units != 0) {
    lane_.Repay(*part.quota, part.digest, units);
  }
}

void Deciding::Group::Submit() {
  if (!owner_.lane_.open()) {
    Fail(StoreTrouble::kDisconnected, may_have_run_ ? MayHaveRun::kYes : MayHaveRun::kNo);
    return;
  }
  asks_.clear();
  for (const Part* const part : parts) {
    const SharedAsk& ask = *part->ask;
    asks_.push_back({.plan = &part->quota->plan,
                     .key = part->digest,
                     .cost = ask.cost.units,
                     .mode = mode,
                     .apart = ask.apart,
                     .max_wait_ns = ask.max_wait == Duration::max()
                                        ? script::kAnyWait
                                        : static_cast<uint64_t>(ask.max_wait.count()),
                     .lease_us = static_cast<uint64_t>(owner_.request_->lease.count()) / 1000});
  }
  const Common& common = owner_.lane_.common;
  const bool charges =
      mode == ChargeMode::kAdmit || mode == ChargeMode::kCountAlways || mode == ChargeMode::kUpTo;
  const bool has_periods = std::any_of(parts.begin(), parts.end(), [](const Part* part) {
    return part->quota->quota.algorithm() == Algorithm::kCalendar;
  });
  call_.Encode(asks_, {.id = owner_.request_->id.empty() || !charges ? nullptr : &owner_.id_,
                       .id_memory_ms = common.id_memory_ms,
                       .claim = owner_.claim_,
                       // Told by the store that we are far off, we go by its own time.
                       .around_us = again_ || !has_periods ? 0 : common.WallUs(),
                       .marks = owner_.wants_marks_});
  asked_ns_ = again_ ? common.NowNs() : owner_.now_ns_;
  owner_.lane_.client().Submit(
      *this,
      {.script = &ScriptOf(call_.script()), .keys = call_.keys(), .arguments = call_.arguments()});
}

void Deciding::Group::OnReply(const codec::resp::Reply& reply) noexcept {
  ReadIntegers(reply, integers_);
  decisions_.resize(parts.size());
  marks_.assign(parts.size(), {});
  switch (call_.Decode(integers_, decisions_, marks_)) {
    case script::Reading::kAgain:
      if (!std::exchange(again_, true)) {
        Submit();
        return;
      }
      [[fallthrough]];
    case script::Reading::kBad:
      Fail(StoreTrouble::kOther, MayHaveRun::kYes);
      return;
    case script::Reading::kDone:
      break;
  }
  KeyBook& book = owner_.lane_.common.book;
  if (call_.repeated()) {
    LaneCounters::Add(owner_.lane_.counters().repeated_ids, parts.size());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = *parts[i];
    part.ask->decision = decisions_[i];
    part.mark = marks_[i];
    part.fate = Fate::kStore;
    if (!decisions_[i].allowed()) {
      owner_.LeaveShare(part);
    }
    if (!part.quota->holds() && decisions_[i].problem == Problem::kNone) {
      // A queue denies some for what they would wait, which is their own affair; who takes what
      // fits is never denied for good.
      const bool for_all = (mode == ChargeMode::kAdmit || mode == ChargeMode::kDryRun) &&
                           part.ask->max_wait == Duration::max() && part.ask->cost.units != 0;
      book.NoteReply(
          part.book_key(), part.quota->book, decisions_[i], part.ask->cost.units, asked_ns_,
          for_all ? KeyBook::Denial::kRemember : KeyBook::Denial::kForget,
          owner_.lane_.IsSettling(part.digest) ? KeyBook::Word::kSettling : KeyBook::Word::kFinal);
    }
  }
  owner_.Answered();
}

void Deciding::Group::OnFailure(const redis::Failure& failure) noexcept {
  const StoreTrouble trouble = TroubleOf(failure);
  LaneCounters::Add(owner_.lane_.counters().troubles[static_cast<size_t>(trouble)]);
  // With an id it may be asked again, whatever became of it the first time. Not for a silence,
  // which has used up the time there was.
  const bool charges = mode != ChargeMode::kDryRun;
  may_have_run_ = may_have_run_ || (failure.may_have_run && charges);
  if (charges && !owner_.request_->id.empty() && failure.may_have_run &&
      failure.kind == redis::FailureKind::kDisconnected && !std::exchange(again_, true)) {
    Submit();
    return;
  }
  Fail(trouble, may_have_run_ ? MayHaveRun::kYes : MayHaveRun::kNo);
}

void Deciding::Group::Fail(StoreTrouble trouble, MayHaveRun may_have_run) noexcept {
  for (Part* const part : parts) {
    owner_.LeaveShare(*part);
    part->fate = Fate::kFailed;
    part->trouble = trouble;
    part->may_have_run = may_have_run;
  }
  owner_.Answered();
}

void Deciding::Answered() {
  if (--open_ != 0) {
    return;
  }
  if (phase_ == Phase::kChecking) {
    AfterChecking();
  } else {
    Finish();
  }
}

void Deciding::AfterChecking() {
  const bool denied = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.fate == Fate::kStore && part.has_say() && !part.ask->decision.allowed();
  });
  for (Part& part : parts_) {
    if (!denied && part.checked) {
      part.fate = Fate::kOpen;  // it fits, or nobody answered: to be charged with the others
    } else if (denied && part.fate == Fate::kOpen && part.has_say()) {
      FillLastKnown(part);
    }
  }
  if (std::none_of(parts_.begin(), parts_.end(),
                   [](const Part& part) { return part.fate == Fate::kOpen; })) {
    Finish();
    return;
  }
  now_ns_ = lane_.common.NowNs();
  Send(Phase::kCharging);
}

bool Deciding::AnyDenied() const noexcept {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.has_say() && (part.fate == Fate::kStore || part.fate == Fate::kSettled) &&
           !part.ask->decision.allowed();
  });
}

void Deciding::Finish() {
  if (std::any_of(parts_.begin(), parts_.end(),
                  [](const Part& part) { return part.fate == Fate::kFailed; })) {
    now_ns_ = lane_.common.NowNs();
  }
  // Who is denied by the store already need not be charged here, only told how it stands.
  bool denied = all_or_nothing() && AnyDenied();
  for (Part& part : parts_) {
    if (part.fate == Fate::kFailed) {
      const bool looks = denied && part.has_say();
      ApplyPolicy(part, looks ? ChargeMode::kDryRun : request_->mode);
      denied = all_or_nothing() && (denied || (part.has_say() && !part.ask->decision.allowed()));
    }
  }
  if (!request_->id.empty()) {
    MakeSure(!denied);
    if (denied) {
      UndoGroups();
    }
  }
  LaneCounters& counters = lane_.counters();
  for (Part& part : parts_) {
    if (denied && part.has_say()) {
      TakeBack(part);
    } else if (request_->keep_receipts) {
      WriteReceipt(part);
    }
    const Decision& decision = part.ask->decision;
    const auto basis = static_cast<size_t>(decision.basis);
    LaneCounters::Add(counters.decisions[basis]);
    if (decision.allowed()) {
      LaneCounters::Add(counters.admitted[basis]);
    }
  }
  Completion& completion = *completion_;
  lane_.Recycle(std::move(self_));
  completion.Done();
}

}  // namespace weir::shared
