// The memory table's protocol as a machine of single steps, for exhaustive checking.
//
// A State holds every shared word and every thread's registers in plain bytes. A step is one access
// to shared memory (load, store, compare-and-swap, or another read-modify-write) together with the
// local work up to the next one. Memory is sequentially consistent; weaker orders are argued beside
// the atomics of the table itself. README.md gives the rules in words, and why each is there.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::model {

// Instants and amounts are small whole ticks; one unit costs kUnit of them (GCRA's T).
inline constexpr int kUnit = 4;
inline constexpr int kMaxSlots = 2;
inline constexpr int kMaxLines = 2;
inline constexpr int kMaxThreads = 3;
inline constexpr int kMaxOps = 2;          // per thread
inline constexpr int kMaxKeys = 3;         // keys are 1, 2, 3; 0 marks a slot never used
inline constexpr int kInitialEntries = 3;  // charges that were made before the program starts
inline constexpr int kMaxEntries = kInitialEntries + 4;

// State word: TAT in the low bits. The two flags exist in the wide layout only.
inline constexpr uint8_t kLocked = 0x80;   // the identity beside this word is being changed
inline constexpr uint8_t kLowered = 0x40;  // a refund lowered this TAT under the present identity
inline constexpr uint8_t kTatMask = 0x3f;

// For values that are known to fit.
constexpr uint8_t Byte(std::integral auto value) {
  return static_cast<uint8_t>(value);
}

constexpr int TatOf(uint8_t state) {
  return state & kTatMask;
}

enum class Layout : uint8_t {
  kCompact,  // identity and TAT in one word
  kWide,     // an identity word and a state word
};

// One broken rule each. kNone is the protocol as it should be built.
enum class Mutant : uint8_t {
  kNone,
  // Slots.
  kNoInsertLock,
  kReclaimByCallerClock,
  kFreshKeyIgnoresClock,
  kClockBeforeRescan,
  kNoLockBit,
  kIdentityBeforeState,
  kDenialWrites,
  kDenialKeepsLock,
  kBlindRewrite,
  // Refunds.
  kRefundIgnoresRefunds,
  kRefundIgnoresOwed,
  kRefundZeroes,
  kRefundUncapped,
  kRefundByCallerClock,
  kRefundUnlocked,
  kRefundCounterFirstUnlocked,
  kRefundLeavesNoMark,
  // Lines and epochs.
  kClearCurrentEpoch,
  kClearEarly,
  kEpochIgnoresSkew,
  kBeyondHomeUnlocked,
  kReviveOnCurrentBit,
  kReviveIgnoresClock,
  kBlindIdentityStore,
  kNoOverflowBit,
};

enum class Property : uint8_t {
  kNone,
  kGcra,       // P1: what was admitted, net of refunds, obeys the bound in every window of stamps
  kCovered,    // P1 in advance: the key's TAT is at least what its net charges require
  kOneSlot,    // P2: at most one live slot per key
  kReachable,  // P3: a live key is neither evicted nor lost nor cut off from its home
  kPaid,       // P4: given back <= paid, per receipt
  kDenialSilent,  // P5: a denied charge changed no identity and no state
  kProgress,      // some unfinished thread can step
};
inline constexpr int kProperties = 8;

enum class Kind : uint8_t { kCharge, kRefund };

struct Op {
  Kind kind = Kind::kCharge;
  uint8_t key = 0;
  uint8_t now = 0;  // the stamp; with Setup::clocked, what is added to g when the operation starts
  uint8_t entry = 0;  // kRefund: which charge is given back

  bool operator==(const Op&) const = default;
  auto operator<=>(const Op&) const = default;
};

struct Program {
  int threads = 0;
  std::array<std::vector<Op>, kMaxThreads> ops;

  // Where the charge of a thread's operation is logged. At most four operations in all.
  [[nodiscard]] int EntryOf(int thread, int op) const {
    return kInitialEntries + (threads == 2 ? kMaxOps * thread + op : thread);
  }
};

