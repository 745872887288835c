// The calls besides charging: giving back, a hold's lease, starting a key anew, reservations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/charge_call.h"

namespace weir::script {

// What was charged, where. The plan is the one it was charged under.
struct Paid {
  const SharedPlan* plan = nullptr;
  Digest key{};
  Mark mark;
};

// Several receipts of one slot. What is still owed of each is returned, never more than was paid;
// holds end.
class GiveBackCall {
 public:
  void Encode(std::span<const Paid> paid, int64_t now_us = 0) { Encode(paid, nullptr, {}, now_us); }
  // The same for charges under an id, by whoever claimed them, all or nothing: a later call with
  // that id is charged anew. If others were told of them, nothing is given back.
  struct Record {
    Digest key{};  // of the call's first ask
    Digest id{};
  };
  void EncodeUndo(std::span<const Paid> paid, const Record& record, const Claim& claim,
                  int64_t now_us = 0) {
    Encode(paid, &record, claim, now_us);
  }
  // The same under an id of its own: given back once within that time, however often it comes, and
  // answered alike.
  void EncodeOnce(std::span<const Paid> paid, const Record& record, uint64_t memory_ms,
                  int64_t now_us = 0) {
    memory_ms_ = memory_ms;
    Encode(paid, &record, {}, now_us);
  }
  [[nodiscard]] Id script() const noexcept { return Id::kGiveBack; }
  [[nodiscard]] std::span<const std::string_view> keys() const noexcept { return texts_.keys(); }
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept {
    return texts_.arguments();
  }
  // Units given back, of each. False: not a reply of this script.
  bool Decode(std::span<const int64_t> reply, std::span<uint32_t> units) const;

 private:
  void Encode(std::span<const Paid> paid, const Record* record, const Claim& claim, int64_t now_us);

  std::vector<Paid> paid_;
  TextList texts_;
  uint64_t memory_ms_ = 0;  // of EncodeOnce
};

// KEYS and ARGV of a call with one key.
struct SmallCall {
  Id script = Id::kReset;
  KeyName key;
  std::array<std::string, 3> texts;
  size_t count = 0;  // of texts
};

// The lease begins anew. Reply: {1 if the hold was live, else 0; time; the lease's end}.
[[nodiscard]] SmallCall RenewCall(const Paid& hold, uint64_t lease_us, int64_t now_us = 0);
// Reply: {1 if there was a state, else 0}.
[[nodiscard]] SmallCall ResetCall(const Digest& key);

// A reservation's record, whatever the caller writes into it, is kept by
//   SET <KeyName::OfReservation> OpenRecord(record) PX <milliseconds> NX
// and settled, once, by kSettle. Its reply is one text: ReadSettled reads it.
[[nodiscard]] std::string OpenRecord(std::string_view record);
// A record that may not have been written, and how long it lasts if it was not.
struct UnsureRecord {
  std::string record;
  uint64_t lasts_ms = 0;
};
[[nodiscard]] SmallCall SettleCall(const Digest& token, uint64_t actual,
                                   const UnsureRecord* unsure = nullptr);
// The record without settling it, and it lasts so long from now on: for renewing what is reserved.
[[nodiscard]] SmallCall KeepCall(const Digest& token, uint64_t lasts_ms,
                                 const UnsureRecord* unsure = nullptr);

enum class SettleReading : uint8_t { kOpen, kSettledBefore, kGone, kBad };
struct SettledRecord {
  SettleReading reading = SettleReading::kBad;
  uint64_t lasts_ms = 0;    // from now on
  uint64_t actual = 0;      // kSettledBefore: what it was settled with
  std::string_view record;  // kOpen, kSettledBefore: points into the reply
};
[[nodiscard]] SettledRecord ReadSettled(std::string_view reply);

}  // namespace weir::script
