// Any sequence of calls on a limiter: no crash, and each answer agrees with what the key had
// before.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/limiter.h"

#include "fuzz/require.h"

using weir::fuzz::Require;

namespace {

using weir::ChargeMode;
using weir::Decision;
using weir::Duration;
using weir::Outcome;
using weir::Problem;
using weir::Quota;
using weir::Receipt;

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }

  uint64_t Take(unsigned bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && size_ > 0; --bytes, --size_) {
      value = value << 8 | *data_++;
    }
    return value;
  }

  // Any size from 0 up to 2^62, small ones as likely as large ones.
  int64_t Scaled() {
    const uint64_t shape = Take(1);
    const uint64_t value = Take(static_cast<unsigned>(shape % 8));
    return static_cast<int64_t>(value >> (shape / 8 % 8) & ~(uint64_t{3} << 62));
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

std::optional<Quota> TakeQuota(Bytes& bytes) {
  weir::QuotaSpec spec;
  spec.algorithm = static_cast<weir::Algorithm>(bytes.Take(1) % 6);
  spec.limit = bytes.Scaled();
  spec.window = Duration(bytes.Scaled());
  spec.burst = bytes.Take(1) % 2 == 0 ? 0 : bytes.Scaled();
  spec.start = static_cast<weir::WindowStart>(bytes.Take(1) % 3);
  spec.period = static_cast<weir::CalendarPeriod>(bytes.Take(1) % 4);
  const auto quota = Quota::Create(spec);
  if (!quota) {
    Require(!quota.error().message.empty());
    return std::nullopt;
  }
  return *quota;
}

class Session {
 public:
  Session(const Quota& quota, Bytes& bytes)
      : bytes_(bytes), limiter_(weir::Limiter::Create(quota, Options(bytes, clock_))) {}

  void Run() {
    if (!limiter_) {
      Require(!limiter_.error().message.empty());
      return;
    }
    while (!bytes_.empty()) {
      const uint64_t what = bytes_.Take(1);
      switch (what % 8) {
        case 0:
          clock_.Advance(Duration(bytes_.Scaled()) % std::chrono::hours(24 * 36500));
          break;
        case 1:
          clock_.SetNow(clock_.Now() - Duration(bytes_.Scaled()) % std::chrono::hours(24));
          break;
        case 2:
          GiveBack();
          break;
        case 3:
          Update();
          break;
        case 4:
          limiter_->store()->Maintain();
          break;
        default:
          Check(static_cast<ChargeMode>(what / 8 % 4), what / 32 % 2 == 0);
      }
      // Far enough from the end of 64-bit time.
      if (clock_.Now().time_since_epoch() > std::chrono::hours(24 * 36500)) {
        return;
      }
    }
    const weir::StoreStats stats = limiter_->store()->Stats();
    Require(stats.denials <= stats.decisions && stats.live_slots <= stats.slots);
  }

 private:
  static weir::MemoryOptions Options(Bytes& bytes, const weir::Clock& clock) {
    constexpr int kWide[] = {-1, 50, 100, 0};
    return {.budget_bytes = size_t{64} << 10,
            .overflow = static_cast<weir::OverflowPolicy>(bytes.Take(1) % 3),
            .keys = weir::KeyPolicy::kBinary,
            .clock = &clock,
            .wide_percent = kWide[bytes.Take(1) % 4]};
  }

  std::string TakeKey() { return "key" + std::to_string(bytes_.Take(1) % 16); }

  void Check(ChargeMode mode, bool plain) {
    const std::string key = TakeKey();
    const auto cost = static_cast<uint64_t>(bytes_.Scaled());
    const Decision before = limiter_->Check(key, 0);
    Require(before.allowed() && before.charged == 0);
    const Decision again = limiter_->Check(key, 0);
    Require(again.remaining == before.remaining && again.reset_after == before.reset_after);
    Receipt receipt;
    const Decision decision =
        plain ? limiter_->Check(key, cost)
              : limiter_->Check(key, {.cost = cost, .mode = mode, .receipt = &receipt});
    Judge(key, plain ? ChargeMode::kAdmit : mode, cost, before, decision);
    if (receipt.charged != 0) {
      Require(receipt.charged == decision.charged);
      receipts_.push_back({key, receipt});
    }
  }

  void Judge(const std::string& key, ChargeMode mode, uint64_t cost, const Decision& before,
             const Decision& decision) {
    Require(decision.retry_after >= Duration::zero() && decision.reset_after >= Duration::zero());
    Require(decision.remaining <= decision.limit || decision.outcome == Outcome::kRefused);
    const bool gap = limiter_->quota().algorithm() == weir::Algorithm::kMinGap;
    const Decision after = limiter_->Check(key, 0);
    if (decision.allowed()) {
      Require(decision.problem == Problem::kNone && decision.retry_after == Duration::zero());
      Require(decision.basis != weir::Basis::kStore || gap || decision.charged <= before.remaining);
    } else if (decision.outcome == Outcome::kDenied && decision.problem == Problem::kNone) {
      Require(decision.retry_after > Duration::zero());
      Require(mode == ChargeMode::kCountAlways || decision.charged == 0);
    } else {
      Require(decision.problem != Problem::kNone);
    }
    const bool untouched = decision.outcome == Outcome::kRefused || mode == ChargeMode::kDryRun ||
                           cost == 0 || decision.charged == 0;
    if (untouched && mode != ChargeMode::kCountAlways && decision.basis == weir::Basis::kStore) {
      Require(after.remaining == before.remaining && after.reset_after == before.reset_after);
    } else {
      Require(after.remaining <= before.remaining);
    }
  }

  void GiveBack() {
    if (receipts_.empty()) {
      return;
    }
    auto [key, receipt] = receipts_.back();
    receipts_.pop_back();
    const Decision before = limiter_->Check(key, 0);
    const uint32_t paid = receipt.charged;
    const uint32_t units = limiter_->GiveBack(receipt);
    Require(units <= paid && receipt.charged == 0);
    const Decision after = limiter_->Check(key, 0);
    const bool gap = limiter_->quota().algorithm() == weir::Algorithm::kMinGap;
    // Fractions of a unit may be given back on top of whole ones.
    Require(after.remaining >= before.remaining);
    Require(gap || after.remaining - before.remaining <= uint64_t{units} + 1);
    Require(after.reset_after <= before.reset_after);
    Require(limiter_->GiveBack(receipt) == 0);
  }

  void Update() {
    if (const auto quota = TakeQuota(bytes_)) {
      const weir::Quota old = limiter_->quota();
      const auto updated = limiter_->Update(*quota);
      Require(limiter_->quota() == (updated.ok() ? *quota : old));
      Require(updated.ok() || !updated.error().message.empty());
    }
  }

  struct Held {
    std::string key;
    Receipt receipt;
  };

  Bytes& bytes_;
  weir::ManualClock clock_{weir::WallTime(std::chrono::hours(24 * 20'000))};
  weir::Result<weir::Limiter> limiter_;
  std::vector<Held> receipts_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  if (const auto quota = TakeQuota(bytes)) {
    Session(*quota, bytes).Run();
  }
  return 0;
}
