#!/usr/bin/env python3
"""weir from Python through ctypes: a thin wrapper to copy, and a demo when run.

    limiter = Limiter("100/min burst 20")
    decision = limiter.check("user:42")
    if not decision.allowed:
        return too_many_requests(decision.retry_after)

Threads may share a limiter; ctypes lets go of the interpreter's lock during a call. After os.fork a
child counts by itself: make limiters in the worker (gunicorn: post_fork), not before.
WEIR_LIBRARY names the library if it is not where the system looks for libraries.
"""

import ctypes
import os

ABI_VERSION = 1
ADMIT, COUNT_ALWAYS, UP_TO, DRY_RUN = range(4)
PRECISION_EXACT, PRECISION_SKETCH = range(2)
HOT_KEYS_LEASED, HOT_KEYS_PLAIN = range(2)


class Error(ValueError):
    """A call that was wrong; the message names the argument and what is allowed."""


class StoreOptions(ctypes.Structure):
    """Fields left at 0 have their defaults; weir.h explains them."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("budget_bytes", ctypes.c_uint64),
                ("max_skew_ns", ctypes.c_int64), ("fleet_secret", ctypes.c_uint64),
                ("overflow", ctypes.c_uint32), ("keys", ctypes.c_uint32),
                ("huge_pages", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("record_percent", ctypes.c_uint32), ("wide_percent", ctypes.c_uint32),
                ("sketch_percent", ctypes.c_uint32), ("hot_keys", ctypes.c_uint32)]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(StoreOptions), **fields)


class LimiterOptions(ctypes.Structure):
    """A limiter's own, wherever its state lives; fields left at 0 have their defaults."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("precision", ctypes.c_uint32),
                ("top_keys", ctypes.c_uint32), ("top_keys_sample", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(LimiterOptions), **fields)


class Decision(ctypes.Structure):
    """What a check answers."""

    _fields_ = [("retry_after_ns", ctypes.c_int64), ("reset_after_ns", ctypes.c_int64),
                ("limit", ctypes.c_uint32), ("remaining", ctypes.c_uint32),
                ("charged", ctypes.c_uint32), ("_outcome", ctypes.c_uint8),
                ("_basis", ctypes.c_uint8), ("_problem", ctypes.c_uint8),
                ("_allowed", ctypes.c_uint8)]

    allowed = property(lambda self: self._allowed == 1)
    outcome = property(lambda self: _library.weir_outcome_name(self._outcome).decode())
    basis = property(lambda self: _library.weir_basis_name(self._basis).decode())
    problem = property(lambda self: _library.weir_problem_name(self._problem).decode())
    retry_after = property(lambda self: self.retry_after_ns / 1e9, doc="seconds")
    start_after = property(lambda self: self.retry_after if self.allowed else 0.0,
                           doc="seconds to wait before starting; 0 unless the quota is a queue")


class Receipt(ctypes.Structure):
    """Proof of a charge, for Limiter.give_back."""

    _fields_ = [("_opaque", ctypes.c_uint64 * 5)]


class Hold(ctypes.Structure):
    """What is held; `fence` grows with every hold of a key. For Limiter.release and renew."""

    _fields_ = [("_receipt", Receipt), ("fence", ctypes.c_uint64)]


class Settlement(ctypes.Structure):
    """What settling a reservation came to."""

    _fields_ = [("actual", ctypes.c_uint64), ("given_back", ctypes.c_uint32),
                ("charged", ctypes.c_uint32), ("_outcome", ctypes.c_uint32),
                ("_reserved", ctypes.c_uint32), ("decision", Decision)]

    outcome = property(lambda self: ("settled", "before", "gone", "refused")[self._outcome])


class Stats(ctypes.Structure):
    """Counters of a store."""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "decisions", "denials", "refusals", "overflow", "reclaims", "lost_races", "slots",
        "live_slots", "budget_bytes", "huge_pages", "records", "promotions", "leases",
        "leases_returned", "lease_units_returned")]


class TopKey(ctypes.Structure):
    """A key that is asked for often; between count - error and count of what was noted is its."""

    _fields_ = [("count", ctypes.c_uint64), ("denied", ctypes.c_uint64), ("error", ctypes.c_uint64),
                ("_length", ctypes.c_uint32), ("_cut", ctypes.c_uint32),
                ("_key", ctypes.c_char * 64)]

    key = property(lambda self: bytes(self)[type(self)._key.offset:][:self._length],
                   doc="bytes; the first 64 of them if cut")
    cut = property(lambda self: self._cut == 1)