enum class Pc : uint8_t {
  kDone,
  // Charge, lock-free.
  kReadNow,
  kRaiseNewest,
  kReadRefunds,
  kScan,
  kScanOverflow0,
  kScanOverflow1,
  kLoadState,
  kLoadIdentity,
  kRecheck,
  kReadEpoch,
  kReadClock,
  kCas,
  kUndo,
  // Under the lock of the home's stripe.
  kLock,
  kRescan,
  kRescanOverflow0,
  kRescanOverflow1,
  kMissClock,
  kVictim,
  kInsertEpoch,
  kInsertOverflow,
  kInstall,
  kInstallIdentity,
  kInstallState,
  kHeldLoadState,
  kHeldLoadIdentity,
  kHeldClock,
  kHeldEpoch,
  kHeldOverflow,
  kHeldCas,
  kUnlockFinish,
  kUnlockRestart,
  kUnlockDeny,
  // Refund, under the same lock.
  kRefundNewest,
  kRefundRefunds,
  kRefundCas,
  kRefundCount,
};
inline constexpr int kPcs = static_cast<int>(Pc::kRefundCount) + 1;

struct Thread {
  uint8_t op = 0;
  Pc pc = Pc::kDone;
  uint8_t now = 0;
  uint8_t slot = 0;
  uint8_t identity = 0;  // as loaded
  uint8_t state = 0;     // as loaded
  uint8_t next = 0;      // the TAT to be written; in a refund, the amount
  uint8_t clock = 0;     // g, or in a refund the instant at which it is measured
  uint8_t bits = 0;      // overflow bits seen on the home line, or the epoch read
  uint8_t refunds = 0;   // the stripe's counter as read
  uint8_t wrote = 0;     // this operation has changed an identity or a state

  bool operator==(const Thread&) const = default;
};

// One charge: who has been admitted with which stamp, and how much of it still counts.
struct Entry {
  uint8_t stamp = 0;
  uint8_t net = 0;
  uint8_t mark = 0;     // receipt: TAT after the charge
  uint8_t refunds = 0;  // receipt: the stripe's counter, read before the charge's compare-and-swap
};

struct Sweeper {
  uint8_t step = 0;
  uint8_t slot = 0;
  uint8_t identity = 0;
  uint8_t state = 0;
  uint8_t clock = 0;
  uint8_t rewrites_left = 0;
};

// Only bytes, so that states can be hashed and compared as memory.
struct State {
  std::array<uint8_t, kMaxSlots> identity{};
  std::array<uint8_t, kMaxSlots> state{};
  std::array<uint8_t, kMaxLines> overflow{};  // bit e: the overflow bit of epoch e
  std::array<uint8_t, 2> lock{};              // per stripe: 1 + the holder
  std::array<uint8_t, 2> refunds{};           // per stripe: sum of all that was given back
  uint8_t clock = 0;                          // g, the table clock less the largest skew
  uint8_t newest = 0;                         // no stamp charged so far is newer
  uint8_t epoch = 0;
  uint8_t epoch_start = 0;
  uint8_t old_cleared = 0;  // the clearing pass over the old epoch's bits is complete
  uint8_t passes_left = 0;  // how often a key of another home may still pass line 0
  Sweeper sweeper;
  std::array<Entry, kMaxEntries> entries{};
  std::array<Thread, kMaxThreads> threads{};
  Property broken = Property::kNone;  // by the step that led here
  std::array<uint8_t, 4> padding{};
};
static_assert(sizeof(State) % sizeof(uint64_t) == 0);

// What surrounds a program: geometry, limits, initial words, what the environment may do.
struct Setup {
  std::string name;
  int tolerance = kUnit;  // GCRA's tau: kUnit times the burst
  int lines = 1;
  int slots_per_line = 1;
  std::array<uint8_t, kMaxKeys + 1> home{};           // line, per key
  std::array<uint8_t, kMaxKeys + 1> stripe{};         // per key
  std::array<uint8_t, kInitialEntries> entry_keys{};  // 0: no such entry
  State initial;
  std::vector<uint8_t> clock_values;  // g steps through these
  bool clocked = false;               // an operation reads its stamp from the clock when it starts
  bool receipts = false;              // charges keep what refunds need
  int epoch_length = 0;               // H, the longest time that a state lives; 0: no epochs
};

