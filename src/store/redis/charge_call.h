// A question to the store as a script call, and its answer as decisions. No sockets, no wire
// format: keys and arguments are texts, replies are the integers of the script's flat array.
//
//   ChargeCall call;                            // kept and used again: then nothing is allocated
//   call.Encode(asks, {.id = &id});
//   ... EVALSHA Get(call.script()).sha1 <n> call.keys() call.arguments() ...
//   switch (call.Decode(integers, decisions, marks)) { ... }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weir/decision.h"

#include "store/redis/key_name.h"
#include "store/redis/script_set.h"
#include "store/redis/shared_plan.h"
#include "store/redis/text_list.h"

namespace weir::script {

inline constexpr uint64_t kAnyWait = ~uint64_t{0};

// One quota asked for one key. The plan and the key's digest go together: plan->kind().
struct Ask {
  const SharedPlan* plan = nullptr;
  Digest key{};
  uint64_t cost = 1;
  ChargeMode mode = ChargeMode::kAdmit;
  bool apart = false;               // decided by itself, without a say in the others
  uint64_t max_wait_ns = kAnyWait;  // queues only
  uint64_t lease_us = 0;            // holds only; 0: the quota's
};

// The state right after a charge, enough to give it back. charged == 0: nothing to give back.
struct Mark {
  std::array<uint64_t, 4> words{};  // holds: the first one is the fence
  uint32_t charged = 0;
};

enum class Reading : uint8_t {
  kDone,
  kAgain,  // the store's clock is outside of the calendar periods that were sent: encode again
  kBad,    // not a reply of this script: count it as a failure of the store
};

// Who charged under an id, until somebody else is told of it: who was told nothing may undo it.
// Letters, which stand apart from the numbers of the record.
class Claim {
 public:
  static constexpr size_t kLetters = 16;

  Claim() = default;  // nobody's: what is charged is not undone
  explicit Claim(uint64_t number) noexcept {
    for (char& letter : text_) {
      letter = static_cast<char>('a' + (number & 15));
      number >>= 4;
    }
  }
  [[nodiscard]] std::string_view view() const noexcept {
    return {text_.data(), text_[0] == '\0' ? 0 : text_.size()};
  }

 private:
  std::array<char, kLetters> text_{};
};

struct CallOptions {
  const Digest* id = nullptr;      // given: charged once however often it comes
  uint64_t id_memory_ms = 60'000;  // for how long
  Claim claim{};                   // with an id
  bool tells_nobody = false;       // with a claim: the answer is only for whoever may undo it
  // Roughly the store's time, in Unix microseconds: for calendar quotas, which are sent with the
  // periods around it. 0: the time of the last reply.
  int64_t around_us = 0;
  int64_t now_us = 0;  // 0: the store's own clock; else this, for tests
  // False: nothing will be given back, and nobody asks for the time. The reply may be shorter.
  bool marks = true;
};

class ChargeCall {
 public:
  static constexpr size_t kAsksMax = 64;

  // One ask becomes its own script, several become kMany. The asks are copied.
  // REQUIRES: 1 to kAsksMax asks with different keys, all of one slot.
  void Encode(std::span<const Ask> asks, const CallOptions& options = {});

  [[nodiscard]] Id script() const noexcept { return script_; }
  [[nodiscard]] std::span<const std::string_view> keys() const noexcept { return texts_.keys(); }
  [[nodiscard]] std::span<const std::string_view> arguments() const noexcept {
    return texts_.arguments();
  }

  // As many decisions as asks, and marks unless empty; without CallOptions::marks they stay empty.
  // After kAgain: Encode, with `now_us()` known.
  Reading Decode(std::span<const int64_t> reply, std::span<Decision> decisions,
                 std::span<Mark> marks = {});
  // The store's time in the reply that was decoded last, in Unix microseconds; a short one has
  // none.
  [[nodiscard]] int64_t now_us() const noexcept { return now_us_; }
  // Whether that reply says that all asks but those apart were admitted.
  [[nodiscard]] bool all_admitted() const noexcept { return all_admitted_; }
  // Whether it is the answer to an earlier call with the same id.
  [[nodiscard]] bool repeated() const noexcept { return repeated_; }

 private:
  Reading DecodeShort(int64_t reply, Decision& decision, std::span<Mark> marks);
  Reading DecodeMany(std::span<const int64_t> reply, std::span<Decision> decisions,
                     std::span<Mark> marks);

  std::vector<Ask> asks_;
  TextList texts_;
  Id script_ = Id::kBucket;
  int64_t now_us_ = 0;
  bool all_admitted_ = false;
  bool repeated_ = false;
  bool short_ = false;  // asked for the short reply
};

}  // namespace weir::script
