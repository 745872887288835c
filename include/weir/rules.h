// Rules at work: what a request is charged for, by a rule set on a store.
//
//   auto parsed = weir::RuleSet::Load("rules.yaml");
//   auto store = weir::MemoryStore::Create();
//   auto limiter = weir::RuleLimiter::Create(parsed.rules, *store);
//   const weir::Attribute request[] = {{"ip", "203.0.113.7"}, {"path", "/login"}};
//   weir::RuleVerdict verdict = (*limiter)->Check(request);
//   if (!verdict.allowed()) Reply429(verdict.rule(), verdict.retry_after);
//
// Every call may be made from any thread. Checks lock no more than those of a Limiter do, and
// neither allocate nor throw, but for rules with regular expressions, which allocate as RE2 does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/decision.h"
#include "weir/limiter.h"
#include "weir/result.h"
#include "weir/rule_set.h"
#include "weir/shared_store.h"
#include "weir/store.h"
#include "weir/time.h"

namespace weir {

namespace rules {
struct BoundSet;
}

// Why a request was refused, other than by a quota.
enum class RuleRefusal : uint8_t {
  kNone,
  kBlocked,            // by the block list, or by a rule with `block`
  kMissing,            // a rule with `on-missing: deny` did not find what it counts by
  kAttributeTooLong,   // one that a rule uses, above kMaxAttributeBytes
  kTooManyAttributes,  // above kMaxAttributes
  kKeysTooLong,        // all keys together do not fit into a reply
  kBadMode,            // a request's mode is none of kAdmit, kCountAlways, kDryRun
};

[[nodiscard]] std::string_view ToString(RuleRefusal why) noexcept;

// With a shared store only: what is admitted is kept there under a token, until it is settled or
// its time is over (SharedStore::Reserve).
struct RuleReservation {
  std::string_view token;
  Duration lasts{};
};

struct RuleRequest {
  std::span<const Attribute> attributes;
  Cost cost = 1;  // 0 peeks; times what the rule says a request costs
  // kDryRun answers as kAdmit would and charges nothing; kCountAlways counts what has happened.
  ChargeMode mode = ChargeMode::kAdmit;
  std::optional<Timestamp> now = std::nullopt;  // none: the clock is read
  std::optional<WallTime> wall = std::nullopt;  // for what expires; none: the clock is read
  bool keep_receipts = false;                   // so that GiveBack can be called
  // With a shared store only: what comes again with the same id is charged once and answered alike.
  std::string_view id{};
  const RuleReservation* reserve = nullptr;
};

// One quota that a request met.
struct RulePart {
  const RuleView* rule = nullptr;
  const RuleQuota* quota = nullptr;
  std::string_view key;
  Decision decision;
  Cost cost = 1;  // what was asked of it
  bool shadow = false;
  Limiter* limiter = nullptr;           // lives as long as the RuleLimiter
  const SharedQuota* shared = nullptr;  // with a shared store: what it was asked for
};

// The answer. The caller's, to be used again and again; large, so not on a small stack.
class RuleReply {
 public:
  static constexpr size_t kKeyBytes = 16384;

  RuleReply() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the arrays as they are
  RuleReply(const RuleReply&) = delete;
  RuleReply& operator=(const RuleReply&) = delete;

  Outcome outcome = Outcome::kAllowed;
  Problem problem = Problem::kNone;
  RuleRefusal why = RuleRefusal::kNone;
  const RuleView* refusing = nullptr;  // the rule behind `why`; null for the block list
  Duration retry_after{};              // the longest of the refusing parts
  Duration start_after{};              // allowed: the latest start that a queue gave
  uint64_t version = 0;                // of the rule set that decided
  // With a shared store: why it did not decide what was refused, if that is the reason.
  StoreTrouble trouble = StoreTrouble::kNone;

  [[nodiscard]] bool allowed() const noexcept { return outcome == Outcome::kAllowed; }

  // All that was asked, shadow parts last; each kind in the order of the file. What they point to
  // lives as long as the pin.
  [[nodiscard]] std::span<const RulePart> parts() const noexcept { return {parts_, size_}; }
  // Refused: the longest retry_after of the refusing. Allowed: the least left of its limit, of what
  // was counted. Null if no quota speaks. Never a shadow part.
  [[nodiscard]] const RulePart* deciding() const noexcept { return deciding_; }

