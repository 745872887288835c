"""Who connects, from where, and in which words: addresses, proxies, protocol versions, headers."""
import contextlib
import json
import pathlib
import socket
import tempfile
import unittest

import harness

RULES = """
rules:
  - name: per-ip
    per: ip
    limit: 2/h
    algorithm: fixed-window
"""


def connect(port, source=None, to="127.0.0.1"):
    return socket.create_connection((to, port), timeout=harness.DEADLINE_S,
                                    source_address=(source, 0) if source else None)


def received(connection):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            data += chunk
    return data


def auth(fields=b""):
    return b"GET /v1/auth HTTP/1.1\r\nHost: t\r\nConnection: close\r\n" + fields + b"\r\n"


class Addresses(unittest.TestCase):
    def ask(self, weir, fields=b"", source=None, before=b""):
        """The status of /v1/auth for who comes from that address; 0: no answer."""
        with connect(weir.http, source) as connection:
            connection.sendall(before + auth(fields))
            return harness.Reply(received(connection)).status

    def test_one_address_has_so_many_connections(self):
        weir = harness.Weir(self, "--connections-per-address", "3", rules=RULES)
        kept = [connect(weir.http, "127.0.0.9") for _ in range(3)]
        self.addCleanup(lambda: [one.close() for one in kept])
        for one in kept:  # answered, so it counts
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(one.recv(4096).startswith(b"HTTP/1.1 200"))
        for port in (weir.http, weir.resp):  # one count for all fronts
            with connect(port, "127.0.0.9") as fourth:
                self.assertEqual(received(fourth), b"")
        self.assertGreaterEqual(weir.metric("weir_connections_refused_total"), 2)
        # Others, and this machine's own address, do not notice.
        self.assertEqual(self.ask(weir, source="127.0.0.10"), 204)
        many = [connect(weir.http) for _ in range(10)]
        self.addCleanup(lambda: [one.close() for one in many])
        self.assertEqual(harness.get(weir.http, "/healthz").status, 200)
        kept.pop().close()

        def room():
            with contextlib.suppress(OSError):
                return self.ask(weir, source="127.0.0.9") in (204, 429)
            return False
        harness.wait_for("room again", room)

    def test_trusted_proxies_have_as_many_as_they_like(self):
        weir = harness.Weir(self, "--connections-per-address", "1", "--trusted-proxy",
                            "127.0.0.9", rules=RULES)
        kept = [connect(weir.http, "127.0.0.9") for _ in range(10)]
        self.addCleanup(lambda: [one.close() for one in kept])
        self.assertEqual(self.ask(weir, source="127.0.0.9"), 204)

    def test_headers_of_strangers_do_not_count(self):
        weir = harness.Weir(self, "--trusted-proxy", "127.0.0.9", rules=RULES)
        spoofed = [self.ask(weir, b"X-Forwarded-For: 203.0.113.%d\r\n" % n, "127.0.0.20")
                   for n in range(3)]
        self.assertEqual(spoofed, [204, 204, 429], "all of them are 127.0.0.20")
        through = [self.ask(weir, b"X-Forwarded-For: 6.6.6.6, 203.0.113.%d\r\n" % n, "127.0.0.9")
                   for n in (1, 2, 3, 3, 3)]
        self.assertEqual(through, [204, 204, 204, 204, 429])

    def test_ipv6_by_network_and_ipv4_within_it(self):
        weir = harness.Weir(self, "--trusted-proxy", "127.0.0.1", rules=RULES)
        through = lambda address: self.ask(weir, b"X-Forwarded-For: %s\r\n" % address)
        self.assertEqual([through(b"2001:db8:1:2::%d" % n) for n in range(3)], [204, 204, 429])
        self.assertEqual(through(b"2001:db8:1:3::1"), 204, "the next /64")
        same = (b"192.0.2.33", b"::ffff:192.0.2.33", b"64:ff9b::c000:221")
        self.assertEqual([through(one) for one in same], [204, 204, 429],
                         "mapped and NAT64 are the IPv4 address")

    def test_ipv6_by_its_whole_address_if_told(self):
        weir = harness.Weir(self, "--trusted-proxy", "127.0.0.1", "--ipv6-prefix", "128",
                            rules=RULES)
        statuses = [self.ask(weir, b"X-Forwarded-For: 2001:db8::%d\r\n" % n) for n in range(4)]
        self.assertEqual(statuses, [204] * 4)

    def test_forwarded_and_x_real_ip(self):
        for source, field in (("forwarded", b'Forwarded: for="[2001:db8::%d]:443"\r\n'),
                              ("x-real-ip", b"X-Real-IP: 198.51.100.%d\r\n")):
            weir = harness.Weir(self, "--trusted-proxy", "127.0.0.1", "--client-from", source,
                                "--ipv6-prefix", "128", rules=RULES)
            statuses = [self.ask(weir, field % n) for n in (1, 2, 1, 1)]
            self.assertEqual(statuses, [204, 204, 204, 429], source)

    def test_the_proxy_protocol_from_trusted_peers(self):
        weir = harness.Weir(self, "--proxy-protocol", "--trusted-proxy", "127.0.0.1",
                            "--client-from", "peer", rules=RULES)
        line = b"PROXY TCP4 203.0.113.%d 127.0.0.1 1 2\r\n"
        statuses = [self.ask(weir, before=line % n) for n in (1, 2, 2, 2)]
        self.assertEqual(statuses, [204, 204, 204, 429])
        address = bytes([203, 0, 113, 9, 127, 0, 0, 1, 0, 1, 0, 2])
        second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + address
        self.assertEqual([self.ask(weir, before=second) for _ in range(3)], [204, 204, 429])
        # None at all, a broken one, and one in pieces.
        self.assertEqual(self.ask(weir), 0)
        self.assertEqual(self.ask(weir, before=b"PROXY TCP4 203.0.113.1\r\n"), 0)
        with connect(weir.http) as connection:
            for byte in line % 7 + auth():
                connection.sendall(bytes([byte]))
            self.assertEqual(harness.Reply(received(connection)).status, 204)
        self.assertEqual(harness.get(weir.admin, "/metrics").status, 200, "not for operators")

    def test_the_proxy_protocol_from_strangers(self):
        weir = harness.Weir(self, "--proxy-protocol", "--trusted-proxy", "10.0.0.0/8",
                            rules=RULES)
        self.assertEqual(self.ask(weir, before=b"PROXY TCP4 203.0.113.1 127.0.0.1 1 2\r\n"), 0)
        self.assertGreaterEqual(weir.metric('weir_protocol_errors_total{protocol="http"}'), 1)


