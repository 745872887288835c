"""weir in place of envoyproxy/ratelimit, over gRPC: its statistics of calls, its health, what it
says of bad messages, and clients that go on when weir is gone."""
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import grpc

import harness
from grpc_test import (NOT_SERVING, ROOT, SERVING, SHOULD_RATE_LIMIT, GrpcWeir, Stub, question,
                       rls_pb2)

sys.path.insert(0, str(ROOT / "examples/envoy"))
import fail_open  # noqa: E402

LIMITS = """domain: shop
descriptors:
- {key: user, rate_limit: {unit: hour, requests_per_unit: 3}}
"""


class Compat(unittest.TestCase):
    def start(self, limits=LIMITS, **environment):
        root = pathlib.Path(tempfile.mkdtemp(prefix="weir-runtime"))
        self.addCleanup(shutil.rmtree, root)
        self.config = root / "config"
        self.config.mkdir()
        if limits:
            (self.config / "shop.yaml").write_text(limits)
        self.http, self.debug, self.grpc, self.metrics = (harness.free_port() for _ in range(4))
        self.weir = harness.Process(self, [harness.WEIR, "serve", "--memory", "32MiB"], env=dict(
            os.environ, HOST="127.0.0.1", PORT=str(self.http), DEBUG_PORT=str(self.debug),
            GRPC_HOST="127.0.0.1", GRPC_PORT=str(self.grpc), RUNTIME_ROOT=str(root),
            USE_PROMETHEUS="true", PROMETHEUS_ADDR=f"127.0.0.1:{self.metrics}", **environment))
        harness.wait_for("an answer", lambda: harness.answers(self.grpc))
        return Stub(self, self.grpc)

    def test_nodes_count_together_in_redis(self):
        redis = harness.RedisServer(self)
        where = {"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": f"127.0.0.1:{redis.port}",
                 "REDIS_TIMEOUT": "3s"}
        limits = LIMITS.replace("requests_per_unit: 3", "requests_per_unit: 100")
        stubs = [self.start(limits, **where), self.start(limits, **where)]
        codes = []

        def ask(index):
            for i in range(20):
                answer = stubs[(index + i) % 2].ask(question({"user": "ann"}, {"user": "bob"}))
                codes.append(answer.overall_code)
                self.assertEqual([status.current_limit.requests_per_unit
                                  for status in answer.statuses], [100, 100])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(codes.count(rls_pb2.RateLimitResponse.OK), 100)
        self.assertEqual(codes.count(rls_pb2.RateLimitResponse.OVER_LIMIT), 100)
        redis.signal(signal.SIGKILL)
        redis.wait()

        def is_away():
            try:
                stubs[0].ask(question({"user": "ann"}))
            except grpc.RpcError as error:
                return error.code() == grpc.StatusCode.UNAVAILABLE
            return False

        harness.wait_for("an error that Envoy's failure mode understands", is_away)
        harness.RedisServer(self, port=redis.port)
        harness.wait_for("the return", lambda: not is_away())

    def stats(self):
        lines = harness.get(self.debug, "/stats").text.splitlines()
        return {name: int(count) for name, _, count in (line.partition(": ") for line in lines)}

    def test_calls_are_counted_and_timed(self):
        stub = self.start()
        for _ in range(5):
            stub.ask(question({"user": "ann"}))
        with self.assertRaises(grpc.RpcError):
            stub.ask(question())
        self.assertEqual(stub.check("ratelimit"), SERVING)
        stats = self.stats()
        self.assertEqual(stats["ratelimit_server.ShouldRateLimit.total_requests"], 6)
        self.assertEqual(stats["ratelimit_server.Check.total_requests"], 1)
        self.assertEqual(stats["ratelimit.service.call.should_rate_limit.service_error"], 1)
        self.assertEqual(stats["ratelimit.service.rate_limit.shop.user.over_limit"], 2)
        text = harness.get(self.metrics, "/metrics").text
        labels = '{grpc_method="ShouldRateLimit"}'
        self.assertIn(f"ratelimit_service_total_requests{labels} 6\n", text)
        self.assertIn(f"ratelimit_service_response_time_seconds_count{labels} 6\n", text)
        self.assertIn('ratelimit_service_response_time_seconds_bucket{grpc_method='
                      '"ShouldRateLimit",le="+Inf"} 6\n', text)

    def health(self, stub):
        return stub.check("ratelimit"), harness.get(self.http, "/healthcheck").status

    def test_health_waits_for_a_configuration_if_told_to(self):
        stub = self.start(limits=None, HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED="true",
                          FORCE_START_WITHOUT_INITIAL_CONFIG="true")
        updates = stub.watch("ratelimit")
        self.assertEqual(next(updates).status, NOT_SERVING)
        self.assertEqual(self.health(stub), (NOT_SERVING, 500))
        (self.config / "shop.yaml").write_text(LIMITS)
        harness.wait_for("health", lambda: self.health(stub) == (SERVING, 200))
        self.assertEqual(next(updates).status, SERVING)
        (self.config / "shop.yaml").unlink()
        harness.wait_for("its end", lambda: self.health(stub) == (NOT_SERVING, 500))

    def test_health_does_not_wait_unless_told_to(self):
        stub = self.start(limits=None, FORCE_START_WITHOUT_INITIAL_CONFIG="true")
        self.assertEqual(self.health(stub), (SERVING, 200))


