// Points at which a stress test may hold a thread up, and faults that it may plant to see that it
// would find them. In the library both come to nothing; a test that defines WEIR_TEST_HOOKS
// compiles these sources anew for itself.
#pragma once

#if defined(WEIR_TEST_HOOKS)

#include <atomic>
#include <cstdint>

namespace weir::store {

enum class TestPoint {
  kRead,           // before a state is loaded
  kIdentity,       // between a state and its identity
  kCommit,         // before a state is swapped
  kInstall,        // before a slot is taken
  kInstallId,      // slot locked, identity not yet written
  kInstallState,   // identity written, state not yet
  kInsertLock,     // before the stripe is locked
  kSearch,         // stripe locked, nothing read yet
  kFirstState,     // the key is known to have no slot
  kCarried,        // what a key without a record brings along is known, its list not yet locked
  kReckoned,       // what a give-back comes to is known, and not yet counted
  kRefund,         // counted, not yet given back
  kCleared,        // the sweeper has cleared an overflow bit
  kLeaseSpend,     // the owner has looked at its lease and will spend from it
  kLeaseSpent,     // it has, and does not know yet whether the lease was closed meanwhile
  kLeaseClosed,    // leases are closed, and not yet given back
  kSketchDecided,  // a charge is decided, and its word not yet swapped
  kSketchCharged,  // swapped, and the part not yet looked at again
  kSketchCut,      // a part is being cut, and nothing is folded yet
  kSketchFolded,   // all of it is, and the other half not yet given away
};

enum class Mutant {
  kNone,
  kNoInsertLock,        // installs of one key are not serialised
  kCallersClock,        // slots are reclaimed, and keys begin, by the caller's clock
  kFloorBeforeSearch,   // a fresh key begins at a floor that was read before it was missed
  kIdentityFirst,       // wide: the id is read before the state
  kRefundUncounted,     // receipts do not learn of other give-backs
  kRefundToNow,         // what is owed is reckoned as of the caller's stamp
  kEmptyIsExpired,      // an open window is reclaimed when all of it has been given back
  kUnprotectedHit,      // a hit beyond home does not set the current epoch's bits
  kClearUnpublished,    // overflow bits are cleared by a clock that nobody else has seen yet
  kCarriedPastReset,    // what a key brings along is not asked for again after a reset
  kLeaseNeverFades,     // units of a lease do not refill for others, nor end with their window
  kLeaseUncounted,      // a lease does not learn of give-backs
  kLeaseOverdrawn,      // a lease is spent although the state is over its limit
  kRefundBeforeSpends,  // what is owed is reckoned before leases learn of the give-back
  kLeaseUnasked,        // the owner does not look whether its lease was closed
  kHalfOfACut,          // of a part that is being cut only the lower half is looked at
  kChargedInACut,       // a charge does not look whether its part was cut meanwhile
};

extern std::atomic<Mutant> planted_mutant;

// Defined by the test.
void ReachTestPoint(TestPoint point) noexcept;

// What kIdentityFirst saw.
inline thread_local uint64_t early_identity = 0;

}  // namespace weir::store

#define WEIR_TEST_POINT(point) ::weir::store::ReachTestPoint(::weir::store::TestPoint::point)
#define WEIR_MUTANT(name) (::weir::store::planted_mutant.load() == ::weir::store::Mutant::name)
#define WEIR_BEFORE_STATE(identity) (::weir::store::early_identity = (identity))
#define WEIR_AFTER_STATE(identity) \
  (WEIR_MUTANT(kIdentityFirst) ? ::weir::store::early_identity : (identity))
#else
#define WEIR_TEST_POINT(point) static_cast<void>(0)
#define WEIR_MUTANT(name) false
#define WEIR_BEFORE_STATE(identity) static_cast<void>(0)
#define WEIR_AFTER_STATE(identity) (identity)
#endif
