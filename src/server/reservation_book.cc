#include "server/reservation_book.h"

#include <sys/random.h>

#include <algorithm>
#include <functional>

#include "base/wide_math.h"

namespace weir::server {

namespace {

bool IsConcurrency(const RulePart& part) {
  return part.quota->quota.algorithm() == Algorithm::kConcurrency;
}

// A min-heap by the end.
constexpr auto kLater = std::greater<>{};

}  // namespace

size_t ReservationBook::size() const {
  const base::MutexLock lock(mutex_);
  return entries_.size();
}

// As good as a password for what it stands for, so nobody should guess one.
std::string ReservationBook::NewToken() {
  constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[16];
  // Never short for so few bytes; interrupted only while the kernel gathers its first entropy.
  while (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kHex[byte >> 4];
    token += kHex[byte & 15];
  }
  return token;
}

bool ReservationBook::Take(const RulePart& part, const Request& request, Item& item,
                           Decision& decision) {
  item.limiter = part.limiter;
  if (IsConcurrency(part)) {
    const Acquired acquired =
        part.limiter->Acquire(part.key, {.cost = 1, .lease = request.lasts, .now = request.now});
    decision = acquired.decision;
    item.hold = acquired.hold;
    return acquired.allowed();
  }
  item.cost = part.cost.units;
  const Reserved reserved =
      part.limiter->Reserve(part.key, part.cost, {.lasts = request.lasts, .now = request.now});
  decision = reserved.decision;
  item.reservation = reserved.reservation;
  return reserved.allowed();
}

void ReservationBook::GiveAllBack(std::vector<Item>& items, Timestamp now) {
  for (Item& item : items) {
    if (item.hold.units() != 0) {
      item.limiter->Release(item.hold, now);
    } else {
      item.limiter->Settle(item.reservation, 0, now);
    }
  }
}

std::string ReservationBook::Reserve(RuleLimiter& rules, const RuleLimiter::Pin& pin,
                                     const Request& request, RuleReply& reply) {
  if (shared_ != nullptr) {
    return ReserveShared(rules, pin, request, reply);
  }
  // First without charging: most of what does not fit is seen here, and costs nobody anything.
  rules.Check(pin,
              {.attributes = request.attributes,
               .cost = request.estimate,
               .mode = ChargeMode::kDryRun,
               .now = request.now,
               .wall = request.wall},
              reply);
  if (!reply.allowed()) {
    return {};
  }
  Entry entry;
  entry.estimate = request.estimate;
  entry.ends = request.now + request.lasts;
  entry.lasts = request.lasts;
  for (const RulePart& part : reply.parts()) {
    if (part.shadow) {
      part.limiter->Check(part.key, {.cost = part.cost, .now = request.now});
      continue;
    }
    Item item;
    Decision decision;
    if (!Take(part, request, item, decision)) {
      // Somebody else was faster.
      GiveAllBack(entry.items, request.now);
      reply.outcome = decision.outcome;
      reply.problem = decision.problem;
      reply.retry_after = decision.retry_after;
      return {};
    }
    entry.items.push_back(item);
  }
  const base::MutexLock lock(mutex_);
  DropEnded(request.now);
  if (entries_.size() >= kOpenMax) {
    GiveAllBack(entry.items, request.now);
    reply.outcome = Outcome::kRefused;
    reply.problem = Problem::kNoRecords;
    return {};
  }
  std::string token = NewToken();
  by_end_.emplace_back(entry.ends, token);
  std::push_heap(by_end_.begin(), by_end_.end(), kLater);
  entries_.emplace(token, std::move(entry));
  return token;
}

std::string ReservationBook::ReserveShared(RuleLimiter& rules, const RuleLimiter::Pin& pin,
                                           const Request& request, RuleReply& reply) {
  std::string token = NewToken();
  const RuleReservation reserve{.token = token, .lasts = request.lasts};
  rules.Check(pin,
              {.attributes = request.attributes,
               .cost = request.estimate,
               .now = request.now,
               .wall = request.wall,
               .id = request.id,
               .reserve = &reserve},
              reply);
  return reply.allowed() ? token : std::string();
}

void ReservationBook::DropEnded(Timestamp now) {
  while (!by_end_.empty() && by_end_.front().first <= now) {
    std::pop_heap(by_end_.begin(), by_end_.end(), kLater);
    auto [at, token] = std::move(by_end_.back());
    by_end_.pop_back();
    const auto entry = entries_.find(token);
    if (entry == entries_.end()) {
      continue;
    }
    if (entry->second.ends > now) {  // renewed meanwhile
      by_end_.emplace_back(entry->second.ends, std::move(token));
      std::push_heap(by_end_.begin(), by_end_.end(), kLater);
    } else {
      entries_.erase(entry);
    }
  }
}

ReservationBook::Settled ReservationBook::Settle(std::string_view token, uint64_t actual,
                                                 Timestamp now) {
  if (shared_ != nullptr) {
    const SharedSettlement settled = shared_->Settle(token, actual);
    return {.outcome = settled.outcome,
            .actual = settled.actual,
            .given_back = settled.given_back,
            .problem = settled.problem,
            .trouble = settled.trouble};
  }
  const base::MutexLock lock(mutex_);
  DropEnded(now);
  const auto found = entries_.find(std::string(token));
  if (found == entries_.end()) {
    return {};
  }
  Entry& entry = found->second;
  if (entry.settled) {
    return {.outcome = SettleOutcome::kAlreadySettled, .actual = entry.actual};
  }
  if (actual > Cost::kMax) {
    return {.outcome = SettleOutcome::kRefused, .problem = Problem::kCostTooLarge};
  }
  Settled settled{.outcome = SettleOutcome::kSettled, .actual = actual};
  for (Item& item : entry.items) {
    if (item.hold.units() != 0) {
      item.limiter->Release(item.hold, now);
      continue;
    }
    // A rule may count a request several times over: what it came to counts as often.
    const uint64_t here =
        entry.estimate == 0
            ? actual
            : std::min(base::MulDivFloor(actual, item.cost, entry.estimate), Cost::kMax);
    const Settlement one = item.limiter->Settle(item.reservation, here, now);
    settled.given_back = std::max<uint64_t>(settled.given_back, one.given_back);
  }
  entry.items.clear();
  entry.settled = true;
  entry.actual = actual;
  return settled;
}

bool ReservationBook::Renew(std::string_view token, Timestamp now) {
  if (shared_ != nullptr) {
    return shared_->RenewReserved(token, Duration::zero());
  }
  const base::MutexLock lock(mutex_);
  DropEnded(now);
  const auto found = entries_.find(std::string(token));
  if (found == entries_.end() || found->second.settled) {
    return false;
  }
  Entry& entry = found->second;
  for (const Item& item : entry.items) {
    if (item.hold.units() == 0 ||
        !item.limiter->Renew(item.hold, {.lease = entry.lasts, .now = now})) {
      return false;  // a charge cannot be held for longer, and an ended hold is gone
    }
  }
  entry.ends = now + entry.lasts;
  return true;
}

}  // namespace weir::server