class BadMessages(unittest.TestCase):
    def test_text_that_is_no_utf8_fails_and_is_not_logged(self):
        weir = GrpcWeir(self)
        stub = Stub(self, weir.grpc)
        logged = weir.output()
        good = question({"user": "ann"}).SerializeToString()
        for path, message in (
                (SHOULD_RATE_LIMIT, good.replace(b"ann", b"a\xffn")),
                (SHOULD_RATE_LIMIT, good.replace(b"shop", b"sh\xc3\x28")),
                (SHOULD_RATE_LIMIT, good[:-1]),
                ("/grpc.health.v1.Health/Check", b"\x0a\x01\xff")):
            with self.assertRaises(grpc.RpcError) as failed:
                stub.raw(path, message)
            self.assertEqual(failed.exception.code(), grpc.StatusCode.INTERNAL)
            self.assertIn("grpc: error unmarshalling request", failed.exception.details())
        self.assertEqual(stub.ask(question({"user": "ann"})).statuses[0].limit_remaining, 2)
        self.assertEqual(weir.output(), logged)


class FailOpen(unittest.TestCase):
    def test_every_request_passes_when_weir_is_killed_under_load(self):
        port = harness.free_port()
        options = ("--grpc", f"127.0.0.1:{port}", "--descriptors",
                   str(ROOT / "examples/envoy/ratelimit.yaml"))
        weir = harness.Weir(self, *options)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=fail_open.CHANNEL)
        self.addCleanup(channel.close)
        limits = fail_open.RateLimits(channel, rls_pb2)
        answers, slowest = [], []
        done = threading.Event()

        def ask(number):
            count = 0
            while not done.is_set():
                count += 1
                began = time.monotonic()
                # Each address once, so that no limit is met.
                address = f"{number}.{count >> 16}.{count >> 8 & 255}.{count & 255}"
                answers.append(limits.allows("shop", {"remote_address": address}))
                slowest.append(time.monotonic() - began)
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            harness.wait_for("requests", lambda: len(answers) > 500)
            weir.signal(signal.SIGKILL)
            weir.wait()
            before = len(answers)
            harness.wait_for("more requests", lambda: len(answers) > before + 500)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        self.assertEqual(set(answers), {True})
        # Nobody waits for a limiter that is gone; a second is a busy machine's 20 ms.
        self.assertLess(sorted(slowest)[len(slowest) * 99 // 100], 1)
        self.assertFalse(limits.allows("shop", {"remote_address": "192.0.2.1"}, on_failure=False))

        harness.Weir(self, *options)
        patient = fail_open.RateLimits(channel, rls_pb2, timeout_s=harness.DEADLINE_S)
        harness.wait_for("answers again", lambda: patient.allows(
            "shop", {"remote_address": "192.0.2.2"}, on_failure=False))
        login = {"path": "/login", "remote_address": "192.0.2.3"}
        self.assertEqual([patient.allows("shop", login) for _ in range(6)], [True] * 5 + [False])


if __name__ == "__main__":
    harness.main()
