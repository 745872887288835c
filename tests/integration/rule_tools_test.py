"""The tools for rules that ask a running server, and what it says of rules that limit nothing."""
import json
import subprocess
import tempfile
import unittest

import harness

RULES = """\
rules:
  - name: per-ip
    per: ip
    limit: 1000/h
  - name: login
    when: { method: POST, path: /login }
    per: ip
    limit: 5/min
"""


def weir(*words):
    return subprocess.run([harness.WEIR, *words], capture_output=True, text=True,
                          timeout=harness.DEADLINE_S)


class RuleTools(unittest.TestCase):
    def file(self, text):
        made = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.addCleanup(made.close)
        made.write(text)
        made.flush()
        return made.name

    def test_explain_by_a_server_says_what_it_says_offline(self):
        # Buckets: what they say of an unused key does not depend on when they are asked.
        server = harness.Weir(self, rules=RULES.replace("1000/h", "1000/h burst 9")
                              .replace("5/min", "5/min burst 5"))
        admin = f"http://127.0.0.1:{server.admin}"
        request = ["ip=192.0.2.1", "method=POST", "path=/login"]
        offline = weir("explain", "-r", server.rules_path, *request)
        online = weir("explain", "--server", admin, *request)
        self.assertEqual((online.returncode, online.stderr), (0, ""))
        self.assertEqual(online.stdout, offline.stdout)
        as_json = [json.loads(weir("explain", *where, "--json", *request).stdout)
                   for where in (("--server", admin), ("-r", server.rules_path))]
        self.assertEqual(as_json[0], as_json[1])
        self.assertEqual(as_json[0]["deciding"], "login")

    def test_explain_by_a_server_knows_what_is_used_and_consumes_nothing(self):
        server = harness.Weir(self, rules=RULES)
        question = json.dumps({"attributes": {"ip": "192.0.2.1", "path": "/"}, "cost": 400})
        self.assertEqual(harness.post(server.http, "/v1/check", question).status, 200)
        for _ in range(2):
            online = weir("explain", "--server", f"http://127.0.0.1:{server.admin}", "--json",
                          "-c", "0", "ip=192.0.2.1", "path=/")
            quota = json.loads(online.stdout)["rules"][0]["quotas"][0]
            self.assertEqual(quota["remaining"], 600)

    def test_explain_says_what_is_wrong(self):
        self.assertEqual(weir("explain", "ip=192.0.2.1").returncode, 2)
        both = weir("explain", "--server", "http://127.0.0.1:1", "-r", "x.yaml", "ip=192.0.2.1")
        self.assertEqual(both.returncode, 2)
        self.assertIn("expected one of them", both.stderr)
        nobody = weir("explain", "--server", f"http://127.0.0.1:{harness.free_port()}", "ip=::1")
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("cannot connect", nobody.stderr)
        self.assertEqual(weir("explain", "--server", "nonsense", "ip=::1").returncode, 2)
        server = harness.Weir(self, rules=RULES)
        public = weir("explain", "--server", f"http://127.0.0.1:{server.http}", "ip=::1")
        self.assertEqual(public.returncode, 1)
        self.assertIn("admin address", public.stderr)

    def test_check_compares_with_what_a_server_decides_by(self):
        server = harness.Weir(self, rules=RULES)
        admin = f"http://127.0.0.1:{server.admin}"
        same = weir("rules", "check", server.rules_path, "--server", admin)
        self.assertEqual((same.returncode, same.stderr), (0, ""))
        shrunk = weir("rules", "check", self.file(RULES.replace("1000/h", "10/h")), "--server",
                      admin)
        self.assertEqual(shrunk.returncode, 0)
        self.assertIn("1000/h shrinks to 10/h", shrunk.stderr)
        gone = weir("rules", "check", self.file("rules: []\n"), "--server", admin)
        self.assertEqual(gone.stderr.count("not there any more"), 2)
        both = weir("rules", "check", server.rules_path, "--server", admin, "--against", "x")
        self.assertEqual(both.returncode, 2)

    def test_a_rule_that_limits_nothing_is_told_of_once(self):
        server = harness.Weir(
            self, rules="rules:\n  - {name: odd, per: call, limit: 5/min}\n"
                        "  - {name: even, per: ip, limit: 100000/min}\n")
        redis = harness.Redis(self, server.resp)
        for i in range(100):
            for j in range(110):
                redis.send("WEIR.CHECK", "call", f"{i}-{j}", "ip", "192.0.2.1")
            for j in range(110):
                redis.read()
        for _ in range(2):
            harness.post(server.admin, "/v1/reload", "")
        self.assertEqual(server.output().count("limits nearly nothing"), 1)
        self.assertIn("odd", server.output().partition("limits nearly nothing")[2])
        rules = json.loads(harness.get(server.admin, "/v1/rules").text)["rules"]
        self.assertEqual([rule["meets_fresh_keys"] for rule in rules], [True, False])
        self.assertEqual(server.metric('weir_rule_meets_fresh_keys{rule="odd"}'), 1)


if __name__ == "__main__":
    harness.main()
