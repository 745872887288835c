"""Nodes that share their limits through a real Redis: exact together, and sane when it is not."""
import json
import signal
import threading
import unittest
import urllib.error
import urllib.request

import harness

RULES = """
rules:
  - {name: per-ip, per: ip, limit: 100/hour fixed-window}
  - {name: shut, group: shut, when: {path: /shut}, per: ip, limit: 10/hour, on-store-failure: deny}
  - {name: open, group: open, when: {path: /open}, per: ip, limit: 1/hour, on-store-failure: allow}
  - {name: slots, group: slots, when: {path: /slots}, per: ip, limit: concurrency 2 lease 1min}
"""


def post(port, path, body):
    """Status, headers and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}",
                                     data=json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.load(error)


def unread_bytes(port):
    """What lies at the sockets of a port that its program has not read."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    return sum(int(row[4].split(":")[1], 16) for row in rows
               if int(row[1].split(":")[1], 16) == port and row[3] == "01")


def check(node, **asked):
    attributes = {name: value for name, value in asked.items() if name not in ("id", "cost")}
    body = {"attributes": attributes}
    body.update({name: asked[name] for name in ("id", "cost") if name in asked})
    return post(node.http, "/v1/check", body)


class FleetTest(unittest.TestCase):
    def node(self, redis, *options, timeout="3s"):
        """Patient unless told: a busy machine is late, and most tests ask whether it counts."""
        return harness.Weir(self, "--redis", redis.url, "--fleet-nodes", "3", "--redis-timeout",
                            timeout, *options, rules=RULES)

    def away(self, node):
        return node.metric("weir_fleet_away") == 1

    def test_three_nodes_and_many_clients_admit_exactly_the_limit(self):
        redis = harness.RedisServer(self)
        nodes = [self.node(redis) for _ in range(3)]
        admitted = []

        def ask(index):
            for i in range(20):
                status, _, body = check(nodes[(index + i) % 3], ip="192.0.2.1")
                self.assertIn(status, (200, 429))
                self.assertIn(body["basis"], ("store", "cached"))
                if status == 200:
                    admitted.append(body["remaining"])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(admitted), list(range(100)), "each unit was given out once")

    def test_an_id_is_charged_once_whichever_node_is_asked(self):
        redis = harness.RedisServer(self)
        one, other = self.node(redis), self.node(redis)
        first = check(one, ip="192.0.2.2", id="order-17")
        again = check(other, ip="192.0.2.2", id="order-17")
        self.assertEqual((first[0], first[2]["remaining"]), (200, 99))
        self.assertEqual((again[0], again[2]["remaining"]), (200, 99))
        self.assertEqual(check(other, ip="192.0.2.2")[2]["remaining"], 98)

    def test_a_batch_is_asked_together_and_counted_in_order(self):
        redis = harness.RedisServer(self)
        one, other = self.node(redis), self.node(redis)
        questions = [{"attributes": {"ip": "192.0.2.20"}} for _ in range(70)]
        status, _, body = post(one.http, "/v1/check", {"checks": questions})
        self.assertEqual(status, 200)
        self.assertEqual([each["remaining"] for each in body["checks"]], list(range(99, 29, -1)))
        # One of them twice, and once more by another node.
        ids = [{"attributes": {"ip": "192.0.2.20"}, "id": name} for name in ("a", "b", "a")]
        for node in (one, other):
            _, _, body = post(node.http, "/v1/check", {"checks": ids})
            self.assertEqual([each["remaining"] for each in body["checks"]], [29, 28, 29])
        _, _, body = post(other.http, "/v1/check", {"checks": questions})
        self.assertEqual(sum(each["allowed"] for each in body["checks"]), 28)

    def test_pipelined_commands_are_asked_together_and_answered_in_order(self):
        redis = harness.RedisServer(self)
        node = self.node(redis)
        client = harness.Redis(self, node.resp)
        checks = [["WEIR.CHECK", "ip", "192.0.2.30"]] * 40
        throttles = [["CL.THROTTLE", "key", "3", "1", "60"]] * 2
        answers = client.pipeline(checks + [["PING"]] + throttles + checks[:2] +
                                  [["WEIR.CHECK", "ip"]] + checks[:1])

        def left(answer):
            return dict(zip(answer[::2], answer[1::2]))["remaining"]

        self.assertEqual([left(answer) for answer in answers[:40]], list(range(99, 59, -1)))
        self.assertEqual(answers[40], "PONG")
        self.assertEqual([answer[2] for answer in answers[41:43]], [3, 2])
        self.assertEqual([left(answer) for answer in answers[43:45]], [59, 58])
        self.assertIn("number of arguments", answers[45]["error"])
        self.assertEqual(left(answers[46]), 57)

    def test_what_one_node_reserves_another_settles(self):
        redis = harness.RedisServer(self)
        one, other = self.node(redis), self.node(redis)
        status, _, reserved = post(one.http, "/v1/reserve", {
            "attributes": {"ip": "192.0.2.3"}, "estimate": 10})
        self.assertEqual((status, reserved["remaining"]), (200, 90))
        token = reserved["reservation"]
        status, _, settled = post(other.http, "/v1/settle", {"id": token, "actual": 4})
        self.assertEqual(status, 200, settled)
        self.assertEqual((settled["outcome"], settled["actual"]), ("settled", 4))
        self.assertEqual(check(one, ip="192.0.2.3")[2]["remaining"], 95)
        status, _, again = post(one.http, "/v1/settle", {"id": token, "actual": 9})
        self.assertEqual((status, again["outcome"], again["actual"]), (409, "already settled", 4))
        # Slots that one node holds are taken for all, until they are released.
        tokens = []
        asked = {"attributes": {"ip": "192.0.2.4", "path": "/slots"}, "estimate": 1}
        for node in (one, other):
            status, _, held = post(node.http, "/v1/reserve", asked)
            self.assertEqual(status, 200, held)
            tokens.append(held["reservation"])
        self.assertEqual(post(one.http, "/v1/reserve", asked)[0], 429)
        self.assertEqual(post(one.http, "/v1/release", {"ids": tokens[1:]})[0], 200)
        self.assertEqual(post(other.http, "/v1/reserve", asked)[0], 200)

    def test_when_redis_is_gone_each_rule_does_what_it_says_and_it_recovers(self):
        redis = harness.RedisServer(self)
        node = self.node(redis)
        self.assertEqual(check(node, ip="192.0.2.5", cost=40)[2]["remaining"], 60)
        port = redis.port
        redis.signal(signal.SIGKILL)
        redis.wait()
        harness.wait_for("noticing it", lambda: self.away(node))
        status, _, body = check(node, ip="192.0.2.5")
        self.assertEqual((status, body["basis"]), (200, "local"))
        self.assertLessEqual(body["remaining"], 20, "a third of what was left, and no fresh bucket")
        status, headers, body = check(node, ip="192.0.2.5", path="/shut")
        self.assertEqual((status, body["error"]), (503, "store_unavailable"))
        self.assertIn("Retry-After", headers)
        self.assertNotIn("X-RateLimit-Limit", headers)
        for _ in range(3):
            status, headers, body = check(node, ip="192.0.2.6", path="/open")
            self.assertEqual(status, 200)
        harness.RedisServer(self, port=port)
        harness.wait_for("the return", lambda: not self.away(node))
        harness.wait_for("exact answers", lambda: check(
            node, ip="192.0.2.7")[2]["basis"] == "store")
        # What was admitted meanwhile is charged; the store had forgotten the rest.
        harness.wait_for("repayment", lambda: node.metric("weir_fleet_repaid_units_total") >= 1)
        self.assertLess(check(node, ip="192.0.2.5", cost=0)[2]["remaining"], 100)

    def test_a_redis_that_hangs_does_not_hold_up_anybody(self):
        redis = harness.RedisServer(self)
        node = self.node(redis, timeout="20ms")
        harness.wait_for("an answer in time", lambda: check(
            node, ip="192.0.2.8")[2]["basis"] == "store")
        redis.freeze()
        self.addCleanup(redis.signal, signal.SIGCONT)
        bases = []
        for _ in range(40):
            bases.append(check(node, ip="192.0.2.8")[2]["basis"])
        self.assertLessEqual(set(bases), {"local"})
        self.assertGreaterEqual(node.metric('weir_fleet_failures_total{cause="timeout"}'), 1)
        self.assertGreaterEqual(node.metric('weir_fleet_failures_total{cause="breaker_open"}'), 1)
        redis.signal(signal.SIGCONT)
        harness.wait_for("exact answers", lambda: check(
            node, ip="192.0.2.9")[2]["basis"] == "store")

    def test_it_starts_without_redis_and_finds_it(self):
        port = harness.free_port()
        node = harness.Weir(self, "--redis", f"redis://127.0.0.1:{port}", rules=RULES)
        self.assertEqual(check(node, ip="192.0.2.1")[2]["basis"], "local")
        self.assertIn("127.0.0.1:" + str(port), node.output())
        harness.RedisServer(self, port=port)
        harness.wait_for("exact answers", lambda: check(
            node, ip="192.0.2.1")[2]["basis"] == "store")

    def test_throttle_is_shared_too(self):
        redis = harness.RedisServer(self)
        one, other = self.node(redis), self.node(redis)

        def throttle(node, *words):
            return harness.Redis(self, node.resp).ask("CL.THROTTLE", *words)

        self.assertEqual(throttle(one, "key", "3", "1", "60"), [0, 4, 3, -1, 60])
        self.assertEqual(throttle(other, "key", "3", "1", "60")[:3], [0, 4, 2])
        self.assertEqual(throttle(one, "key", "3", "1", "60", "3")[:3], [1, 4, 2])
        self.assertIn("shared store", throttle(one, "key", "3", "1", "60", "-1")["error"])
        # Anybody can make a key start anew, also a node that has not throttled anything yet.
        fresh = harness.Redis(self, self.node(redis).resp)
        self.assertEqual(fresh.ask("DEL", "key", "nosuch"), 1)
        self.assertEqual(fresh.ask("DEL", "key"), 0)
        self.assertEqual(throttle(one, "key", "3", "1", "60")[:3], [0, 4, 3])

    def test_what_is_wrong_with_it_is_said(self):
        redis = harness.RedisServer(self, "--maxmemory", "100mb", "--maxmemory-policy",
                                    "allkeys-lru")
        for options, expected in (
                (("--redis", redis.url), "maxmemory-policy"),
                (("--redis", "http://127.0.0.1"), "redis://"),
                (("--redis", redis.url, "--fleet-nodes", "0"), "--fleet-nodes"),
                (("--redis", redis.url, "--test-clock", "/dev/zero"), "--test-clock")):
            with self.subTest(options=options):
                process = harness.Process(self, [
                    harness.WEIR, "serve", "--http", "127.0.0.1:0", "--resp", "off",
                    "--admin", "off", *options])
                self.assertNotEqual(process.wait(), 0)
                self.assertIn(expected, process.output())
        node = self.node(redis, "--redis-allow-eviction")
        self.assertEqual(check(node, ip="192.0.2.1")[2]["basis"], "store")
        locked = harness.RedisServer(self, "--requirepass", "secret-word")
        node = self.node(locked)
        self.assertEqual(check(node, ip="192.0.2.1")[2]["basis"], "local")
        harness.wait_for("the line", lambda: "password" in node.output())
        self.assertNotIn("secret-word", node.output())

    def test_a_drain_waits_for_what_is_under_way(self):
        redis = harness.RedisServer(self)
        node = self.node(redis, timeout="2s")
        check(node, ip="192.0.2.1")
        redis.freeze()
        self.addCleanup(redis.signal, signal.SIGCONT)
        answers = []
        asking = threading.Thread(target=lambda: answers.append(check(node, ip="192.0.2.1")))
        asking.start()
        harness.wait_for("the question at Redis", lambda: unread_bytes(redis.port))
        node.signal(signal.SIGTERM)
        asking.join()
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(node.wait(), 0)


if __name__ == "__main__":
    unittest.main()