struct Variant {
  std::string name;
  Layout layout = Layout::kCompact;
  Mutant mutant = Mutant::kNone;
};

// Which steps were taken at all, so that a test can tell a proof from an empty search.
struct Coverage {
  std::array<uint64_t, kPcs> steps{};
  uint64_t admitted = 0;
  uint64_t denied = 0;
  uint64_t reclaimed = 0;
  uint64_t revived_beyond_home = 0;
  uint64_t given_whole = 0;
  uint64_t given_part = 0;
  uint64_t rewritten = 0;
  uint64_t cleared = 0;
  uint64_t swapped = 0;
};

// Takes steps of one program. Holds no state of its own between calls.
class TableModel {
 public:
  // Actions below kMaxThreads are steps of that thread; the others are the environment's.
  static constexpr int kAdvanceClock = kMaxThreads;
  static constexpr int kForeignPass = kMaxThreads + 1;
  static constexpr int kClearOld = kMaxThreads + 2;
  static constexpr int kSwapEpochs = kMaxThreads + 3;
  static constexpr int kSweep = kMaxThreads + 4;  // + slot
  static constexpr int kActions = kSweep + kMaxSlots;

  TableModel(const Variant& variant, const Setup& setup, const Program& program,
             Coverage& coverage);

  [[nodiscard]] State Initial() const;
  // Applies an action in place. False, with nothing changed: it is not possible here.
  bool Apply(int action, State& state, std::string* note = nullptr);
  // The first property that does not hold in this state.
  [[nodiscard]] Property Check(const State& state, uint32_t mask) const;
  [[nodiscard]] bool Finished(const State& state) const;

  [[nodiscard]] int KeyOfEntry(int entry) const { return entry_key_[static_cast<size_t>(entry)]; }

 private:
  enum class Scan : uint8_t { kLockFree, kHeld };

  [[nodiscard]] bool Is(Mutant mutant) const { return variant_.mutant == mutant; }
  [[nodiscard]] bool wide() const { return variant_.layout == Layout::kWide; }
  [[nodiscard]] int LineOf(int slot) const { return slot / setup_.slots_per_line; }
  [[nodiscard]] int slots() const { return setup_.lines * setup_.slots_per_line; }
  [[nodiscard]] int FirstSlot(int key) const;
  [[nodiscard]] bool Reclaimable(uint8_t state, int clock) const;
  [[nodiscard]] int RequiredTat(const State& state, int key, Property* broken) const;
  [[nodiscard]] bool Reaches(const State& state, int key, int slot) const;

  // table_model.cc
  bool StepThread(int thread, State& state);
  void Begin(Thread& x, const Op& op) const;
  void StartScan(Thread& x) const;
  void Finish(Thread& x);
  void Deny(Thread& x);
  void Admit(uint8_t tat, uint8_t refunds);
  void NextSlot(Scan scan);
  void EndOfLine(Scan scan);
  void Missed(Scan scan);
  void GoToLock();
  void DecideHit();
  void StepLockFree();
  bool StepHit();

  // table_model_locked.cc
  bool StepLocked();
  void StepRescan();
  void DecideMiss();
  void StepVictim();
  void StepInstall();
  bool StepHeld();
  void Unlock();
  void FoundHeld();
  void StepRefund();
  void DecideRefund();
  void Lower();

  // table_model_environment.cc
  bool StepEnvironment(int action, State& state);
  bool StepSweeper(int slot, State& state);

  void Note(const std::string& text) const;
  void WriteState(int slot, uint8_t value);
  [[nodiscard]] int key() const { return op_->key; }

  const Variant& variant_;
  const Setup& setup_;
  const Program& program_;
  Coverage& coverage_;
  std::array<int, kMaxEntries> entry_key_{};
  std::array<bool, kMaxEntries> has_receipt_{};

  // The step being taken.
  State* s_ = nullptr;
  Thread* x_ = nullptr;
  const Op* op_ = nullptr;
  int thread_ = 0;
  std::string* note_ = nullptr;
};

const char* NameOf(Property property);
const char* NameOf(Pc pc);

}  // namespace weir::model