 private:
  friend class RuleLimiter;
  friend class RuleCheck;

  const RulePart* deciding_ = nullptr;
  size_t size_ = 0;
  size_t key_bytes_ = 0;
  // Written before they are read, as far as the sizes above say.
  union {
    RulePart parts_[kMaxCharges];
  };
  union {
    Receipt receipts_[kMaxCharges];
    SharedReceipt shared_receipts_[kMaxCharges];
  };
  bool has_receipts_ = false;
  std::array<char, kKeyBytes> keys_;
};

// The answer in short, with nothing in it that needs a pin.
class RuleVerdict {
 public:
  Outcome outcome = Outcome::kAllowed;
  RuleRefusal why = RuleRefusal::kNone;
  Duration retry_after{};
  std::optional<Decision> decision;  // of the deciding quota

  [[nodiscard]] bool allowed() const noexcept { return outcome == Outcome::kAllowed; }
  // The deciding rule's name; empty if none speaks.
  [[nodiscard]] std::string_view rule() const noexcept { return {name_.data(), name_bytes_}; }

 private:
  friend class RuleLimiter;

  std::array<char, kMaxRuleNameBytes> name_{};
  size_t name_bytes_ = 0;
};

// What became of one rule for one request.
enum class RuleFate : uint8_t {
  kApplies,
  kShadow,        // counted, without a say
  kNotMatched,    // a condition failed
  kLessSpecific,  // another rule of its group took its place
  kMissing,       // what it counts by is absent
  kNotInCanary,
  kDisabled,
  kExpired,
};

[[nodiscard]] std::string_view ToString(RuleFate fate) noexcept;

struct ExplainedQuota {
  std::string text;
  std::string bound;
  Decision decision;  // as it would be; nothing was charged
};

struct ExplainedRule {
  std::string rule;
  std::string group;
  RuleFate fate = RuleFate::kNotMatched;
  std::string reason;  // "method is "GET", not POST"
  std::string per;
  std::string key;
  std::string tier;  // the variant that was taken; empty: that for all
  std::vector<ExplainedQuota> quotas;
};

struct Explanation {
  Outcome outcome = Outcome::kAllowed;
  RuleRefusal why = RuleRefusal::kNone;
  std::string list;      // the entry of the block or allow list that decided, if one did
  std::string deciding;  // the rule that speaks; empty: none
  Duration retry_after{};
  uint64_t version = 0;
  std::vector<ExplainedRule> rules;  // every one, in the order of the file
};

[[nodiscard]] std::string ToText(const Explanation& explanation);
[[nodiscard]] std::string ToJson(const Explanation& explanation);

// What a rule has done since the RuleLimiter was made; reloads keep it.
struct RuleCounts {
  std::string rule;
  uint64_t allowed = 0;
  uint64_t denied = 0;                      // by one of its quotas
  uint64_t refused = 0;                     // by `block`, `on-missing: deny`, or for a Problem
  uint64_t shadow_denied = 0;               // would have been
  std::array<uint64_t, kBases> by_basis{};  // decisions of its quotas, by weir::Basis
  // Over nine in ten of the last 10,000 or more charges met a key that owed nothing: the rule
  // hardly limits anything. Often somebody counts by a request id.
  bool meets_fresh_keys = false;
};

// What Reset came to: one for each quota that the request meets.
struct RuleReset {
  std::string rule;
  std::string quota;
  ResetOutcome outcome = ResetOutcome::kUnknown;
};

// An IPv6 address; IPv4 as ::ffff:192.0.2.1.
using AddressBytes = std::array<uint8_t, 16>;

// What is known of where an address is.
struct AddressFacts {
  uint32_t asn = 0;               // the number of its network; 0: not known
  std::array<char, 2> country{};  // ISO 3166: "DE"; zeros: not known
};

// Where the attributes `asn` and `country` come from. Asked only for requests to rules that use
// one of them, from any thread.
class AddressSource {
 public:
  virtual ~AddressSource() = default;
  [[nodiscard]] virtual AddressFacts Find(const AddressBytes& address) const noexcept = 0;
};

struct RuleLimiterOptions {
  // The store's own, if it was given one. Must outlive the limiter. Decides what has expired.
  const Clock* clock = nullptr;
  uint64_t fleet_secret = 0;      // for canaries: the same on every node of a fleet
  uint8_t ipv6_prefix_bits = 64;  // how much of an IPv6 address is one client; 1 to 128
  uint32_t top_keys = 0;          // as in LimiterOptions, for each quota of each rule
  // Given: rules count there, together with other processes, and Check takes as long as it takes.
  // The memory store then holds nothing of them.
  std::shared_ptr<SharedStore> shared = nullptr;
  // Must outlive the limiter. With it `asn` and `country` are what it says of `ip`, whatever the
  // request says of itself; without it they are attributes like any other.
  const AddressSource* addresses = nullptr;
};

class RuleLimiter {
 public:
  // Holds a version of the rules. While one is held Apply waits, so hold it for as long as one
  // answer takes, not longer, and let go of it in the thread that took it. (With a shared store,
  // for which checks may have to wait, it keeps a version alive instead, and nobody waits for it.)
  class [[nodiscard]] Pin {
   public:
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&&) = delete;
    ~Pin();

