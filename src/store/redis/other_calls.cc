#include "store/redis/other_calls.h"

#include <charconv>

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

SmallCall SettleCall(const Digest& token, uint64_t actual) {
  return {.script = Id::kSettle,
          .key = KeyName::OfReservation(token),
          .texts = {std::to_string(actual), {}},
          .count = 1};
}

SmallCall KeepCall(const Digest& token, uint64_t lasts_ms) {
  return {.script = Id::kSettle,
          .key = KeyName::OfReservation(token),
          .texts = {std::string(), std::to_string(lasts_ms)},
          .count = 2};
}

SettledRecord ReadSettled(std::string_view reply) {
  SettledRecord settled;
  if (reply == "-") {
    settled.reading = SettleReading::kGone;
  } else if (reply.starts_with('o')) {
    settled.reading = SettleReading::kOpen;
    settled.record = reply.substr(1);
  } else if (reply.starts_with('s')) {
    const auto read =
        std::from_chars(reply.data() + 1, reply.data() + reply.size(), settled.actual);
    if (read.ec == std::errc() && read.ptr == reply.data() + reply.size()) {
      settled.reading = SettleReading::kSettledBefore;
    }
  }
  return settled;
}

}  // namespace weir::script
