#!/usr/bin/env python3
"""libweir.so from Python, through the wrapper of examples/python. WEIR_LIBRARY names it."""

import ctypes
import os
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python"))
import weir  # pylint: disable=wrong-import-position

SMALL = {"budget_bytes": 1 << 20}


class PythonTest(unittest.TestCase):
    def test_layouts_are_those_of_the_header(self):
        self.assertEqual(ctypes.sizeof(weir.Decision), 32)
        self.assertEqual(ctypes.sizeof(weir.Receipt), 40)
        self.assertEqual(ctypes.sizeof(weir.StoreOptions), 64)
        self.assertEqual(ctypes.sizeof(weir.LimiterOptions), 24)
        self.assertEqual(ctypes.sizeof(weir.TopKey), 96)
        self.assertEqual(ctypes.sizeof(weir.Hold), 48)
        self.assertEqual(ctypes.sizeof(weir.Settlement), 56)
        self.assertEqual(ctypes.sizeof(weir.Stats), 128)

    def test_denies_what_exceeds_the_burst(self):
        limiter = weir.Limiter("2/h burst 2", **SMALL)
        self.assertEqual([limiter.check("k").allowed for _ in range(3)], [True, True, False])
        decision = limiter.check("k")
        self.assertEqual((decision.outcome, decision.limit, decision.remaining), ("denied", 2, 0))
        self.assertEqual((decision.basis, decision.problem), ("store", "none"))
        self.assertTrue(1790 < decision.retry_after <= 1800)
        self.assertTrue(limiter.check("\u00e9t\u00e9").allowed)

    def test_says_when_to_start(self):
        limiter = weir.Limiter("1/h burst 2 queue", **SMALL)
        starts = [limiter.check("k").start_after for _ in range(3)]
        self.assertEqual((starts[0], starts[2]), (0, 0))  # the third is denied
        self.assertTrue(3590 < starts[1] <= 3600)

    def test_refuses_questions_without_an_answer(self):
        limiter = weir.Limiter("2/h burst 2", **SMALL)
        for key, cost, problem in (("", 1, "key_empty"), ("a\0b", 1, "key_has_nul"),
                                   ("x" * 65536, 1, "key_too_long"), ("k", 3, "cost_above_burst"),
                                   ("k", -1, "cost_too_large")):
            decision = limiter.check(key, cost)
            self.assertEqual((decision.outcome, decision.problem), ("refused", problem))

    def test_errors_name_the_argument(self):
        with self.assertRaisesRegex(weir.Error, "budget_bytes"):
            weir.Store(budget_bytes=1)
        with self.assertRaises(weir.Error):
            weir.Limiter("2 furlongs", **SMALL)
        limiter = weir.Limiter("2/h burst 2", **SMALL)
        with self.assertRaisesRegex(weir.Error, "^mode:"):
            limiter.charge("k", mode=9)
        with self.assertRaises(weir.Error):
            limiter.update("")
        with self.assertRaisesRegex(weir.Error, "sketch_percent"):
            weir.Store(sketch_percent=51)
        with self.assertRaisesRegex(weir.Error, "top_keys_sample"):
            weir.Limiter("2/h", own=weir.LimiterOptions(top_keys_sample=3), **SMALL)
        with self.assertRaisesRegex(TypeError, "budget_bytes: set it on the store"):
            weir.Limiter("2/h", weir.Store(**SMALL), budget_bytes=1 << 20)

    def test_limiters_on_a_store_outlive_its_handle(self):
        store = weir.Store(keys=1, **SMALL)
        first = weir.Limiter("1/h burst 1", store)
        second = weir.Limiter("5/h burst 5", store)
        del store
        self.assertTrue(first.check(b"a\0b").allowed)
        self.assertFalse(first.check(b"a\0b").allowed)
        self.assertTrue(second.check(b"a\0b").allowed)
        self.assertEqual(first.stats().decisions, 3)

    def test_gives_back_and_changes(self):
        limiter = weir.Limiter("10/h fixed-window from first-hit", **SMALL)
        decision, receipt = limiter.charge("k", 6)
        self.assertEqual(decision.charged, 6)
        self.assertEqual(limiter.give_back(receipt), 6)
        self.assertEqual(limiter.give_back(receipt), 0)
        self.assertEqual(limiter.charge("k", 20, weir.UP_TO)[0].charged, 10)
        limiter.update("15/h fixed-window from first-hit")
        self.assertEqual(limiter.check("k", 0).remaining, 5)

    def test_holds_and_releases(self):
        limiter = weir.Limiter("concurrency 1 lease 30s", **SMALL)
        decision, hold = limiter.acquire("k")
        self.assertTrue(decision.allowed and limiter.renew(hold))
        denied, none = limiter.acquire("k")
        self.assertEqual((denied.allowed, none.fence), (False, 0))
        self.assertEqual([limiter.release(hold), limiter.release(hold)], [True, False])
        self.assertGreater(limiter.acquire("k", lease=5)[1].fence, hold.fence)

    def test_reserves_and_settles(self):
        limiter = weir.Limiter("100/day fixed-window", record_percent=20, **SMALL)
        decision, number = limiter.reserve("k", 40)
        self.assertEqual(decision.remaining, 60)
        self.assertEqual(limiter.settle(number, 10).given_back, 30)
        again = limiter.settle(number, 10)
        self.assertEqual((again.outcome, again.actual), ("before", 10))
        self.assertEqual(limiter.check("k", 0).remaining, 90)

    def test_names_the_most_frequent_keys(self):
        own = weir.LimiterOptions(top_keys=8, top_keys_sample=1)
        limiter = weir.Limiter("5/h fixed-window", weir.Store(keys=1, **SMALL), own)
        for key in [b"a\0b"] * 7 + ["x" * 100] * 2:
            limiter.check(key)
        first, second = limiter.top_keys(8)
        self.assertEqual((first.key, first.cut, first.count, first.denied, first.error),
                         (b"a\0b", False, 7, 2, 0))
        self.assertEqual((second.key, second.cut, second.count), (b"x" * 64, True, 2))
        self.assertEqual(len(limiter.top_keys(1)), 1)
        self.assertEqual(limiter.top_keys(0), [])
        self.assertEqual(weir.Limiter("5/h", **SMALL).top_keys(5), [])

    def test_begins_in_the_sketch(self):
        own = weir.LimiterOptions(precision=weir.PRECISION_SKETCH)
        limiter = weir.Limiter("100/h fixed-window", own=own, sketch_percent=25, **SMALL)
        self.assertEqual(limiter.check("few").basis, "sketch")
        self.assertTrue(50 < sum(limiter.check("many").allowed for _ in range(200)) <= 100)
        stats = limiter.stats()
        self.assertEqual((stats.promotions, stats.live_slots), (1, 1))

    def test_leases_can_be_switched_off(self):
        limiter = weir.Limiter("1000000/min burst 1000000", hot_keys=weir.HOT_KEYS_PLAIN, **SMALL)
        threads = [threading.Thread(target=lambda: [limiter.check("k") for _ in range(2000)])
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = limiter.stats()
        self.assertEqual((stats.decisions, stats.leases, stats.leases_returned,
                          stats.lease_units_returned), (4000, 0, 0, 0))

    def test_threads_share_a_limit(self):
        limiter = weir.Limiter("500/day fixed-window from first-hit", **SMALL)
        allowed = []

        def work():
            allowed.append(sum(limiter.check("k").allowed for _ in range(300)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(allowed), 500)

    def test_a_forked_child_counts_by_itself(self):
        limiter = weir.Limiter("3/h burst 3", **SMALL)
        limiter.check("k")
        child = os.fork()
        if child == 0:
            # It starts with what was taken before, and nobody else sees what it takes.
            good = [limiter.check("k").allowed for _ in range(3)] == [True, True, False]
            os._exit(0 if good else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(limiter.check("k", 0).remaining, 2)


if __name__ == "__main__":
    unittest.main()