class HalfOpen(unittest.TestCase):
    def test_who_has_said_all_still_gets_the_answer(self):
        weir = harness.Weir(self, rules=RULES)
        with connect(weir.http) as connection:
            body = b'{"key": "a"}'
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
            connection.shutdown(socket.SHUT_WR)
            self.assertTrue(received(connection).startswith(b"HTTP/1.1 200 OK"))
        with connect(weir.resp) as connection:
            connection.sendall(b"PING\r\nPING\r\n")
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(received(connection), b"+PONG\r\n+PONG\r\n")

    def test_who_ends_amidst_a_request_is_forgotten(self):
        weir = harness.Weir(self, rules=RULES)
        kept = []
        for port, part in ((weir.http, b"POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Le"),
                           (weir.resp, b"*2\r\n$4\r\nECHO\r\n$5\r\nhel")):
            for _ in range(50):
                connection = connect(port)
                self.addCleanup(connection.close)
                connection.sendall(part)
                connection.shutdown(socket.SHUT_WR)
                kept.append(connection)
        # Not when their time is over, but at once: they will not go on.
        harness.wait_for("their end", lambda: weir.metric("weir_connections_open") <= 2, 8)
        self.assertEqual(harness.get(weir.http, "/healthz").status, 200)

    def test_who_is_gone_without_a_word(self):
        weir = harness.Weir(self, rules=RULES)
        for _ in range(50):
            connection = connect(weir.resp)
            connection.sendall(b"PING\r\n" * 100)
            # A reset instead of an end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        harness.wait_for("their end", lambda: weir.metric("weir_connections_open") <= 2)
        self.assertEqual(harness.Redis(self, weir.resp).ask("PING"), "PONG")