def _load():
    library = ctypes.CDLL(os.environ.get("WEIR_LIBRARY", f"libweir.so.{ABI_VERSION}"))
    handle, size, out = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER
    key = [ctypes.c_char_p, size]
    signatures = {
        "weir_abi_version": (ctypes.c_uint32, []),
        "weir_last_error": (ctypes.c_char_p, []),
        "weir_outcome_name": (ctypes.c_char_p, [ctypes.c_int]),
        "weir_basis_name": (ctypes.c_char_p, [ctypes.c_int]),
        "weir_problem_name": (ctypes.c_char_p, [ctypes.c_int]),
        "weir_store_create": (ctypes.c_int, [out(StoreOptions), out(handle)]),
        "weir_store_free": (None, [handle]),
        "weir_limiter_create_with": (ctypes.c_int, [ctypes.c_char_p, handle, out(StoreOptions),
                                                    out(LimiterOptions), out(handle)]),
        "weir_limiter_update": (ctypes.c_int, [handle, ctypes.c_char_p]),
        "weir_limiter_stats": (ctypes.c_int, [handle, out(Stats)]),
        "weir_top_keys": (ctypes.c_int, [handle, out(TopKey), size]),
        "weir_limiter_free": (None, [handle]),
        "weir_check": (ctypes.c_int, [handle, *key, ctypes.c_uint64, out(Decision)]),
        "weir_charge": (ctypes.c_int, [handle, *key, ctypes.c_uint64, ctypes.c_int, out(Receipt),
                                       out(Decision)]),
        "weir_give_back": (ctypes.c_int64, [handle, out(Receipt)]),
        "weir_reset": (ctypes.c_int, [handle, *key]),
        "weir_acquire": (ctypes.c_int, [handle, *key, ctypes.c_uint64, ctypes.c_int64, out(Hold),
                                        out(Decision)]),
        "weir_release": (ctypes.c_int, [handle, out(Hold)]),
        "weir_renew": (ctypes.c_int, [handle, out(Hold), ctypes.c_int64]),
        "weir_reserve": (ctypes.c_int, [handle, *key, ctypes.c_uint64, ctypes.c_int64,
                                        out(ctypes.c_uint64), out(Decision)]),
        "weir_settle": (ctypes.c_int, [handle, ctypes.c_uint64, ctypes.c_uint64, out(Settlement)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.weir_abi_version() != ABI_VERSION:
        raise ImportError(f"libweir has ABI version {library.weir_abi_version()}, "
                          f"this wrapper was written for {ABI_VERSION}")
    return library


_library = _load()


def _checked(status):
    if status < 0:
        raise Error(_library.weir_last_error().decode())
    return status


def _bytes(key):
    return key.encode() if isinstance(key, str) else key


class Store:
    """Memory of a fixed size for several limiters: Store(budget_bytes=16 << 20)."""

    def __init__(self, **options):
        self._handle = ctypes.c_void_p()
        _checked(_library.weir_store_create(StoreOptions(**options), self._handle))

    def __del__(self):
        _library.weir_store_free(self._handle)


class Limiter:
    """A quota counted by key, on a store or, without one, with memory of its own by `options`."""

    def __init__(self, quota, store=None, own=None, **options):
        self._handle = ctypes.c_void_p()
        if store is not None and options:
            raise TypeError(f"{next(iter(options))}: set it on the store")
        _checked(_library.weir_limiter_create_with(
            quota.encode(), None if store is None else store._handle,
            StoreOptions(**options) if store is None else None, own, self._handle))

    def __del__(self):
        _library.weir_limiter_free(self._handle)

    def check(self, key, cost=1):
        """Takes `cost` units or none. A cost of 0 only looks."""
        key, decision = _bytes(key), Decision()
        _checked(_library.weir_check(self._handle, key, len(key), cost, ctypes.byref(decision)))
        return decision

    def charge(self, key, cost=1, mode=ADMIT):
        """(decision, receipt) of a charge that give_back can undo."""
        key, decision, receipt = _bytes(key), Decision(), Receipt()
        _checked(_library.weir_charge(self._handle, key, len(key), cost, mode, receipt, decision))
        return decision, receipt

    def give_back(self, receipt):
        """The units given back, as far as they were still owed."""
        return _checked(_library.weir_give_back(self._handle, receipt))

    def reset(self, key):
        """Starts a key anew; False: there was nothing to forget."""
        key = _bytes(key)
        return _checked(_library.weir_reset(self._handle, key, len(key))) == 1

    def acquire(self, key, cost=1, lease=0.0):
        """(decision, hold) with a concurrency quota. A lease, in seconds, of 0 is the quota's."""
        key, decision, hold = _bytes(key), Decision(), Hold()
        _checked(_library.weir_acquire(self._handle, key, len(key), cost, round(lease * 1e9), hold,
                                       decision))
        return decision, hold

    def release(self, hold):
        """False if it had ended already."""
        return _checked(_library.weir_release(self._handle, hold)) == 1

    def renew(self, hold, lease=0.0):
        """False if it has ended, and may be somebody else's."""
        return _checked(_library.weir_renew(self._handle, hold, round(lease * 1e9))) == 1

    def reserve(self, key, estimate, lasts=0.0):
        """(decision, number) of a charge to be settled within `lasts` seconds (0: 10 minutes)."""
        key, decision, number = _bytes(key), Decision(), ctypes.c_uint64()
        _checked(_library.weir_reserve(self._handle, key, len(key), estimate, round(lasts * 1e9),
                                       number, decision))
        return decision, number.value

    def settle(self, reservation, actual):
        """What was used in the end; counts once."""
        settlement = Settlement()
        _checked(_library.weir_settle(self._handle, reservation, actual, settlement))
        return settlement

    def update(self, quota):
        """Changes the quota; what keys owe is carried over."""
        _checked(_library.weir_limiter_update(self._handle, quota.encode()))

    def top_keys(self, most):
        """The most frequent keys, if it was made with own=LimiterOptions(top_keys=...)."""
        keys = (TopKey * most)()
        return keys[:_checked(_library.weir_top_keys(self._handle, keys, most))]

    def stats(self):
        stats = Stats(struct_size=ctypes.sizeof(Stats))
        _checked(_library.weir_limiter_stats(self._handle, stats))
        return stats


def main():
    limiter = Limiter("5/s burst 3", budget_bytes=1 << 20)
    for request in range(1, 6):
        decision = limiter.check("user:42")
        print(f"request {request}: {decision.outcome}, {decision.remaining} left, "
              f"retry after {decision.retry_after:.3f} s")


if __name__ == "__main__":
    main()
