// What becomes of an ask that the store did not answer, and of charges that turned out to be for
// nothing.
#include <algorithm>

#include "shared/deciding.h"
#include "shared/receipts.h"

namespace weir::shared {

void Deciding::ApplyPolicy(Part& part, ChargeMode mode) noexcept {
  SharedAsk& ask = *part.ask;
  ask.trouble = part.trouble;
  switch (ask.on_failure) {
    case OnStoreFailure::kLocal:
      if (part.quota->holds()) {
        TakeHold(part, mode);
      } else {
        TakeLocally(part, mode);
      }
      return;
    case OnStoreFailure::kAllow:
      // Nobody counted, so there is nothing to say about what is left.
      ask.decision = Decision();
      ask.decision.outcome = Outcome::kAllowed;
      ask.decision.basis = Basis::kOpen;
      return;
    case OnStoreFailure::kDeny:
      ask.decision = Decision();
      ask.decision.basis = Basis::kClosed;
      ask.decision.retry_after = lane_.common.closed_retry;
      return;
  }
}

void Deciding::TakeLocally(Part& part, ChargeMode mode) noexcept {
  lane_.common.book.Take(part.book_key(), part.quota->book, part.ask->cost.units, mode,
                         part.may_have_run, now_ns_, part.ask->decision, &part.local);
  if (!request_->id.empty() && part.ask->decision.charged != 0) {
    lane_.common.local_ids.Add(id_, part.digest, {part.ask->decision, part.local}, now_ns_);
  }
}

void Deciding::TakeHold(Part& part, ChargeMode mode) noexcept {
  Decision& decision = part.ask->decision;
  if (!part.quota->local_holds) {
    decision = Decision();
    decision.basis = Basis::kClosed;
    decision.retry_after = lane_.common.closed_retry;
    return;
  }
  Limiter& limiter = *part.quota->local_holds;
  if (mode == ChargeMode::kAdmit) {
    AcquireOptions options{.cost = part.ask->cost};
    if (request_->lease > Duration::zero()) {
      options.lease = request_->lease;
    }
    // By its digest: a lock of this node must not depend on how long the text is.
    const Acquired acquired = limiter.Acquire(script::KeyName::OfState(part.digest), options);
    decision = acquired.decision;
    part.hold = acquired.hold.receipt;
  } else {
    decision =
        limiter.Check(script::KeyName::OfState(part.digest),
                      CheckOptions{.cost = part.ask->cost, .mode = mode, .receipt = &part.hold});
  }
  decision.basis = Basis::kLocal;
}

// With an id the store can be asked again what became of a charge, and to undo it if it was not
// admitted here.
void Deciding::MakeSure(bool admitted) {
  for (size_t i = 0; i < groups_used_; ++i) {
    const Group& group = *groups_[i];
    if (group.may_have_run_ && group.parts.front()->fate == Fate::kFailed) {
      lane_.MakeSure(group.asks_, id_, claim_, admitted);
    }
  }
}

// Charged under the id, and for nothing since another quota denied: as if it had not been, so that
// who asks again is charged again. What an earlier request was told of stays.
void Deciding::UndoGroups() {
  std::vector<script::Paid> paid;
  for (size_t i = 0; i < groups_used_; ++i) {
    paid.clear();
    for (const Part* const part : groups_[i]->parts) {
      if (part->fate == Fate::kStore && part->has_say() && part->ask->decision.charged != 0) {
        paid.push_back({.plan = &part->quota->plan, .key = part->digest, .mark = part->mark});
      }
    }
    if (!paid.empty()) {
      lane_.Undo(paid, {.key = groups_[i]->parts.front()->digest, .id = id_}, claim_);
    }
  }
}

void Deciding::TakeBack(Part& part) noexcept {
  Decision& decision = part.ask->decision;
  if (decision.charged == 0 || part.repeats) {
    return;  // nothing, or what an earlier request was told of
  }
  if (part.fate == Fate::kStore) {
    LeaveShare(part);
    lane_.common.book.ForgetDenial(part.book_key());
    if (request_->id.empty()) {
      lane_.Refund({.plan = &part.quota->plan, .key = part.digest, .mark = part.mark});
    }
  } else if (part.quota->holds()) {
    part.quota->local_holds->Release({part.hold});
  } else {
    lane_.common.book.GiveBack(part.book_key(), part.quota->book, part.local, now_ns_);
    if (!request_->id.empty()) {
      lane_.common.local_ids.Remove(id_, part.digest);
    }
  }
  // It would have fitted by itself: show what is left without it.
  decision.remaining = std::min(decision.remaining + decision.charged, decision.limit);
  decision.charged = 0;
}

void Deciding::WriteReceipt(Part& part) const noexcept {
  SharedReceipt& receipt = part.ask->receipt;
  receipt = {};
  if (part.ask->decision.charged == 0) {
    return;
  }
  receipt.quota = part.quota;
  receipt.key = {part.digest[0], part.digest[1]};
  receipt.charged = part.ask->decision.charged;
  receipt.basis = part.ask->decision.basis;
  if (part.fate == Fate::kStore) {
    receipt.basis = Basis::kStore;
    receipt.mark = part.mark.words;
    receipt.charged = part.mark.charged;
  } else if (part.quota->holds()) {
    Write(part.hold, receipt);
  } else {
    Write(part.local, receipt);
  }
}

}  // namespace weir::shared
