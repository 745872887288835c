"""Rules that change under a running server."""
import json
import os
import pathlib
import signal
import threading
import unittest

import harness


def rules(limit, extra=""):
    return f"rules:\n  - name: all\n    per: key\n    limit: {limit}/h\n{extra}"


def limit_of(weir, key):
    return json.loads(harness.post(weir.http, "/v1/check", json.dumps({"key": key})).text)["limit"]


class Reload(unittest.TestCase):
    def wait_for_limit(self, weir, limit):
        harness.wait_for(f"the limit {limit}", lambda: limit_of(weir, f"probe {limit}") == limit)

    def test_rename_and_in_place(self):
        weir = harness.Weir(self, rules=rules(10))
        self.assertEqual(limit_of(weir, "a"), 10)
        weir.write_rules(rules(20))
        self.wait_for_limit(weir, 20)
        pathlib.Path(weir.rules_path).write_text(rules(30))
        self.wait_for_limit(weir, 30)

    def test_symlink_swap_as_in_a_config_map(self):
        weir = harness.Weir(self, rules=rules(10))
        folder = pathlib.Path(weir.rules_dir)
        for name, limit in (("v1", 40), ("v2", 50)):
            (folder / name).mkdir()
            (folder / name / "rules.yaml").write_text(rules(limit))
        os.symlink("v1", folder / "..data")
        os.symlink("..data/rules.yaml", folder / "link")
        os.rename(folder / "link", weir.rules_path)
        self.wait_for_limit(weir, 40)
        os.symlink("v2", folder / "..data_tmp")
        os.rename(folder / "..data_tmp", folder / "..data")
        self.wait_for_limit(weir, 50)

    def test_signal(self):
        weir = harness.Weir(self, rules=rules(10))
        weir.write_rules(rules(11))
        weir.signal(signal.SIGHUP)
        self.wait_for_limit(weir, 11)

    def test_a_bad_file_changes_nothing_and_is_told_of(self):
        weir = harness.Weir(self, rules=rules(10))
        good = json.loads(harness.get(weir.admin, "/v1/rules").text)
        self.assertTrue(good["up_to_date"])
        weir.write_rules("rules:\n  - name: all\n    per: key\n    limit: ten/h\n")
        harness.wait_for("the failure", lambda: weir.metric("weir_rules_load_failures_total") == 1)
        bad = json.loads(harness.get(weir.admin, "/v1/rules").text)
        self.assertEqual(bad["version"], good["version"])
        self.assertFalse(bad["up_to_date"])
        self.assertIn("rules.yaml:4:", bad["error"])
        self.assertEqual(weir.metric("weir_rules_up_to_date"), 0)
        self.assertEqual(limit_of(weir, "b"), 10)
        self.assertEqual(harness.post(weir.admin, "/v1/reload", "").status, 422)
        self.assertEqual(weir.output().count("rules not taken"), 1, "said once")
        weir.write_rules(rules(10))
        harness.wait_for("recovery", lambda: weir.metric("weir_rules_up_to_date") == 1)

    def test_a_truncated_file_is_never_taken(self):
        text = rules(10, "".join(
            f"  - name: r{i}\n    per: other{i}\n    limit: {i}00/h\n    burst: 1{i}\n"
            for i in range(1, 5)))
        weir = harness.Weir(self, rules=text)
        version = json.loads(harness.get(weir.admin, "/v1/rules").text)["version"]
        for size in range(len(text)):
            weir.write_rules(text[:size])
            harness.post(weir.admin, "/v1/reload", "")
            now = json.loads(harness.get(weir.admin, "/v1/rules").text)
            self.assertEqual(now["version"], version, f"cut after {size} bytes")
            self.assertFalse(now["up_to_date"])

    def test_last_good_rules_start_a_server_with_bad_files(self):
        first = harness.Weir(self, rules=rules(70))
        state = pathlib.Path(first.rules_dir) / "state"
        state.mkdir()
        second = harness.Weir(self, "--state-dir", str(state), rules=rules(77))
        second.stop()
        third = harness.Weir(self, "--state-dir", str(state), rules="rules: [{name: }]\n")
        self.assertEqual(limit_of(third, "a"), 77)
        status = json.loads(harness.get(third.admin, "/v1/rules").text)
        self.assertTrue(status["from_last_good"])
        self.assertFalse(status["up_to_date"])

    def test_no_decision_fails_while_rules_change(self):
        weir = harness.Weir(self, rules=rules(1000))
        answers = []
        stop = threading.Event()

        def ask(number):
            redis = harness.Redis(self, weir.resp)
            while not stop.is_set():
                reply = redis.ask("WEIR.CHECK", "key", f"k{number}-{len(answers)}")
                answers.append(reply[reply.index("limit") + 1])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for i in range(200):
            weir.write_rules(rules(1000 + i % 2))
            self.assertEqual(harness.post(weir.admin, "/v1/reload", "").status, 200)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertGreater(len(answers), 200)
        self.assertEqual(set(answers), {1000, 1001})


if __name__ == "__main__":
    harness.main()
