"""What operators do to a running server: reset keys, switch rules, look without seeing secrets."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness

RULES = """
rules:
  - name: login
    group: login
    when: { path: /login }
    per: ip
    limit: 2/h
    algorithm: fixed-window
  - name: keys
    group: keys
    per: api_key
    limit: 3/h
  - name: all
    group: all
    per: ip
    limit: 100/h
    algorithm: sliding-log
"""
SECRET = "sk_live_canary_4eC39HqLyjWDarjt"


class Operators(unittest.TestCase):
    def setUp(self):
        self.weir = harness.Weir(self, rules=RULES)

    def check(self, **attributes):
        reply = harness.post(self.weir.http, "/v1/check", json.dumps({"attributes": attributes}))
        return reply.status

    def ask(self, path, question, expected=200):
        body = question if isinstance(question, str) else json.dumps(question)
        reply = harness.post(self.weir.admin, path, body)
        self.assertEqual(reply.status, expected, reply.text)
        return json.loads(reply.text)

    def validate(self, path, value):
        import jsonschema
        api = json.loads(harness.get(self.weir.http, "/openapi.json").text)
        content = api["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]
        schema = dict(content["schema"], components=api["components"])
        jsonschema.Draft202012Validator(schema).validate(value)

    def exhaust(self, **attributes):
        while self.check(**attributes) == 200:
            pass

    def test_reset_over_http(self):
        self.exhaust(ip="192.0.2.1", path="/login")
        done = self.ask("/v1/reset", {"attributes": {"ip": "192.0.2.1", "path": "/login"}})
        self.validate("/v1/reset", done)
        self.assertEqual([(one["rule"], one["outcome"]) for one in done["quotas"]],
                         [("login", "done"), ("all", "done")])
        self.assertEqual(self.check(ip="192.0.2.1", path="/login"), 200)
        again = self.ask("/v1/reset", {"attributes": {"ip": "192.0.2.77"}})
        self.assertEqual([one["outcome"] for one in again["quotas"]], ["unknown"])

    def test_reset_of_one_rule(self):
        self.exhaust(ip="192.0.2.1", path="/login")
        left = lambda: {one["rule"]: one["remaining"] for one in json.loads(
            harness.get(self.weir.http, "/v1/usage?ip=192.0.2.1&path=/login").text)["quotas"]}
        self.assertEqual(left(), {"login": 0, "all": 98})
        self.ask("/v1/reset", {"attributes": {"ip": "192.0.2.1", "path": "/login"},
                               "rule": "login"})
        self.assertEqual(left(), {"login": 2, "all": 98})

    def test_reset_over_the_redis_protocol(self):
        redis = harness.Redis(self, self.weir.resp)
        words = ("ip", "192.0.2.2", "path", "/login")
        outcome = lambda: redis.ask("WEIR.CHECK", *words)[3]
        self.assertEqual([outcome(), outcome(), outcome()], ["allowed", "allowed", "denied"])
        self.assertEqual(redis.ask("WEIR.RESET", "RULE", "all", *words), 1)
        self.assertEqual(outcome(), "denied")
        self.assertEqual(redis.ask("WEIR.RESET", *words), 1, "of two quotas one had counted")
        self.assertEqual(outcome(), "allowed")
        self.assertEqual(redis.ask("WEIR.RESET", "ip", "192.0.2.99"), 0)
        for wrong in (("WEIR.RESET",), ("WEIR.RESET", "ip"), ("WEIR.RESET", "a", "b", "c"),
                      ("WEIR.RESET", "RULE", "all")):
            self.assertIn("error", redis.ask(*wrong), wrong)

    def test_what_was_reserved_before_a_reset_gives_nothing_back(self):
        question = {"attributes": {"ip": "192.0.2.3"}, "estimate": 90}
        token = json.loads(harness.post(self.weir.http, "/v1/reserve",
                                        json.dumps(question)).text)["reservation"]
        self.ask("/v1/reset", {"attributes": {"ip": "192.0.2.3"}})
        harness.post(self.weir.http, "/v1/check",
                     json.dumps({"attributes": {"ip": "192.0.2.3"}, "cost": 90}))
        harness.post(self.weir.http, "/v1/settle", json.dumps({"id": token, "actual": 0}))
        usage = json.loads(harness.get(self.weir.http, "/v1/usage?ip=192.0.2.3").text)
        self.assertEqual(usage["quotas"][0]["remaining"], 10)

    def test_bad_resets(self):
        for body, status in (("", 400), ("{}", 400), ('{"rule": "login"}', 400),
                             ('{"key": "a", "cost": 2}', 400), ('{"key": "a", "rule": 1}', 400),
                             ('{"key": "%s"}' % ("k" * 2049), 400),
                             ('{"key": "a", "rule": "lgin"}', 404)):
            self.assertGreater(len(self.ask("/v1/reset", body, status)["detail"]), 10)
        for path in ("/v1/reset", "/v1/rules/switch"):
            self.assertEqual(harness.post(self.weir.http, path, "{}").status, 403, path)
            self.assertEqual(harness.get(self.weir.admin, path).status, 405, path)

    def test_a_rule_is_switched_off_and_back(self):
        self.exhaust(ip="192.0.2.4", path="/login")
        before = json.loads(harness.get(self.weir.admin, "/v1/rules").text)
        self.assertEqual(before["switches"], [])
        done = self.ask("/v1/rules/switch", {"rule": "login", "to": "off"})
        self.validate("/v1/rules/switch", done)
        self.assertEqual(done["switches"], [{"rule": "login", "to": "off"}])
        self.assertEqual(self.check(ip="192.0.2.4", path="/login"), 200)
        now = json.loads(harness.get(self.weir.admin, "/v1/rules").text)
        rule = next(one for one in now["rules"] if one["name"] == "login")
        self.assertEqual((rule["switched"], rule["disabled"]), ("off", True))
        self.assertNotEqual(now["version"], before["version"])
        self.assertEqual(self.weir.metric('weir_rule_switched{rule="login",to="off"}'), 1)
        self.ask("/v1/rules/switch", {"rule": "login", "to": "as-written"})
        self.assertEqual(self.check(ip="192.0.2.4", path="/login"), 429)
        self.assertIsNone(self.weir.metric('weir_rule_switched{rule="login",to="off"}'))
        self.assertIn("rule switched", self.weir.output())

    def test_a_rule_in_shadow_counts_and_denies_nothing(self):
        self.ask("/v1/rules/switch", {"rule": "login", "to": "shadow"})
        for _ in range(4):
            self.assertEqual(self.check(ip="192.0.2.5", path="/login"), 200)
        denied = 'weir_decisions_total{rule="login",outcome="shadow_denied"}'
        self.assertEqual(self.weir.metric(denied), 2)

    def test_a_switch_ends_at_its_time(self):
        self.exhaust(ip="192.0.2.6", path="/login")
        done = self.ask("/v1/rules/switch", {"rule": "login", "to": "off", "lasts": 1})
        self.assertLessEqual(done["switches"][0]["ends_in"], 1)
        harness.wait_for("the end", lambda: self.check(ip="192.0.2.6", path="/login") == 429)
        self.assertEqual(json.loads(harness.get(self.weir.admin, "/v1/rules").text)["switches"],
                         [])

    def test_a_switch_ends_with_the_next_rules(self):
        self.ask("/v1/rules/switch", {"rule": "login", "to": "off"})
        self.weir.write_rules(RULES + "  # changed\n")
        self.ask("/v1/reload", "")
        self.assertEqual(json.loads(harness.get(self.weir.admin, "/v1/rules").text)["switches"],
                         [])

    def test_bad_switches_change_nothing(self):
        version = json.loads(harness.get(self.weir.admin, "/v1/rules").text)["version"]
        for question, status, expected in (
                ({}, 400, "needed"), ({"rule": "login"}, 400, "needed"),
                ({"rule": "login", "to": "of"}, 400, "expected off, shadow, on or as-written"),
                ({"rule": "login", "to": "off", "lasts": -1}, 400, "whole number"),
                ({"rule": "login", "to": "off", "for": 3}, 400, "Unknown member"),
                ({"rule": "logn", "to": "off"}, 422, 'did you mean "login"?')):
            self.assertIn(expected, self.ask("/v1/rules/switch", question, status)["detail"])
        now = json.loads(harness.get(self.weir.admin, "/v1/rules").text)
        self.assertEqual((now["version"], now["switches"]), (version, []))

    def test_no_api_key_is_ever_shown(self):
        for _ in range(400):
            self.check(api_key=SECRET)
        top = json.loads(harness.get(self.weir.admin, "/v1/top?rule=keys").text)
        keys = top["rules"][0]["keys"]
        self.assertEqual([one["hidden"] for one in keys], [True])
        self.assertRegex(keys[0]["key"], "^#[0-9a-f]{12}$")
        shown = subprocess.run([harness.WEIR, "top", "--once", "--admin",
                                f"127.0.0.1:{self.weir.admin}"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(keys[0]["key"], shown.stdout)
        question = {"attributes": {"api_key": SECRET, "header:authorization": SECRET}}
        explained = json.dumps(self.ask("/v1/explain", question))
        self.assertIn(keys[0]["key"], explained)
        digest = keys[0]["key"][1:]
        self.assertIn(f"key_digest={digest}", self.weir.output(), "the same digest in the log")
        everything = "".join([json.dumps(top), shown.stdout, explained, self.weir.output(),
                              harness.get(self.weir.admin, "/metrics").text,
                              harness.get(self.weir.admin, "/v1/rules").text])
        self.assertNotIn("canary", everything)


class PrintConfig(unittest.TestCase):
    def printed(self, *options, env=None):
        done = subprocess.run([harness.WEIR, "serve", "--print-config", *options],
                              capture_output=True, text=True, timeout=60, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def fed_back(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return self.printed("--config", file.name)

    def test_defaults_come_back(self):
        text = self.printed()
        self.assertEqual(self.fed_back(text), text)

    def test_every_option_comes_back(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = lambda name: str(pathlib.Path(folder.name) / name)
        for name in ("a.yaml", "b's.yaml", "password", "token", "secret", "clock"):
            pathlib.Path(path(name)).write_text("canary-in-a-file\n")
        options = {
            "rules": path("a.yaml") + "," + path("b's.yaml"),
            "state-dir": folder.name, "http": "127.0.0.1:1,[::1]:2", "resp": "off",
            "admin": "unix:" + path("a.sock"), "trusted-proxy": "10.0.0.0/8,2001:db8::/32",
            "client-from": "forwarded", "proxy-protocol": None,
            "resp-password-file": path("password"), "admin-token-file": path("token"),
            "fleet-secret-file": path("secret"), "memory": "33MiB", "threads": "3",
            "pin-threads": None, "connections-max": "77", "connections-per-address": "5",
            "idle-seconds": "0", "message-seconds": "4", "drain-seconds": "6", "top-keys": "8",
            "descriptors": path("a.yaml"), "tls-cert": path("secret") + ",admin=" + path("token"),
            "tls-key": path("secret"), "tls-client-ca": "http=" + path("secret"),
            "tls-client-name": "http=client.test", "geo-db": path("a.yaml"),
            "redis": "redis://127.0.0.1:4", "redis-timeout": "7000us", "fleet-nodes": "3",
            "redis-allow-eviction": None,
            "grpc": "127.0.0.1:3", "grpc-on-http": None, "grpc-max-age-seconds": "60",
            "grpc-max-age-grace-seconds": "7",
            "headers": "ietf-07,retry-after", "reset-as-delta": None,
            "attribute": "user=header:x-me,tier=header:x-plan", "ipv6-prefix": "56",
            "log-level": "warning", "log-format": "json", "test-clock": path("clock")}
        command = [word for name, value in options.items()
                   for word in ([f"--{name}"] if value is None else [f"--{name}", value])]
        text = self.printed(*command)
        self.assertEqual(self.fed_back(text), text)
        self.assertNotIn("canary", text)
        names = re.findall(r"^([a-z0-9-]+) = ", text, re.M)
        self.assertEqual(sorted(names), sorted(options))
        self.assertIn("memory = 34603008\n", text)
        offered = subprocess.run([harness.WEIR, "serve", "--help"], capture_output=True,
                                 text=True, timeout=60).stdout
        self.assertNotRegex(offered, r"[^\n -~]", "bytes that no terminal shows")
        known = set(re.findall(r"^ +--([a-z0-9-]+)", offered, re.M))
        not_of_a_file = {"help", "config", "print-config", "envoy-compat"}
        self.assertEqual(known - not_of_a_file, set(options),
                         "an option that --print-config forgets, or this test")

    def test_a_wrong_file_is_refused_and_says_why(self):
        for text, expected in (("thraeds = 3\n", "'thraeds' is no option"),
                               ("[other]\nthreads = 3\n", "no option of weir serve"),
                               ("threads = many\n", "threads"), ("threads = 1000\n", "threads"),
                               ("config = 'x'\n", "no option"),
                               ("print-config = true\n", "no option"),
                               ("proxy-protocol = maybe\n", "proxy-protocol")):
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                done = subprocess.run([harness.WEIR, "serve", "--print-config", "--config",
                                       file.name], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0, text)
            self.assertIn(expected, done.stdout + done.stderr)
        missing = subprocess.run([harness.WEIR, "serve", "--config", "/nonexistent.toml"],
                                 capture_output=True, text=True, timeout=60)
        self.assertNotEqual(missing.returncode, 0)

    def test_what_stands_in_for_envoy_comes_back(self):
        text = self.printed("--envoy-compat")
        self.assertIn('http = ["off"]\n', text)
        self.assertEqual(self.fed_back(text), text)

    def test_a_section_for_the_command(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[serve]\nthreads = 9 # loops\n")
            file.flush()
            self.assertIn("threads = 9\n", self.printed("--config", file.name))

    def test_precedence(self):
        import os
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("threads = 3\ntop-keys = 4\nipv6-prefix = 48\n")
            file.flush()
            text = self.printed("--config", file.name, "--threads", "7", env=dict(
                os.environ, WEIR_THREADS="5", WEIR_TOP_KEYS="6"))
        for line in ("threads = 7\n", "top-keys = 6\n", "ipv6-prefix = 48\n"):
            self.assertIn(line, text)


if __name__ == "__main__":
    harness.main()