class Resp3(unittest.TestCase):
    def say(self, connection, text, ends):
        connection.sendall(text)
        data = b""
        while not data.endswith(ends):
            chunk = connection.recv(65536)
            self.assertTrue(chunk, data)
            data += chunk
        return data

    def test_types_of_version_three_and_no_pushes(self):
        weir = harness.Weir(self, rules=RULES)
        with connect(weir.resp) as connection:
            hello = self.say(connection, b"HELLO 3\r\n", b"*0\r\n")
            self.assertTrue(hello.startswith(b"%7\r\n$6\r\nserver\r\n$4\r\nweir\r\n"), hello)
            self.assertIn(b"$5\r\nproto\r\n:3\r\n", hello)
            check = self.say(connection, b"WEIR.CHECK ip 192.0.2.1\r\n", b"$5\r\nstore\r\n")
            self.assertTrue(check.startswith(b"%8\r\n$7\r\nallowed\r\n#t\r\n"), check)
            explained = self.say(connection, b"WEIR.EXPLAIN ip 192.0.2.1\r\n", b"\n\r\n")
            self.assertTrue(explained.startswith(b"="), explained)
            self.assertEqual(explained.split(b"\r\n", 1)[1][:4], b"txt:")
            # Everything is an answer: neither push messages nor attributes come unasked.
            replies = self.say(connection, b"PING\r\nECHO a\r\nCLIENT ID\r\nPING last\r\n",
                               b"last\r\n")
            self.assertRegex(replies, rb"^\+PONG\r\n\$1\r\na\r\n:\d+\r\n\$4\r\nlast\r\n$")
            for unasked in (b">", b"|"):
                self.assertNotIn(b"\r\n" + unasked, hello + check + replies)
            back = self.say(connection, b"HELLO 2\r\n", b"*0\r\n")
            self.assertTrue(back.startswith(b"*14\r\n"), back)
            self.assertEqual(self.say(connection, b"HELLO 4\r\n", b"\r\n"),
                             b"-NOPROTO unsupported protocol version\r\n")

    def test_hello_with_a_password(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sesame\n")
            file.flush()
            weir = harness.Weir(self, "--resp-password-file", file.name)
        with connect(weir.resp) as connection:
            line = lambda text: self.say(connection, text, b"\r\n")
            self.assertTrue(line(b"HELLO 3\r\n").startswith(b"-NOAUTH"))
            self.assertTrue(line(b"HELLO 3 AUTH default wrong\r\n").startswith(b"-WRONGPASS"))
            self.assertTrue(line(b"HELLO 3 AUTH other sesame\r\n").startswith(b"-WRONGPASS"))
            self.assertTrue(line(b"HELLO 3 AUTH default\r\n").startswith(b"-ERR Syntax error"))
            self.assertTrue(line(b"CL.THROTTLE a 1 1 1\r\n").startswith(b"-NOAUTH"))
            hello = self.say(connection, b"HELLO 3 AUTH default sesame SETNAME me\r\n", b"*0\r\n")
            self.assertTrue(hello.startswith(b"%7\r\n"), hello)
            self.assertEqual(line(b"CLIENT GETNAME\r\n"), b"$2\r\nme\r\n")
            self.assertEqual(line(b"RESET\r\n"), b"+RESET\r\n")
            self.assertTrue(line(b"PING\r\n").startswith(b"-NOAUTH"), "RESET forgets who it is")
        self.assertNotIn("sesame", weir.output())

    def test_limits_before_the_password(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sesame\n")
            file.flush()
            weir = harness.Weir(self, "--resp-password-file", file.name)
        for bad in (b"*11\r\n", b"*1\r\n$16385\r\n", b"x" * 17_000):
            self.assertTrue(harness.send(weir.resp, bad).startswith(b"-ERR Protocol error"), bad)


class Headers(unittest.TestCase):
    def families(self, *options):
        weir = harness.Weir(self, *options, rules=RULES)
        reply = harness.post(weir.http, "/v1/check", '{"attributes": {"ip": "192.0.2.1"}}')
        self.assertEqual(reply.status, 200)
        return reply.headers

    def test_by_default(self):
        headers = self.families()
        self.assertEqual(headers["x-ratelimit-limit"], "2")
        self.assertEqual(headers["ratelimit-policy"], '"per-ip";q=2;w=3600')
        self.assertRegex(headers["ratelimit"], r'^"per-ip";r=1;t=\d+$')
        self.assertEqual(headers["x-weir-rule"], "per-ip")

    def test_draft_seven(self):
        headers = self.families("--headers", "ietf-07")
        self.assertRegex(headers["ratelimit"], r"^limit=2, remaining=1, reset=\d+$")
        self.assertNotIn("x-ratelimit-limit", headers)

    def test_drafts_three_to_six(self):
        headers = self.families("--headers", "ietf-03")
        self.assertEqual((headers["ratelimit-limit"], headers["ratelimit-remaining"]), ("2", "1"))
        self.assertLessEqual(int(headers["ratelimit-reset"]), 3600)
        self.assertNotIn("ratelimit", headers)

    def test_seconds_from_now(self):
        headers = self.families("--headers", "x-ratelimit", "--reset-as-delta")
        self.assertLessEqual(int(headers["x-ratelimit-reset"]), 3600)

    def test_none(self):
        headers = self.families("--headers", "none")
        self.assertEqual([name for name in headers if "limit" in name or "weir" in name], [])

    def test_the_body_by_accept(self):
        weir = harness.Weir(self, rules=RULES)
        problem = "application/problem+json"
        for accept, expected in ((None, "application/json"), ("*/*", "application/json"),
                                 (problem, problem), (f"text/html, {problem};q=0.5", problem),
                                 (f"{problem};q=0.1, application/json;q=0.9", "application/json"),
                                 (f"application/json;q=0, {problem}", problem),
                                 ("application/*", "application/json"),
                                 ("nonsense;;q=,", "application/json")):
            question = {"attributes": {"ip": "192.0.2.5"}, "cost": 2}
            headers = [("Accept", accept)] if accept else []
            for _ in range(2):
                reply = harness.post(weir.http, "/v1/check", json.dumps(question), headers)
            self.assertEqual(reply.status, 429)
            self.assertEqual(reply.headers["content-type"], expected, accept)
            self.assertIn("detail" if expected == problem else "error", json.loads(reply.text))


class Memory(unittest.TestCase):
    def test_slow_senders_cost_what_they_sent(self):
        """Large bodies that never end: what is kept is bounded by what came."""
        weir = harness.Weir(self, "--message-seconds", "60", rules=RULES)
        status = pathlib.Path(f"/proc/{weir.pid}/status")
        resident = lambda: int(status.read_text().split("VmRSS:")[1].split()[0])
        before = resident()
        for _ in range(200):
            connection = connect(weir.http)
            self.addCleanup(connection.close)
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Length: 1048576"
                               b"\r\n\r\n" + b"x" * 20_000)
        harness.wait_for("them", lambda: weir.metric("weir_connections_open") >= 200)
        self.assertEqual(harness.get(weir.http, "/healthz").status, 200)
        sanitized = b"__asan_init" in pathlib.Path(harness.WEIR).read_bytes()
        self.assertLess(resident() - before, 200 * 64 * (16 if sanitized else 1))


if __name__ == "__main__":
    harness.main()
