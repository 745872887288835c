"""CL.THROTTLE over a real socket, reply for reply as redis-cell answered under a frozen clock."""
import json
import os
import pathlib
import unittest

import harness

SHARED = pathlib.Path(os.environ.get("WEIR_SHARED", "../shared"))


def outside(wanted):
    """Documents of the shared vectors that are so, whatever their files are called."""
    documents = [json.loads(path.read_text()) for path in sorted(SHARED.glob("vectors/*.json"))]
    return [document for document in documents if wanted(document)]


def of_redis_cell(document):
    return any("args" in op for case in document.get("cases", []) for op in case.get("ops", []))


def of_throttlecrab(document):
    return "key_strings" in document.get("resp", {})


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
            if "quirk" in case:
                continue  # of that implementation only
            clock.set(start)  # back to where every case begins
            for op in case["ops"]:
                clock.set(start + op["t_ns"])
                reply = redis.ask("CL.THROTTLE", f"case {number}", *op["args"])
                self.assertIn(reply, [op["reply"], op.get("exact_gcra_reply", op["reply"])],
                              f"{case['name']} at {op['t_ns']} ns: {op['args']}")
                steps += 1
        for case in data.get("errors", []):
            self.assertEqual(redis.ask("CL.THROTTLE", *case["args"]), case["reply"])
        self.assertEqual(redis.ask("PING"), "PONG")
        return steps

    def test_our_own_cases(self):
        self.assertEqual(self.run_all(OWN), 8)

    def test_outside_cases(self):
        documents = outside(of_redis_cell)
        if not documents:
            print("no outside data: cl_throttle_test")
        for document in documents:
            self.assertGreater(self.run_all(document), 0, document["set"])

    def test_keys_that_brought_the_original_down(self):
        weir = harness.Weir(self)
        redis = harness.Redis(self, weir.resp)
        for key in (b"\xff\xfe not utf-8", b"", b"nul \0 byte", b"k" * 65536):
            self.assertEqual(redis.ask("CL.THROTTLE", key, 15, 30, 60), [0, 16, 15, -1, 2])


# throttlecrab's THROTTLE: the burst is the total, 1 is allowed, and reset stands before retry.
CRAB = {
    "cases": [{"id": "own", "rate": {"count": 60, "period_ms": 60000}, "burst_total": 2, "ops": [
        {"t_ms": 0, "quantity": 2, "allowed": True, "remaining": 0},
        {"t_ms": 999, "quantity": 1, "allowed": False, "remaining": 0},
        {"t_ms": 1000, "quantity": 1, "allowed": True, "remaining": 0}]}],
    "errors": [{"count": 0, "expect": "error"}, {"quantity": -1, "expect": "error"},
               {"burst": 10, "count": 9223372036854775807, "period": 1, "expect": "allowed"}],
    "resp": {"key_strings": ["", "a b", "x*1000"],
             "command_names_case_insensitive": ["throttle", "tHROTTLE"]},
}


class Throttle(unittest.TestCase):
    def run_all(self, data):
        start = 1_700_000_000_000_000_000
        clock = harness.TestClock(self, start)
        weir = harness.Weir(self, "--test-clock", clock.path)
        redis = harness.Redis(self, weir.resp)
        for number, case in enumerate(data["cases"]):
            clock.set(start)
            for op in case["ops"]:
                clock.set(start + op["t_ms"] * 1_000_000)
                reply = redis.ask("THROTTLE", f"case {number}", case["burst_total"],
                                  case["rate"]["count"], case["rate"]["period_ms"] // 1000,
                                  op["quantity"])
                where = f"{case['id']}: {op}, {reply}"
                self.assertEqual(reply[0], int(op["allowed"]), where)
                self.assertEqual(reply[1], case["burst_total"], where)
                self.assertEqual(reply[2], op.get("remaining", reply[2]), where)
        clock.set(start)
        for number, error in enumerate(data["errors"]):
            reply = redis.ask("THROTTLE", f"error {number}", error.get("burst", 10),
                              error.get("count", 100), error.get("period", 60),
                              error.get("quantity", 1))
            if error["expect"].startswith("error"):
                self.assertIn("error", reply, error)
            else:
                self.assertEqual(reply[0], int(error["expect"].startswith("allowed")), error)
        resp = data["resp"]
        for text in resp["key_strings"]:
            key = "x" * int(text[2:]) if text.startswith("x*") else text
            self.assertEqual(redis.ask("THROTTLE", key, 10, 100, 60), [1, 10, 9, 0, 0], text)
        for name in resp["command_names_case_insensitive"]:
            self.assertEqual(redis.ask(name, "name " + name, 10, 100, 60), [1, 10, 9, 0, 0])
        # Integers as such, and two commands in one write.
        self.assertEqual(redis.ask("THROTTLE", "typed", 10, 100, 60), [1, 10, 9, 0, 0])
        redis.send_bytes(b"*5\r\n$8\r\nTHROTTLE\r\n$5\r\ntyped\r\n:10\r\n:100\r\n:60\r\n")
        self.assertEqual(redis.read(), [1, 10, 8, 1, 0])
        replies = redis.pipeline([("THROTTLE", "row", 5, 100, 60)] * 10)
        self.assertEqual([reply[0] for reply in replies], [1] * 5 + [0] * 5)

    def test_our_own_cases(self):
        self.run_all(CRAB)

    def test_outside_cases(self):
        documents = outside(of_throttlecrab)
        if not documents:
            print("no outside data: throttlecrab's commands")
        for document in documents:
            self.run_all(document)


if __name__ == "__main__":
    harness.main()
