// One request on its way through the store, all or nothing.
//
//   what this node knows already: impossible asks, remembered denials
//     -> keys of one group: one script; of several: one parallel round trip of charges
//        (before it, where a key was last near its limit, one that only looks)
//     -> what the store did not answer: by failure policy
//     -> if one quota denied: refunds of the others, for which nobody waits
//
// Lives on its lane's loop. Kept and used again, so that a decision allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weir/shared_store.h"

#include "redis/call.h"
#include "shared/completion.h"
#include "shared/key_book.h"
#include "shared/lane.h"
#include "store/redis/charge_call.h"

namespace weir::shared {

class Deciding {
 public:
  explicit Deciding(Lane& lane) noexcept : lane_(lane) {}
  Deciding(const Deciding&) = delete;
  Deciding& operator=(const Deciding&) = delete;
  ~Deciding();

  // `completion` is told once, at once if no call is needed; then `self`, which is this, goes back
  // to its lane. REQUIRES: the other two live until then.
  void Start(SharedRequest& request, Completion& completion, std::unique_ptr<Deciding> self);

 private:
  enum class Fate : uint8_t {
    kOpen,     // not decided yet
    kSettled,  // decided without the store
    kStore,    // by the store
    kFailed,   // the store did not answer
  };

  struct Part {
    SharedAsk* ask = nullptr;
    const FleetQuota* quota = nullptr;
    script::Digest digest{};
    uint32_t group = 0;
    Fate fate = Fate::kOpen;
    bool checked = false;  // looked at first
    bool settles = false;  // charged to this node's share as well
    bool repeats = false;  // answered by this node before, under the same id
    MayHaveRun may_have_run = MayHaveRun::kNo;
    StoreTrouble trouble = StoreTrouble::kNone;
    script::Mark mark;
    LocalReceipt local;
    Receipt hold;  // a local one

    [[nodiscard]] BookKey book_key() const noexcept { return {digest[0], digest[1]}; }
    [[nodiscard]] bool has_say() const noexcept { return !ask->apart; }
  };

  // Some asks in one script.
  class Group final : public redis::Call {
   public:
    explicit Group(Deciding& owner) noexcept : owner_(owner) {}

    void Submit();
    void OnReply(const codec::resp::Reply& reply) noexcept override;
    void OnFailure(const redis::Failure& failure) noexcept override;

    std::vector<Part*> parts;
    ChargeMode mode = ChargeMode::kAdmit;

   private:
    friend class Deciding;

    void Fail(StoreTrouble trouble, MayHaveRun may_have_run) noexcept;

    Deciding& owner_;
    script::ChargeCall call_;
    std::vector<script::Ask> asks_;
    std::vector<Decision> decisions_;
    std::vector<script::Mark> marks_;
    std::vector<int64_t> integers_;
    int64_t asked_ns_ = 0;
    bool again_ = false;
    bool may_have_run_ = false;  // by any of its tries
  };

  enum class Phase : uint8_t { kChecking, kCharging };

  void Prepare();
  void SettleRepeated();
  void SettleKnown();
  void HoldToShare(Part& part);
  void LeaveShare(Part& part) noexcept;
  void FillLastKnown(Part& part) const noexcept;
  [[nodiscard]] bool MustCheckFirst() const noexcept;
  // Sends all parts that are open, or only those that are to be looked at first.
  void Send(Phase phase);
  Group& NewGroup(ChargeMode mode);
  void RepayFirst(const Part& part);
  void Answered();
  void AfterChecking();
  void Finish();
  void ApplyPolicy(Part& part, ChargeMode mode) noexcept;
  void TakeLocally(Part& part, ChargeMode mode) noexcept;
  void TakeHold(Part& part, ChargeMode mode) noexcept;
  void TakeBack(Part& part) noexcept;
  void MakeSure(bool admitted);
  void UndoGroups();
  void WriteReceipt(Part& part) const noexcept;
  [[nodiscard]] bool AnyDenied() const noexcept;
  [[nodiscard]] bool all_or_nothing() const noexcept {
    return request_->mode == ChargeMode::kAdmit;
  }

  Lane& lane_;
  SharedRequest* request_ = nullptr;
  Completion* completion_ = nullptr;
  std::unique_ptr<Deciding> self_;  // while it runs
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<Group>> groups_;  // the first groups_used_ are this request's
  size_t groups_used_ = 0;
  size_t open_ = 0;           // groups under way
  bool wants_marks_ = false;  // a group by itself has nothing to take back
  Phase phase_ = Phase::kCharging;
  script::Digest id_{};
  script::Claim claim_;  // on what is charged under the id
  int64_t now_ns_ = 0;
};

// Why this can never be answered as asked.
[[nodiscard]] Problem ProblemOf(const SharedAsk& ask, const Quota& quota) noexcept;

}  // namespace weir::shared
