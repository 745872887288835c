#include "store/redis/other_calls.h"

#include <charconv>
#include <utility>

namespace weir::script {

namespace {

constexpr uint64_t kUsNs = SharedTicks::kUsNs;

// The receipt as its script reads it: see `back` in each lua/*.lua.
void PutPaid(const Paid& paid, TextList& out) {
  const algorithm::Plan& law = paid.plan->law();
  const auto put_split = [&](uint64_t ticks) {
    out.Put(ticks / law.subdivision);
    out.Put(ticks % law.subdivision);
  };
  const Mark& mark = paid.mark;
  switch (paid.plan->script()) {
    case Id::kBucket:
      put_split(std::min(base::SaturatingMul(mark.charged, law.emission), law.debt_max));
      put_split(law.debt_max);
      put_split(law.emission);
      out.Put(law.subdivision);
      out.Put(uint64_t{paid.plan->interval_code()});
      out.Put(mark.words[0]);
      out.Put(mark.words[1]);
      out.Put(mark.words[2]);
      if (paid.plan->is_queue()) {
        put_split(law.undelayed);
      } else {
        out.Put(-1.0);
        out.Put(0.0);
      }
      break;
    case Id::kGap:
      out.Put(law.emission);
      out.Put(uint64_t{paid.plan->interval_code()});
      out.Put(mark.words[0]);
      break;
    case Id::kWindow:
    case Id::kSliding:
      out.Put(uint64_t{mark.charged});
      out.Put(uint64_t{law.limit});
      out.Put(paid.plan->script() == Id::kWindow ? paid.plan->family()
                                                 : static_cast<double>(law.window_ns / kUsNs));
      out.Put(mark.words[0]);
      break;
    case Id::kSliced:
      out.Put(uint64_t{mark.charged});
      out.Put(uint64_t{law.limit});
      out.Put(law.count_max);
      out.Put(law.slice_ns / kUsNs);
      out.Put(uint64_t{law.slices});
      out.Put(mark.words[0]);
      break;
    case Id::kLog:
      out.Put(uint64_t{mark.charged});
      out.Put(uint64_t{law.limit});
      out.Put(law.window_ns / kUsNs);
      out.Put(mark.words[0]);
      break;
    default:  // holds
      out.Put(mark.words[0]);
      out.Put(uint64_t{mark.charged});
      break;
  }
  out.End();
}

}  // namespace

void GiveBackCall::Encode(std::span<const Paid> paid, const Record* record, const Claim& claim,
                          int64_t now_us) {
  paid_.assign(paid.begin(), paid.end());
  texts_.Clear();
  for (const Paid& one : paid_) {
    texts_.AddKey(KeyName::OfState(one.key));
  }
  if (record != nullptr) {
    texts_.AddKey(KeyName::OfId(record->key, record->id));
  }
  for (const Paid& one : paid_) {
    const char letter = one.plan->letter();
    texts_.Put(std::string_view(&letter, 1));
  }
  texts_.End();
  texts_.AddNumber(static_cast<uint64_t>(now_us));
  for (const Paid& one : paid_) {
    PutPaid(one, texts_);
  }
  if (record != nullptr) {
    texts_.Add(claim.view());
  }
  if (const uint64_t memory_ms = std::exchange(memory_ms_, 0); memory_ms != 0) {
    texts_.AddNumber(memory_ms);
  }
  texts_.Seal();
}

bool GiveBackCall::Decode(std::span<const int64_t> reply, std::span<uint32_t> units) const {
  if (reply.size() != 1 + 2 * paid_.size() || units.size() < paid_.size()) {
    return false;
  }
  for (size_t i = 0; i < paid_.size(); ++i) {
    const algorithm::Plan& law = paid_[i].plan->law();
    const auto whole = static_cast<uint64_t>(reply[1 + 2 * i]);
    const auto ticks = static_cast<uint64_t>(reply[2 + 2 * i]);
    if (reply[1 + 2 * i] < 0 || reply[2 + 2 * i] < 0) {
      return false;
    }
    uint64_t back = whole;
    if (paid_[i].plan->script() == Id::kBucket) {
      back = law.per_emission.Divide(whole * law.subdivision + ticks);
    } else if (paid_[i].plan->script() == Id::kGap) {
      back = whole * paid_[i].mark.charged;
    }
    units[i] = static_cast<uint32_t>(std::min<uint64_t>(back, paid_[i].mark.charged));
  }
  return true;
}

SmallCall RenewCall(const Paid& hold, uint64_t lease_us, int64_t now_us) {
  TextList list;
  list.Put(hold.mark.words[0]);
  list.Put(uint64_t{hold.mark.charged});
  list.Put(lease_us);
  list.End();
  list.Seal();
  return {.script = Id::kRenew,
          .key = KeyName::OfState(hold.key),
          .texts = {std::string(list.arguments()[0]), std::to_string(now_us)},
          .count = 2};
}

SmallCall ResetCall(const Digest& key) {
  return {.script = Id::kReset, .key = KeyName::OfState(key), .texts = {}, .count = 0};
}

std::string OpenRecord(std::string_view record) {
  return "o" + std::string(record);
}

namespace {

SmallCall SettleOrKeep(const Digest& token, std::string actual, uint64_t lasts_ms,
                       const UnsureRecord* unsure) {
  return {.script = Id::kSettle,
          .key = KeyName::OfReservation(token),
          .texts = {std::move(actual), std::to_string(lasts_ms),
                    unsure == nullptr ? std::string() : OpenRecord(unsure->record)},
          .count = unsure == nullptr ? size_t{2} : size_t{3}};
}

// Takes a number and the blank behind it.
bool TakeNumber(std::string_view& text, uint64_t& number) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<size_t>(at - text.data());
  if (error != std::errc() || used == text.size() || text[used] != ' ') {
    return false;
  }
  text.remove_prefix(used + 1);
  return true;
}

}  // namespace

SmallCall SettleCall(const Digest& token, uint64_t actual, const UnsureRecord* unsure) {
  return SettleOrKeep(token, std::to_string(actual), unsure == nullptr ? 0 : unsure->lasts_ms,
                      unsure);
}

SmallCall KeepCall(const Digest& token, uint64_t lasts_ms, const UnsureRecord* unsure) {
  return SettleOrKeep(token, {}, lasts_ms, unsure);
}

SettledRecord ReadSettled(std::string_view reply) {
  SettledRecord settled;
  if (reply == "-") {
    settled.reading = SettleReading::kGone;
  } else if (TakeNumber(reply, settled.lasts_ms) && !reply.empty()) {
    const char state = reply.front();
    reply.remove_prefix(1);
    if (state == 'o') {
      settled.reading = SettleReading::kOpen;
    } else if (state == 's' && TakeNumber(reply, settled.actual)) {
      settled.reading = SettleReading::kSettledBefore;
    }
    settled.record = reply;
  }
  return settled;
}

}  // namespace weir::script
