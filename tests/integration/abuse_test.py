"""Clients that are broken, slow, greedy or gone: one connection ends, the rest goes on."""
import pathlib
import resource
import signal
import socket
import threading
import unittest

import harness

# A sanitizer keeps freed memory for a while, and puts room around what is in use.
SANITIZED = b"__asan_init" in pathlib.Path(harness.WEIR).read_bytes()
SLACK = 16 if SANITIZED else 1

RULES = "rules:\n  - name: all\n    per: key\n    limit: 1000/s\n"


def memory_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


class Abuse(unittest.TestCase):
    def start(self, *options):
        weir = harness.Weir(self, *options, rules=RULES)
        self.weir = weir
        return weir

    def assert_well(self):
        self.assertTrue(self.weir.running(), self.weir.output())
        self.assertEqual(harness.get(self.weir.http, "/healthz").status, 200)
        self.assertEqual(harness.Redis(self, self.weir.resp).ask("PING"), "PONG")

    def test_broken_redis_frames(self):
        weir = self.start()
        steady = harness.Redis(self, weir.resp)
        for frame in (b"*2147483647\r\n", b"*-5\r\n$-5\r\n", b"*1\r\n$-5\r\n",
                      b"*1\r\n$99999999\r\n", b"*1\r\n:5\r\n", b"*x\r\n",
                      b"*1\r\n$3\r\nabcde\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n",
                      b"*2000\r\n", b"x" * 70_000 + b"\r\n", b"\"unbalanced\r\n"):
            reply = harness.send(weir.resp, frame + b"QUIT\r\n")
            self.assertTrue(reply.startswith((b"-ERR ", b"+OK")), (frame[:30], reply))
            self.assertEqual(steady.ask("PING"), "PONG")
        self.assert_well()

    def test_broken_http(self):
        weir = self.start()
        for text, status in (
                (b"\x16\x03\x01\x02\x00", 400), (b"GET / HTTP/1.1\r\n\r\n", 400),
                (b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505), (b"G\x00T / HTTP/1.1\r\n\r\n", 400),
                (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n", 400),
                (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
                (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
                (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
                (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", 431)):
            reply = harness.Reply(harness.send(weir.http, text))
            self.assertEqual(reply.status, status, text[:60])
            self.assertEqual(reply.headers.get("connection"), "close")
        self.assert_well()

    def test_large_keys(self):
        weir = self.start()
        redis = harness.Redis(self, weir.resp)
        self.assertEqual(redis.ask("CL.THROTTLE", "k" * 65536, 1, 1, 1)[0], 0)
        reply = redis.ask("WEIR.CHECK", "key", "k" * 2049)
        self.assertEqual(reply[reply.index("outcome") + 1], "refused")
        for size, status in ((2048, 200), (2049, 400)):
            question = '{"key": "%s"}' % ("k" * size)
            self.assertEqual(harness.post(weir.http, "/v1/check", question).status, status)
        self.assert_well()

    def test_slow_senders_are_cut_off_and_others_do_not_wait(self):
        weir = self.start("--message-seconds", "1")
        slow = [socket.create_connection(("127.0.0.1", port), timeout=60)
                for port in (weir.http, weir.resp) for _ in range(100)]
        self.addCleanup(lambda: [one.close() for one in slow])
        for number, one in enumerate(slow):
            one.sendall(b"GET / HT" if number < 100 else b"*1\r\n$4\r\nPI")
        self.assert_well()
        answers = [one.recv(4096) for one in slow]
        self.assertTrue(all(answer.startswith(b"HTTP/1.1 408") for answer in answers[:100]))
        self.assertTrue(all(answer == b"" for answer in answers[100:]))
        self.assertGreaterEqual(weir.metric("weir_connections_timed_out_total"), 200)

    def test_readers_that_do_not_read(self):
        weir = self.start()
        before = memory_kib(weir.pid)
        deaf = []
        for _ in range(20):
            one = socket.create_connection(("127.0.0.1", weir.resp), timeout=1)
            self.addCleanup(one.close)
            deaf.append(one)
            try:
                for _ in range(300):
                    one.sendall(b"COMMAND\r\n" * 500)
            except TimeoutError:
                pass  # it is not read from any more, as it should be
        self.assert_well()
        self.assertLess(memory_kib(weir.pid) - before, SLACK * 64 * 1024)

    def test_many_idle_and_half_open_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        weir = self.start("--connections-max", "2000")
        before = memory_kib(weir.pid)
        idle = []
        for _ in range(1500):
            one = socket.create_connection(("127.0.0.1", weir.http), timeout=60)
            self.addCleanup(one.close)
            idle.append(one)
        harness.wait_for("the connections", lambda: weir.metric("weir_connections_open") >= 1500)
        self.assertLess(memory_kib(weir.pid) - before, SLACK * 1500 * 64)
        self.assert_well()

    def test_connections_beyond_the_limit_are_closed_at_once(self):
        weir = self.start("--connections-max", "20")
        kept = [socket.create_connection(("127.0.0.1", weir.resp), timeout=60) for _ in range(40)]
        self.addCleanup(lambda: [one.close() for one in kept])
        harness.wait_for("a refusal", lambda: any(self.ended(one) for one in kept))
        for one in kept:
            one.close()
        harness.wait_for("room again", lambda: self.pong(weir))

    @staticmethod
    def ended(connection):
        connection.setblocking(False)
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def pong(self, weir):
        try:
            return harness.Redis(self, weir.resp).ask("PING") == "PONG"
        except OSError:
            return False

    def test_sigterm_answers_what_is_under_way(self):
        weir = self.start()
        failures = []
        stop = threading.Event()

        def ask():
            # A keep-alive client that honours Connection: close, and takes a refused connection
            # (nobody listens any more) for the end.
            while not stop.is_set():
                try:
                    connection = socket.create_connection(("127.0.0.1", weir.http), timeout=60)
                except ConnectionRefusedError:
                    return
                with connection:
                    while True:
                        body = b'{"key": "a"}'
                        connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                           b"%d\r\n\r\n" % len(body) + body)
                        received = b""
                        while b"\r\n\r\n" not in received or not received.endswith(b"}"):
                            try:
                                chunk = connection.recv(65536)
                            except ConnectionResetError:
                                chunk = b""
                            if not chunk:
                                break
                            received += chunk
                        if not received.endswith(b"}"):
                            failures.append(received)
                            return
                        if b"Connection: close" in received:
                            break

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        requests = 'weir_requests_total{protocol="http"}'
        harness.wait_for("load", lambda: weir.metric(requests) > 500)
        weir.signal(signal.SIGTERM)
        self.assertEqual(weir.wait(), 0)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    harness.main()
