#include "shared/lane.h"

#include <random>
#include <utility>

#include "shared/deciding.h"
#include "shared/errand.h"

namespace weir::shared {

namespace {

StoreTrouble StoreTroubleOf(redis::ServerError error) noexcept {
  switch (error) {
    case redis::ServerError::kOutOfMemory:
      return StoreTrouble::kOutOfMemory;
    case redis::ServerError::kLoading:
      return StoreTrouble::kLoading;
    case redis::ServerError::kReadOnly:
      return StoreTrouble::kReadOnly;
    case redis::ServerError::kMasterDown:
      return StoreTrouble::kMasterDown;
    case redis::ServerError::kBusy:
      return StoreTrouble::kBusy;
    case redis::ServerError::kNoPermission:
    case redis::ServerError::kNoAuth:
      return StoreTrouble::kNotAllowed;
    case redis::ServerError::kWrongType:
    case redis::ServerError::kUnknownState:
      return StoreTrouble::kWrongType;
    case redis::ServerError::kMoved:
    case redis::ServerError::kAsk:
    case redis::ServerError::kTryAgain:
    case redis::ServerError::kClusterDown:
      return StoreTrouble::kNoNode;
    default:
      return StoreTrouble::kOther;
  }
}

uint64_t RandomNumber() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

StoreTrouble TroubleOf(const redis::Failure& failure) noexcept {
  switch (failure.kind) {
    case redis::FailureKind::kTimeout:
      return StoreTrouble::kTimeout;
    case redis::FailureKind::kDisconnected:
    case redis::FailureKind::kStopped:
      return StoreTrouble::kDisconnected;
    case redis::FailureKind::kOverloaded:
      return StoreTrouble::kOverloaded;
    case redis::FailureKind::kBreakerOpen:
      return StoreTrouble::kBreakerOpen;
    case redis::FailureKind::kNoNode:
      return StoreTrouble::kNoNode;
    case redis::FailureKind::kTooLarge:
      return StoreTrouble::kOther;
    case redis::FailureKind::kServer:
      return StoreTroubleOf(failure.server);
  }
  return StoreTrouble::kOther;
}

const redis::Script& ScriptOf(script::Id id) noexcept {
  static const std::vector<redis::Script>* const all = [] {
    auto* scripts = new std::vector<redis::Script>;  // for as long as the program runs
    for (const script::Text& text : script::All()) {
      scripts->emplace_back(text.name, text.text);
    }
    return scripts;
  }();
  return (*all)[static_cast<size_t>(id)];
}

Lane::Lane(const Common& own, std::unique_ptr<redis::Client> client)
    : common(own), claims_(RandomNumber()), client_(std::move(client)) {}

Lane::~Lane() {
  client_.reset();  // calls under way fail now, while all that they touch is still there
}

Errand* Lane::TakeErrand() {
  if (!open()) {
    return nullptr;
  }
  if (!idle_errands_.empty()) {
    Errand* const errand = idle_errands_.back();
    idle_errands_.pop_back();
    return errand;
  }
  if (errands_.size() >= kErrandsMax) {
    return nullptr;
  }
  return errands_.emplace_back(std::make_unique<Errand>(*this)).get();
}

void Lane::Refund(const script::Paid& paid) {
  if (Errand* const errand = TakeErrand()) {
    errand->Refund(paid);
  } else {
    LaneCounters::Add(counters_.refunds_lost);
  }
}

void Lane::Repay(const FleetQuota& quota, const script::Digest& key, uint32_t units) {
  if (Errand* const errand = TakeErrand()) {
    errand->Repay(quota, key, units);
  } else {
    common.book.PutOwedBack({key[0], key[1]}, quota.book, units, common.NowNs());
  }
}

void Lane::Undo(std::span<const script::Paid> paid, const script::GiveBackCall::Record& record,
                const script::Claim& claim) {
  if (Errand* const errand = TakeErrand()) {
    errand->Undo(paid, record, claim);
  } else {
    LaneCounters::Add(counters_.refunds_lost);
  }
}

// splitmix64 of a number that no other lane begins with.
script::Claim Lane::NewClaim() noexcept {
  uint64_t value = claims_ += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return script::Claim(value ^ (value >> 31));
}

void Lane::MakeSure(std::span<const script::Ask> asks, const script::Digest& id,
                    const script::Claim& claim, bool admitted) {
  if (Errand* const errand = TakeErrand()) {
    errand->MakeSure(asks, id, claim, admitted ? Errand::Admitted::kYes : Errand::Admitted::kNo);
  } else {
    LaneCounters::Add(counters_.unsure);
  }
}

void Lane::Later(Errand& errand) {
  later_.push_back(&errand);
}

// Each when its own node is there: another's absence is none of its business.
void Lane::RetryLater() {
  const std::vector<Errand*> all = std::exchange(later_, {});
  for (Errand* const errand : all) {
    if (errand->expired()) {
      errand->GiveUp();
    } else if (client_->IsUsable(redis::SlotOf(errand->key()))) {
      errand->TryAgain();
    } else {
      later_.push_back(errand);
    }
  }
}

bool Lane::RepaySome(size_t& cursor) {
  constexpr size_t kAtOnce = 64;  // half of what may be in flight: those who wait go first
  const std::vector<const BookQuota*> quotas = common.quotas.BookQuotas();
  OwedUnits owed[kAtOnce];
  const size_t found =
      common.book.Sweep(cursor, quotas, owed, common.NowNs(), [this](const BookKey& key) {
        const script::KeyName name = script::KeyName::OfState({key.low, key.high});
        return client_->IsUsable(redis::SlotOf(name));
      });
  for (size_t i = 0; i < found; ++i) {
    Repay(common.quotas.Get(owed[i].quota), {owed[i].key.low, owed[i].key.high}, owed[i].units);
  }
  return cursor < common.book.cells();
}

void Lane::Recycle(Errand& done) {
  idle_errands_.push_back(&done);
}

std::unique_ptr<Deciding> Lane::TakeDeciding() {
  if (idle_decidings_.empty()) {
    return std::make_unique<Deciding>(*this);
  }
  std::unique_ptr<Deciding> taken = std::move(idle_decidings_.back());
  idle_decidings_.pop_back();
  return taken;
}

void Lane::Recycle(std::unique_ptr<Deciding> done) {
  if (idle_decidings_.size() < kIdleMax) {
    idle_decidings_.push_back(std::move(done));
  }
}

}  // namespace weir::shared
