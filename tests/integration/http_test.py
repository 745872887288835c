"""The HTTP front, asked over sockets and by curl; answers are held against the OpenAPI document."""
import json
import subprocess
import unittest

import jsonschema

import harness

RULES = """
rules:
  - name: per-ip
    per: ip
    limit: 100/min
    burst: 3
  - name: login
    when: { method: POST, path: /login }
    per: ip
    limit: 1/h
    algorithm: sliding-log
  - name: tokens
    per: tenant
    limit: 1000/h
    algorithm: fixed-window
  - name: jobs
    per: job
    limit: concurrency 1 lease 60s
  - name: no-entry
    when: { internal: present }
    block: true
  - name: signed
    when: { partner: present }
    per: signature
    on-missing: deny
    limit: 10/h
block:
  - 203.0.113.0/24
"""


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addCleanup = cls.addClassCleanup  # the harness cleans up after whoever started it
        cls.weir = harness.Weir(cls, rules=RULES)
        cls.api = json.loads(harness.get(cls.weir.http, "/openapi.json").text)

    def validated(self, path, reply, method="post"):
        """The reply's JSON, which must be what the document promises for this path and status."""
        responses = self.api["paths"][path][method]["responses"]
        self.assertIn(str(reply.status), responses, f"{path} answered {reply.status}: {reply.body}")
        content = responses[str(reply.status)].get("content", {})
        kind = reply.headers.get("content-type", "").split(";")[0]
        self.assertIn(kind, content, f"{path} {reply.status}")
        value = json.loads(reply.text)
        schema = dict(content[kind]["schema"], components=self.api["components"])
        jsonschema.Draft202012Validator(schema).validate(value)
        return value

    def ask(self, path, question, port=None, headers=()):
        return harness.post(port or self.weir.http, path, json.dumps(question), headers)

    def check(self, **attributes):
        reply = self.ask("/v1/check", {"attributes": attributes})
        return reply, self.validated("/v1/check", reply)

    def test_check_allows_then_refuses(self):
        for left in (2, 1, 0):
            reply, answer = self.check(ip="192.0.2.1")
            self.assertEqual((reply.status, answer["allowed"]), (200, True))
            self.assertEqual((answer["rule"], answer["limit"], answer["remaining"]),
                             ("per-ip", 3, left))
            self.assertEqual(answer["basis"], "store")
            self.assertNotIn("retry-after", reply.headers)
        reply, answer = self.check(ip="192.0.2.1")
        self.assertEqual((reply.status, answer["allowed"]), (429, False))
        self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        self.assertEqual(reply.headers["x-ratelimit-limit"], "3")
        self.assertEqual(reply.headers["x-ratelimit-remaining"], "0")
        self.assertIn('"per-ip"', reply.headers["ratelimit-policy"])

    def test_problem_json_by_accept(self):
        self.ask("/v1/check", {"attributes": {"ip": "192.0.2.2"}, "cost": 3})
        reply = self.ask("/v1/check", {"attributes": {"ip": "192.0.2.2"}},
                         headers=[("Accept", "application/problem+json")])
        problem = self.validated("/v1/check", reply)
        self.assertEqual(problem["status"], 429)
        self.assertEqual(problem["violated-policies"], ["per-ip"])

    def test_peek_charges_nothing(self):
        for _ in range(5):
            reply = self.ask("/v1/check", {"attributes": {"ip": "192.0.2.3"}, "peek": True})
            self.assertEqual(self.validated("/v1/check", reply)["allowed"], True)

    def test_batch(self):
        questions = [{"attributes": {"ip": ip}} for ip in ["192.0.2.4"] * 4 + ["192.0.2.5"]]
        reply = self.ask("/v1/check", {"checks": questions})
        answers = self.validated("/v1/check", reply)["checks"]
        self.assertEqual([answer["allowed"] for answer in answers], [True, True, True, False, True])

    def test_a_repeated_id_is_not_charged_again(self):
        question = {"attributes": {"ip": "192.0.2.6"}, "id": "request-1"}
        first = self.ask("/v1/check", question)
        again = self.ask("/v1/check", question)
        self.assertEqual(first.body, again.body)
        self.assertEqual(self.validated("/v1/check", again)["remaining"], 2)
        other = self.ask("/v1/check", {"attributes": {"ip": "192.0.2.99"}, "id": "request-1"})
        self.assertEqual(other.status, 422)

    def test_ids_within_a_batch(self):
        def ask(*ids):
            questions = [{"attributes": {"ip": "192.0.2.61"}, "id": one} for one in ids]
            reply = self.ask("/v1/check", {"checks": questions})
            return self.validated("/v1/check", reply)["checks"]
        first = ask("b-1", "b-2")
        self.assertEqual([one["remaining"] for one in first], [2, 1])
        # In another order, and twice in one batch: charged once, answered as before.
        again = ask("b-2", "b-1", "b-3", "b-3")
        self.assertEqual(again[:2], [first[1], first[0]])
        self.assertEqual([one["remaining"] for one in again[2:]], [0, 0])
        # Without ids they are charged.
        mixed = {"checks": [{"attributes": {"ip": "192.0.2.62"}},
                            {"attributes": {"ip": "192.0.2.62"}, "id": "b-4"},
                            {"attributes": {"ip": "192.0.2.62"}}]}
        left = [[one["remaining"] for one in json.loads(self.ask("/v1/check", mixed).text)["checks"]
                 if one["allowed"]] for _ in range(2)]
        self.assertEqual(left, [[2, 1, 0], [1]])

    def test_an_id_that_was_another_question_s_is_refused_alone(self):
        self.ask("/v1/check", {"checks": [{"attributes": {"ip": "192.0.2.63"}, "id": "b-5"}]})
        reply = self.ask("/v1/check", {"checks": [
            {"attributes": {"ip": "192.0.2.64"}, "id": "b-5"},
            {"attributes": {"ip": "192.0.2.64"}, "cost": 2, "id": "b-6"}]})
        answers = self.validated("/v1/check", reply)["checks"]
        self.assertEqual([one["allowed"] for one in answers], [False, True])
        self.assertEqual(answers[0]["error"], "invalid_request")
        self.assertEqual(answers[1]["remaining"], 1, "the first was charged to nobody")
        for other in ({"attributes": {"ip": "192.0.2.63"}, "id": "b-5", "cost": 2},
                      {"attributes": {"ip": "192.0.2.63"}, "id": "b-5", "peek": True},
                      {"attributes": {"ip": "192.0.2.63", "x": "y"}, "id": "b-5"}):
            reply = self.ask("/v1/check", {"checks": [other]})
            self.assertFalse(json.loads(reply.text)["checks"][0]["allowed"])
        self.assertEqual(self.ask("/v1/check", {"attributes": {"ip": "192.0.2.63"},
                                                "id": "b-5"}).status, 422)

    def test_a_repeated_reservation_is_the_same_one(self):
        question = {"attributes": {"tenant": "twice"}, "estimate": 600, "id": "reserve-1"}
        first = self.ask("/v1/reserve", question)
        again = self.ask("/v1/reserve", question)
        self.assertEqual(self.validated("/v1/reserve", first), json.loads(again.text))
        other = self.ask("/v1/reserve", dict(question, estimate=1))
        self.assertEqual(other.status, 422)
        self.validated("/v1/reserve", other)

    def test_bad_questions(self):
        for body in ("", "{", "[]", "{}", '{"attributes": 1}', '{"attributes": {}, "cots": 2}',
                     '{"key": "a", "cost": -1}', '{"key": "a", "cost": 1.5}', '{"key": "a"} x',
                     '{"checks": []}', '{"key": ' + "[" * 1000 + "]" * 1000 + "}"):
            reply = harness.post(self.weir.http, "/v1/check", body)
            self.assertEqual(reply.status, 400, body[:60])
            self.assertGreater(len(self.validated("/v1/check", reply)["detail"]), 10)

    def test_blocked(self):
        for path, question in (("/v1/check", {}), ("/v1/reserve", {"estimate": 1})):
            reply = self.ask(path, dict(question, attributes={"ip": "203.0.113.9"}))
            self.assertEqual(reply.status, 403)
            self.assertEqual(self.validated(path, reply)["error"], "blocked")

    def test_refusals_name_the_rule_that_counted_nothing(self):
        for attributes, rule in (({"internal": "1"}, "no-entry"), ({"partner": "p"}, "signed")):
            reply, answer = self.check(**attributes)
            self.assertEqual((reply.status, answer["rule"]), (403, rule))
            self.assertEqual(reply.headers["x-weir-rule"], rule)

    def test_a_cost_that_never_fits(self):
        for path, question in (("/v1/check", {"cost": 4}), ("/v1/reserve", {"estimate": 4})):
            question["attributes"] = {"ip": "192.0.2.99"}
            for headers in ((), [("Accept", "application/problem+json")]):
                reply = self.ask(path, question, headers=headers)
                self.assertEqual(reply.status, 400, path)
                self.validated(path, reply)

    def test_usage(self):
        self.ask("/v1/check", {"attributes": {"ip": "192.0.2.7"}})
        reply = harness.get(self.weir.http, "/v1/usage?ip=192.0.2.7")
        quotas = self.validated("/v1/usage", reply, "get")["quotas"]
        self.assertEqual([(one["rule"], one["limit"], one["remaining"]) for one in quotas],
                         [("per-ip", 3, 2)])
        self.assertEqual(harness.get(self.weir.http, "/v1/usage").status, 400)

    def test_reserve_and_settle(self):
        reserved = self.ask("/v1/reserve", {"attributes": {"tenant": "t"}, "estimate": 900})
        token = self.validated("/v1/reserve", reserved)["reservation"]
        full = self.ask("/v1/reserve", {"attributes": {"tenant": "t"}, "estimate": 200})
        self.assertEqual(full.status, 429)
        settled = self.ask("/v1/settle", {"id": token, "actual": 100})
        self.assertEqual(self.validated("/v1/settle", settled)["given_back"], 800)
        again = self.ask("/v1/settle", {"id": token, "actual": 100})
        self.assertEqual(again.status, 409)
        self.validated("/v1/settle", again)
        gone = self.ask("/v1/settle", {"id": "f" * 32, "actual": 1})
        self.assertEqual(gone.status, 404)
        left = harness.get(self.weir.http, "/v1/usage?tenant=t")
        self.assertEqual(json.loads(left.text)["quotas"][0]["remaining"], 900)

    def test_hold_and_release(self):
        question = {"attributes": {"job": "j"}, "estimate": 1}
        first = self.ask("/v1/reserve", question)
        token = self.validated("/v1/reserve", first)["reservation"]
        self.assertEqual(self.ask("/v1/reserve", question).status, 429)
        released = self.validated("/v1/release", self.ask("/v1/release", {"id": token}))
        self.assertEqual(released["released"][0]["outcome"], "settled")
        self.assertEqual(self.ask("/v1/reserve", question).status, 200)

    def test_auth(self):
        headers = [("X-Original-URI", "/login?x=1"), ("X-Original-Method", "POST")]
        first = harness.get(self.weir.http, "/v1/auth", headers)
        self.assertEqual((first.status, first.body), (204, b""))
        second = harness.get(self.weir.http, "/v1/auth", headers)
        self.assertEqual(second.status, 429)
        self.assertEqual(second.headers["x-weir-rule"], "login")
        self.validated("/v1/auth", second, "get")
        head = harness.request(self.weir.http, "HEAD", "/v1/auth", headers=headers)
        self.assertEqual((head.status, head.body), (429, b""))
        self.validated("/v1/auth", harness.request(self.weir.http, "POST", "/v1/auth",
                                                   headers=headers))
        third = harness.get(self.weir.http, "/v1/auth/403", headers)
        self.validated("/v1/auth/403", third, "get")
        self.assertEqual((third.status, third.headers["x-weir-status"]), (403, "limited"))
        self.assertGreater(int(third.headers["retry-after"]), 0)

    def test_auth_believes_the_proxy_and_not_its_client(self):
        """A proxy passes on what the client sent under the names that it does not use itself."""
        forwarded = lambda path: [("X-Forwarded-Uri", path), ("X-Forwarded-Method", "POST")]
        original = lambda path: [("X-Original-URI", path), ("X-Original-Method", "POST")]
        for endpoint, proxy, client in (("/v1/auth", forwarded, original),
                                        ("/v1/auth/403", original, forwarded)):
            reply = harness.get(self.weir.http, endpoint, client("/other") + proxy("/login"))
            self.assertEqual(reply.headers["x-weir-rule"], "login", endpoint)
            reply = harness.get(self.weir.http, endpoint, client("/login") + proxy("/other"))
            self.assertNotEqual(reply.headers.get("x-weir-rule"), "login", endpoint)

    def test_auth_minds_no_header_that_no_rule_uses(self):
        cookie = [("Cookie", "session=" + "x" * 3000), ("Authorization", "Bearer " + "y" * 3000)]
        weir = harness.Weir(self, rules="rules: [{name: all, per: 'header:x-id', limit: 9/h}]")
        for endpoint in ("/v1/auth", "/v1/auth/403"):
            self.assertEqual(harness.get(weir.http, endpoint, cookie).status, 204)
        used = [("X-Id", "z" * 3000)]
        self.assertEqual(harness.get(weir.http, "/v1/auth", used).status, 400)

    def test_an_old_client_is_told_that_the_connection_stays(self):
        for connection, kept in ((b"keep-alive", True), (b"close", False)):
            # The second request ends the connection in any case.
            raw = harness.send(self.weir.http, b"GET /healthz HTTP/1.0\r\nConnection: " +
                               connection + b"\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n")
            self.assertEqual(raw.count(b"HTTP/1.1 200 OK"), 2 if kept else 1)
            self.assertEqual(raw.count(b"\r\nConnection: keep-alive\r\n"), 1 if kept else 0)

    def test_denials_are_logged_whoever_asks(self):
        """Sampled: at most five a second, so each has a server of its own."""
        rules = "rules: [{name: closed, when: {door: shut}, block: true}]"
        for front in ("check", "batch", "reserve", "resp"):
            weir = harness.Weir(self, rules=rules)
            question = {"attributes": {"door": "shut"}}
            if front == "resp":
                harness.Redis(self, weir.resp).ask("WEIR.CHECK", "door", "shut")
            elif front == "reserve":
                self.ask("/v1/reserve", dict(question, estimate=1), weir.http)
            else:
                self.ask("/v1/check", {"checks": [question]} if front == "batch" else question,
                         weir.http)
            harness.wait_for("a line about it", lambda: "refused" in weir.output())
            self.assertIn("closed", weir.output(), front)

    def test_operators_only(self):
        for method, path in (("POST", "/v1/explain"), ("GET", "/v1/rules"), ("POST", "/v1/reload"),
                             ("GET", "/v1/top"), ("GET", "/metrics"), ("POST", "/v1/reset"),
                             ("POST", "/v1/rules/switch")):
            reply = harness.request(self.weir.http, method, path)
            self.assertEqual(reply.status, 403, path)
            self.validated(path, reply, method.lower())
        question = {"attributes": {"ip": "192.0.2.8", "method": "GET"}}
        reply = self.ask("/v1/explain", question, self.weir.admin)
        explained = self.validated("/v1/explain", reply)
        self.assertIn("login", json.dumps(explained))
        for path in ("/v1/rules", "/v1/top"):
            self.validated(path, harness.get(self.weir.admin, path), "get")
        text = harness.get(self.weir.admin, "/v1/rules/text")
        self.assertEqual((text.status, text.text.strip()), (200, RULES.strip()))
        self.assertEqual(harness.get(self.weir.http, "/v1/rules/text").status, 403)

    def test_wrong_paths_and_methods(self):
        self.assertEqual(harness.get(self.weir.http, "/nothing").status, 404)
        wrong = harness.get(self.weir.http, "/v1/check")
        self.assertEqual((wrong.status, wrong.headers["allow"]), (405, "POST"))

    def test_pipelined_requests_are_answered_in_order(self):
        body = b'{"key": "x", "peek": true}'
        one = b"POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        last = b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
        received = harness.send(self.weir.http, one * 50 + last)
        self.assertEqual(received.count(b"HTTP/1.1 200 OK"), 51)
        self.assertTrue(received.endswith(b"ok\n"))

    def test_curl(self):
        url = f"http://127.0.0.1:{self.weir.http}/v1/check"
        for body in ({"key": "c"}, {"key": "c", "attributes": {"ip": "192.0.2.10"}}):
            done = subprocess.run(
                [harness.program("curl"), "-sS", "-i", "-H", "Expect: 100-continue", url,
                 "-d", json.dumps(body)], capture_output=True, text=True, check=True, timeout=60)
            self.assertIn("200 OK", done.stdout)

    def test_metrics_are_what_prometheus_reads(self):
        self.check(ip="192.0.2.11")
        text = harness.get(self.weir.admin, "/metrics").text
        done = subprocess.run([harness.program("promtool"), "check", "metrics"], input=text,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        allowed = self.weir.metric('weir_decisions_total{rule="per-ip",outcome="allowed"}')
        self.assertGreater(allowed, 0)


class Admin(unittest.TestCase):
    def test_token(self):
        import tempfile
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("s3cret-token\n")
            file.flush()
            weir = harness.Weir(self, "--admin-token-file", file.name, rules=RULES)
        for port in (weir.admin, weir.http):
            self.assertEqual(harness.get(port, "/metrics").status, 403)
            wrong = [("Authorization", "Bearer wrong")]
            self.assertEqual(harness.get(port, "/metrics", wrong).status, 403)
            right = [("Authorization", "Bearer s3cret-token")]
            self.assertEqual(harness.get(port, "/metrics", right).status, 200)
        self.assertNotIn("s3cret", weir.output())

    def test_start_is_refused_where_it_is_not_safe(self):
        clock = harness.TestClock(self)
        for options, expected in (
                (["--admin", "0.0.0.0:0"], "--admin-token-file"),
                (["--test-clock", clock.path, "--http", "0.0.0.0:0"], "--test-clock"),
                (["--test-clock", "/nonexistent"], "nanoseconds since 1970"),
                (["--http", "nonsense"], "expected ADDRESS:PORT"),
                (["--trusted-proxy", "10.0.0.1/8"], "expected an address or a prefix"),
                (["--headers", "all"], "expected x-ratelimit")):
            done = subprocess.run([harness.WEIR, "serve", "--memory", "32MiB", "--resp", "off",
                                   "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"] + options,
                                  capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0, options)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    harness.main()