    // The rules that this pin decides by.
    [[nodiscard]] const RuleSet& rules() const noexcept;
    [[nodiscard]] std::shared_ptr<const RuleSet> share() const noexcept;

   private:
    friend class RuleLimiter;
    Pin(RuleLimiter* owner, const void* outer, rules::BoundSet* set) noexcept
        : owner_(owner), outer_(outer), set_(set) {}
    explicit Pin(std::shared_ptr<rules::BoundSet> kept) noexcept
        : set_(kept.get()), kept_(std::move(kept)) {}

    RuleLimiter* owner_ = nullptr;  // none: nothing is held up
    const void* outer_ = nullptr;   // what this thread held before
    rules::BoundSet* set_ = nullptr;
    std::shared_ptr<rules::BoundSet> kept_;
  };

  static Result<std::unique_ptr<RuleLimiter>> Create(std::shared_ptr<const RuleSet> rules,
                                                     std::shared_ptr<MemoryStore> store,
                                                     const RuleLimiterOptions& options = {});

  RuleLimiter(const RuleLimiter&) = delete;
  RuleLimiter& operator=(const RuleLimiter&) = delete;
  ~RuleLimiter();

  // Changes the rules as a whole, or, on an error, nothing. Each decision is by one version. What
  // keys owe is carried over where a rule of the same name had a quota in the same place, so a
  // raise never denies. REQUIRES: the calling thread holds no pin.
  Result<void> Apply(std::shared_ptr<const RuleSet> rules);

  Pin pin() noexcept;
  void Check(const Pin& pin, const RuleRequest& request, RuleReply& reply) noexcept;
  // In short, with a pin of its own.
  RuleVerdict Check(std::span<const Attribute> attributes, Cost cost = 1) noexcept;
  // Gives back what `reply` was charged, once, as far as it is still owed (Limiter::GiveBack). The
  // request must have asked for receipts; no pin is needed. Returns the units given back to the
  // quota that got the most.
  uint32_t GiveBack(RuleReply& reply, std::optional<Timestamp> now = std::nullopt) noexcept;

  // Starts the keys that a request is counted by anew (Limiter::Reset), under every rule that it
  // meets, or under the one of this name. None: it meets no quota there. Not for the hot path.
  std::vector<RuleReset> Reset(std::span<const Attribute> attributes, std::string_view rule = {},
                               std::optional<Timestamp> now = std::nullopt);

  // Every rule: matched or why not, key, quotas, what is left. Consumes nothing.
  [[nodiscard]] Explanation Explain(std::span<const Attribute> attributes, Cost cost = 1);

  // The set that decides now.
  [[nodiscard]] std::shared_ptr<const RuleSet> rules() const;
  // In the order of the file. Not for the hot path.
  [[nodiscard]] std::vector<RuleCounts> Counts() const;
  // Of one rule, over all its quotas; none if there is no such rule or RuleLimiterOptions::top_keys
  // is 0.
  [[nodiscard]] std::vector<TopKey> TopKeys(std::string_view rule, size_t most) const;

  struct State;  // internal
  [[nodiscard]] State& state() noexcept { return *state_; }

 private:
  explicit RuleLimiter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weir
