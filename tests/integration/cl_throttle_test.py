"""CL.THROTTLE over a real socket, reply for reply as redis-cell answered under a frozen clock."""
import json
import os
import pathlib
import unittest

import harness

SHARED = pathlib.Path(os.environ.get("WEIR_SHARED", "../shared"))
OUTSIDE = SHARED / "vectors/cl_throttle_sample.json"

# Our own, of the same kind: the example of redis-cell's README, a bucket that drains and refills.
OWN = {
    "cases": [
        {"name": "readme", "ops": [
            {"t_ns": 0, "args": ["15", "30", "60"], "reply": [0, 16, 15, -1, 2]},
            {"t_ns": 0, "args": ["15", "30", "60", "1"], "reply": [0, 16, 14, -1, 4]},
            {"t_ns": 0, "args": ["15", "30", "60", "0"], "reply": [0, 16, 14, -1, 4]},
            {"t_ns": 0, "args": ["15", "30", "60", "17"], "reply": [1, 16, 14, -1, 4]},
            {"t_ns": 0, "args": ["15", "30", "60", "15"], "reply": [1, 16, 14, 2, 4]}]},
        {"name": "no burst", "ops": [
            {"t_ns": 0, "args": ["0", "1", "1"], "reply": [0, 1, 0, -1, 1]},
            {"t_ns": 999_999_999, "args": ["0", "1", "1"], "reply": [1, 1, 0, 0, 0]},
            {"t_ns": 1_000_000_000, "args": ["0", "1", "1"], "reply": [0, 1, 0, -1, 1]}]},
    ],
    "errors": [
        {"args": ["k", "x", "1", "1"],
         "reply": {"error": "Cell error: Store error: Couldn't parse as integer: x"}},
    ],
}


class ClThrottle(unittest.TestCase):
    def run_all(self, data):
        start = 1_700_000_000_000_000_000
        clock = harness.TestClock(self, start)
        weir = harness.Weir(self, "--test-clock", clock.path)
        redis = harness.Redis(self, weir.resp)
        steps = 0
        for number, case in enumerate(data["cases"]):
            clock.set(start)  # back to where every case begins
            for op in case["ops"]:
                clock.set(start + op["t_ns"])
                reply = redis.ask("CL.THROTTLE", f"case {number}", *op["args"])
                self.assertIn(reply, [op["reply"], op.get("exact_gcra_reply", op["reply"])],
                              f"{case['name']} at {op['t_ns']} ns: {op['args']}")
                steps += 1
        for case in data["errors"]:
            self.assertEqual(redis.ask("CL.THROTTLE", *case["args"]), case["reply"])
        self.assertEqual(redis.ask("PING"), "PONG")
        return steps

    def test_our_own_cases(self):
        self.assertEqual(self.run_all(OWN), 8)

    def test_outside_cases(self):
        if not OUTSIDE.exists():
            print("no outside data: cl_throttle_test")
            return
        self.assertGreater(self.run_all(json.loads(OUTSIDE.read_text())), 500)

    def test_keys_that_brought_the_original_down(self):
        weir = harness.Weir(self)
        redis = harness.Redis(self, weir.resp)
        for key in (b"\xff\xfe not utf-8", b"", b"nul \0 byte", b"k" * 65536):
            self.assertEqual(redis.ask("CL.THROTTLE", key, 15, 30, 60), [0, 16, 15, -1, 2])


if __name__ == "__main__":
    harness.main()
