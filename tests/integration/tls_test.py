"""TLS on every listener: a matrix of good and bad certificates, reload, and who a client is."""
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest
import warnings

import harness

RULES = """
rules:
  - name: by-client
    per: tls_client
    limit: 2/h
"""


class Authority:
    """Makes certificates with openssl, in a folder of its own."""

    def __init__(self, test):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-tls"))
        test.addClassCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def run(self, *words):
        done = subprocess.run(["openssl", *words], capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def path(self, name):
        return str(self.folder / name)

    def key(self, name, kind="ec"):
        if kind == "ec":
            self.run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", name + ".key")
        else:
            self.run("genrsa", "-out", name + ".key", "2048")

    def root(self, name):
        self.key(name)
        self.run("req", "-x509", "-new", "-key", name + ".key", "-subj", f"/CN={name}", "-days",
                 "30", "-out", name + ".crt", "-addext", "basicConstraints=critical,CA:TRUE")

    def leaf(self, name, signer, kind="ec", days=30, san="DNS:localhost,IP:127.0.0.1",
             authority=False, subject=None):
        """A certificate; days below 0: it has expired."""
        self.key(name, kind)
        self.run("req", "-new", "-key", name + ".key", "-subj", subject or f"/CN={name}", "-out",
                 name + ".csr")
        extensions = "basicConstraints=critical,CA:TRUE\n" if authority else ""
        extensions += f"subjectAltName={san}\n" if san else ""
        (self.folder / (name + ".ext")).write_text(extensions)
        self.count += 1
        self.run("x509", "-req", "-in", name + ".csr", "-CA", signer + ".crt", "-CAkey",
                 signer + ".key", "-set_serial", str(self.count), "-days", str(days), "-extfile",
                 name + ".ext", "-out", name + ".crt")

    def join(self, name, *parts):
        (self.folder / name).write_text(
            "".join((self.folder / part).read_text() for part in parts))


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = cls.made = Authority(cls)
        made.root("ca")
        made.root("other")
        made.leaf("server", "ca")
        made.leaf("rsa", "ca", kind="rsa")
        made.leaf("elsewhere", "ca", san="DNS:elsewhere.test")
        made.leaf("expired", "ca", days=-1)
        made.leaf("middle", "ca", authority=True, san="")
        made.leaf("behind", "middle")
        made.join("chain.crt", "behind.crt", "middle.crt")
        made.run("ec", "-aes128", "-passout", "pass:secret", "-in", "server.key", "-out",
                 "locked.key")
        made.leaf("ann", "ca", san="URI:spiffe://shop/ann,DNS:ann.test")
        made.leaf("bob", "ca", san="DNS:bob.test")
        made.leaf("carl", "ca", san="")
        made.leaf("dora", "other", san="DNS:dora.test")
        made.leaf("late", "ca", days=-1, san="DNS:late.test")
        made.leaf("eve", "middle", san="DNS:eve.test")
        made.join("eve_chain.crt", "eve.crt", "middle.crt")
        made.leaf("odd", "ca", san="", subject="/CN=two words")
        (made.folder / "empty.crt").write_text("")
        (made.folder / "noise.crt").write_text("-----BEGIN CERTIFICATE-----\nnoise\n")

    def start(self, certificate="server", key=None, scheme="tls", front="http", *options):
        folder = self.made.folder
        command = ["--" + front, scheme + ":127.0.0.1:0", "--tls-cert",
                   str(folder / (certificate + ".crt")), "--tls-key",
                   str(folder / ((key or certificate) + ".key"))]
        if scheme == "mtls":
            command += ["--tls-client-ca", str(folder / "ca.crt")]
        # The last of two wins where a list is given twice: so without the harness's own.
        self.weir = TlsWeir(self, front, *command, *options)
        return self.weir.ports[front]

    def client(self, ca="ca", host_matters=True, certificate=None, key=None, low=None, high=None,
               protocols=()):
        context = ssl.create_default_context(cafile=self.made.path(ca + ".crt"))
        context.check_hostname = host_matters
        if certificate:
            context.load_cert_chain(self.made.path(certificate + ".crt"),
                                    self.made.path((key or certificate) + ".key"))
        if low:
            context.minimum_version = low
        if high:
            context.maximum_version = high
        if protocols:
            context.set_alpn_protocols(protocols)
        return context

    def get(self, port, context, path="/healthz"):
        """The status and the connection's properties."""
        with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                               .encode())
                received = b""
                while chunk := secure.recv(65536):
                    received += chunk
                return harness.Reply(received), secure.version(), secure.selected_alpn_protocol()

    def assert_good(self, port, context, version=None):
        reply, spoken, _ = self.get(port, context)
        self.assertEqual(reply.status, 200)
        if version:
            self.assertEqual(spoken, version)

    def assert_bad(self, port, context):
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.get(port, context)
        self.assertTrue(self.weir.running())

    def assert_no_start(self, text, *options):
        command = [harness.WEIR, "serve", "--http", "tls:127.0.0.1:0", "--resp", "off", "--admin",
                   "off", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.DEADLINE_S)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(text, done.stderr)

    def files(self, certificate, key):
        return ["--tls-cert", self.made.path(certificate), "--tls-key", self.made.path(key)]

    def test_the_server_s_certificate(self):
        v12, v13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
        port = self.start()
        self.assert_good(port, self.client(low=v13), "TLSv1.3")                   # 1: EC, TLS 1.3
        self.assert_good(port, self.client(high=v12), "TLSv1.2")                  # 2: EC, TLS 1.2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old = self.client(high=ssl.TLSVersion.TLSv1_1)
            old.minimum_version = ssl.TLSVersion.TLSv1
        old.set_ciphers("ALL:@SECLEVEL=0")
        self.assert_bad(port, old)                                                # 3: TLS 1.1
        self.assert_bad(port, self.client(ca="other"))                            # 4: wrong CA
        self.assertNotIn(b"HTTP", harness.send(port, b"GET / HTTP/1.1\r\n\r\n"))  # 5: no TLS
        self.assertTrue(self.weir.running())
        port = self.start("rsa")
        self.assert_good(port, self.client(low=v13), "TLSv1.3")                   # 6: RSA, TLS 1.3
        self.assert_good(port, self.client(high=v12), "TLSv1.2")                  # 7: RSA, TLS 1.2
        port = self.start("elsewhere")
        self.assert_bad(port, self.client())                                      # 8: wrong host
        self.assert_good(port, self.client(host_matters=False))                   # 9: if it matters
        port = self.start("behind")
        self.assert_bad(port, self.client())                                      # 10: no chain
        port = self.start("chain", "behind")
        self.assert_good(port, self.client())                                     # 11: the chain

    def test_what_does_not_start(self):
        for certificate, key, text in (
                ("expired.crt", "expired.key", "expired.crt: has expired"),       # 12
                ("server.crt", "rsa.key", "rsa.key: "),                           # 13: another kind
                ("server.crt", "elsewhere.key", "elsewhere.key: "),               # 14: another key
                ("server.crt", "locked.key", "is encrypted"),                     # 15
                ("absent.crt", "server.key", "absent.crt: "),                     # 16
                ("empty.crt", "server.key", "empty.crt: "),                       # 17
                ("noise.crt", "server.key", "noise.crt: ")):                      # 18
            self.assert_no_start(text, *self.files(certificate, key))
        self.assert_no_start("needs --tls-cert and --tls-key")                    # 19

    def test_clients_with_certificates(self):
        port = self.start(scheme="mtls")
        self.assert_good(port, self.client(certificate="ann"))                    # 20: right
        self.assert_bad(port, self.client())                                      # 21: none
        self.assert_bad(port, self.client(certificate="dora"))                    # 22: wrong CA
        self.assert_bad(port, self.client(certificate="late"))                    # 23: expired
        self.assert_bad(port, self.client(certificate="eve"))                     # 24: no chain
        self.assert_good(port, self.client(certificate="eve_chain", key="eve"))   # 25: the chain
        self.assert_good(port, self.client(certificate="bob",
                                           high=ssl.TLSVersion.TLSv1_2))          # 26: TLS 1.2

    def test_alpn(self):
        port = self.start()
        self.assertEqual(self.get(port, self.client(protocols=["h2", "http/1.1"]))[2], "http/1.1")
        self.assert_bad(port, self.client(protocols=["h2"]))
        self.assertIsNone(self.get(port, self.client())[2])

    def test_rules_know_who_a_client_is(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
            rules.write(RULES)
            rules.flush()
            port = self.start("server", None, "mtls", "http", "--rules", rules.name)
        for certificate in ("ann", "bob", "carl"):
            client = self.client(certificate=certificate)
            # Nobody is somebody else by saying so.
            statuses = [self.get(port, client, f"/v1/auth?tls_client={number}")[0].status
                        for number in range(4)]
            self.assertEqual(statuses, [204, 204, 429, 429], certificate)
        # A name with a space in it is no identity, so the rule does not apply.
        odd = self.client(certificate="odd")
        self.assertEqual([self.get(port, odd, "/v1/auth")[0].status for _ in range(4)], [204] * 4)

    def ask(self, port, client, raw):
        with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as plain:
            with client.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(raw)
                received = b""
                while chunk := secure.recv(65536):
                    received += chunk
                return received

    def post(self, port, client, path, body):
        return harness.Reply(self.ask(
            port, client, f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()))

    def start_with_rules(self, front):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
            rules.write(RULES)
            rules.flush()
            return self.start("server", None, "mtls", front, "--rules", rules.name)

    def test_every_question_is_asked_by_whom_the_certificate_names(self):
        port = self.start_with_rules("http")
        ann, bob = self.client(certificate="ann"), self.client(certificate="bob")
        asked = '{"attributes": {"tls_client": "%s", "path": "/"}, "id": "%s"}'
        # Nobody is somebody else by saying so, and an id is of whoever asks.
        self.assertEqual([self.post(port, ann, "/v1/check", asked % (name, name)).status
                          for name in ("a", "a", "b", "c")], [200, 200, 200, 429])
        self.assertEqual(self.post(port, bob, "/v1/check", asked % ("a", "a")).status, 200)

        def remaining(client):
            return [quota["remaining"] for quota in json.loads(
                self.get(port, client, "/v1/usage?tls_client=spiffe://shop/ann")[0].text)["quotas"]]
        self.assertEqual((remaining(ann), remaining(bob)), ([0], [1]))
        batch = '{"checks": [{"key": "a"}, {"attributes": {"tls_client": "x"}}]}'
        answers = json.loads(self.post(port, bob, "/v1/check", batch).text)["checks"]
        self.assertEqual([answer["allowed"] for answer in answers], [True, False])
        reserve = '{"attributes": {"tls_client": "x"}, "estimate": 1}'
        self.assertEqual(self.post(port, bob, "/v1/reserve", reserve).status, 429)
        carl = self.client(certificate="carl")
        self.assertEqual(self.post(port, carl, "/v1/reserve", reserve).status, 200)
        self.assertEqual(remaining(carl), [1])

    def test_without_a_certificate_nobody_has_its_name(self):
        weir = harness.Weir(self, rules=RULES)
        for _ in range(4):
            self.assertEqual(harness.post(weir.http, "/v1/check",
                                          '{"attributes": {"tls_client": "ann"}}').status, 200)

    def test_the_redis_protocol_knows_who_a_client_is(self):
        port = self.start_with_rules("resp")

        def allowed(certificate, *commands):
            answers = self.ask(port, self.client(certificate=certificate),
                               "".join(command + "\r\n" for command in commands).encode() +
                               b"QUIT\r\n")
            return re.findall(rb"allowed\r\n:(\d)", answers)
        check = "WEIR.CHECK tls_client somebody path /"
        self.assertEqual(allowed("ann", check, "WEIR.PEEK path /", check, check),
                         [b"1", b"1", b"1", b"0"])
        self.assertEqual(allowed("bob", check, "WEIR.HOLD path /", check), [b"1", b"1", b"0"])
        # These two are about others, and name them.
        self.assertEqual(allowed("carl", "WEIR.RESET tls_client spiffe://shop/ann"), [])
        self.assertEqual(allowed("ann", check), [b"1"])

    def test_new_certificates_are_taken_and_connections_stay(self):
        folder = self.made.folder
        for part in ("crt", "key"):
            shutil.copy(folder / f"server.{part}", folder / f"live.{part}")
        port = self.start("live")

        def serial():
            with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
                with self.client().wrap_socket(plain, server_hostname="localhost") as secure:
                    return secure.getpeercert()["serialNumber"]
        first = serial()
        plain = socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S)
        kept = self.client().wrap_socket(plain, server_hostname="localhost")
        self.addCleanup(kept.close)

        def ask_kept():
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(kept.recv(65536).startswith(b"HTTP/1.1 200"))
        ask_kept()
        shutil.copy(folder / "expired.crt", folder / "live.crt")
        harness.wait_for("the refusal", lambda: "certificates not taken" in self.weir.output())
        self.assertEqual(serial(), first)
        for part in ("crt", "key"):
            shutil.copy(folder / f"rsa.{part}", folder / f"live.{part}")
        self.weir.signal(signal.SIGHUP)
        harness.wait_for("the change", lambda: serial() != first)
        ask_kept()

    def test_every_front(self):
        context = self.client()
        port = self.start(front="resp")
        with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"PING\r\n")
                self.assertEqual(secure.recv(100), b"+PONG\r\n")
        port = self.start(front="admin")
        self.assertIn("weir_build_info", self.get(port, context, "/metrics")[0].text)

    def test_large_answers_and_many_requests_on_one_connection(self):
        port = self.start(front="admin")
        with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as plain:
            with self.client().wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 50 +
                               b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                received = b""
                while chunk := secure.recv(65536):
                    received += chunk
        self.assertEqual(received.count(b"HTTP/1.1 200"), 51)


class TlsWeir(harness.Process):
    """weir serve with one front in TLS and the others plain."""

    def __init__(self, test, front, *options):
        command = [harness.WEIR, "serve", "--memory", "32MiB", "--threads", "2"]
        for other in ("http", "resp", "admin"):
            if other != front:
                command += ["--" + other, "127.0.0.1:0"]
        super().__init__(test, command + list(options))
        harness.wait_for("the start of weir",
                         lambda: "Try:" in self.output() or not self.running())
        if not self.running():
            raise AssertionError("weir did not start: " + self.output())
        self.ports = {name: int(port) for name, port in
                      re.findall(r"^  (http|resp|grpc|admin) .*:(\d+)$", self.output(), re.M)}


if __name__ == "__main__":
    harness.main()
