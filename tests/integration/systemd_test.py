"""Sockets that systemd opened for us, and what it hears of us; without a systemd that runs."""
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import harness
from tls_test import Authority

RULES = "rules:\n  - name: all\n    per: key\n    limit: 1000/s\n"

# As a service manager starts a program: sockets from descriptor 3 on, their names in order.
LAUNCH = """
import os, sys
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[1], sys.argv[1:])
"""


class Activation(unittest.TestCase):
    def test_systemd_socket_activate(self):
        http, resp = harness.free_port(), harness.free_port()
        process = harness.Process(self, [
            harness.program("systemd-socket-activate"), "-l", f"127.0.0.1:{http}",
            "-l", f"127.0.0.1:{resp}", "--fdname=http:resp", harness.WEIR, "serve",
            "--http", "127.0.0.1:1", "--resp", "127.0.0.1:1", "--admin", "127.0.0.1:0",
            "--memory", "32MiB", "--threads", "2"])
        # The first connection starts it, and is answered.
        harness.wait_for("the sockets", lambda: harness.answers(http) or not process.running())
        self.assertEqual(harness.get(http, "/healthz").status, 200, process.output())
        self.assertEqual(harness.Redis(self, resp).ask("PING"), "PONG")
        harness.wait_for("the greeting", lambda: f"http://127.0.0.1:{http}" in process.output())
        process.signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0, process.output())

    def inherit(self, names, *sockets, pid=None, options=(), refused=False):
        """Starts weir with these sockets as its descriptors 3, 4, …"""
        def number():
            # First out of the way of one another.
            moved = [os.dup2(one.fileno(), 100 + i) for i, one in enumerate(sockets)]
            for i, descriptor in enumerate(moved):
                os.dup2(descriptor, 3 + i)
        env = dict(os.environ, LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES=names)
        command = [harness.WEIR, "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0", "--memory", "32MiB", "--threads", "2", *options]
        if pid is None:
            command = [sys.executable, "-c", LAUNCH] + command
        else:
            env["LISTEN_PID"] = str(pid)
        log = tempfile.NamedTemporaryFile("w+")
        self.addCleanup(log.close)
        process = subprocess.Popen(command, env=env, preexec_fn=number, stdout=log, stderr=log,
                                   pass_fds=[3 + i for i in range(len(sockets))])
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        output = lambda: pathlib.Path(log.name).read_text()
        harness.wait_for("the start", lambda: "Try:" in output() or process.poll() is not None)
        if not refused:
            self.assertIsNone(process.poll(), output())
        else:
            self.assertNotEqual(process.wait(harness.DEADLINE_S), 0, output())
        return output()

    def listening(self, family=socket.AF_INET, address=("127.0.0.1", 0)):
        one = socket.socket(family)
        one.bind(address)
        one.listen()
        self.addCleanup(one.close)
        return one

    def test_sockets_that_others_reach_are_held_to_the_same_rules(self):
        """As addresses are: no admin without a token, no test clock."""
        everywhere = ("0.0.0.0", 0)
        output = self.inherit("admin", self.listening(address=everywhere), refused=True)
        self.assertIn("inherited as admin, can be reached from other machines", output)
        clock = harness.TestClock(self)
        output = self.inherit("http", self.listening(address=everywhere), refused=True,
                              options=("--test-clock", clock.path))
        self.assertIn("--test-clock is for tests on this machine alone", output)
        token = tempfile.NamedTemporaryFile("w")
        self.addCleanup(token.close)
        token.write("sesame\n")
        token.flush()
        admin = self.listening(address=everywhere)
        self.inherit("admin", admin, options=("--admin-token-file", token.name))
        port = admin.getsockname()[1]
        self.assertEqual(harness.get(port, "/metrics").status, 403)
        bearer = [("Authorization", "Bearer sesame")]
        self.assertEqual(harness.get(port, "/metrics", bearer).status, 200)

    def test_sockets_within_tls_by_their_names(self):
        made = Authority(type(self))
        made.root("ca")
        made.leaf("server", "ca")
        made.leaf("ann", "ca", san="DNS:ann.test")
        sockets = [self.listening() for _ in range(3)]
        output = self.inherit("http:http-tls:http-mtls", *sockets, options=(
            "--tls-cert", made.path("server.crt"), "--tls-key", made.path("server.key"),
            "--tls-client-ca", made.path("ca.crt")))
        plain, tls, mutual = (one.getsockname()[1] for one in sockets)
        self.assertIn(f"https://127.0.0.1:{tls}", output)
        self.assertEqual(harness.get(plain, "/healthz").status, 200)
        for port, shows, good in ((tls, False, True), (mutual, False, False), (mutual, True, True)):
            context = ssl.create_default_context(cafile=made.path("ca.crt"))
            if shows:
                context.load_cert_chain(made.path("ann.crt"), made.path("ann.key"))
            request = urllib.request.Request(f"https://localhost:{port}/healthz")
            try:
                with urllib.request.urlopen(request, context=context, timeout=60) as reply:
                    self.assertTrue(good)
                    self.assertEqual(reply.status, 200)
            except (OSError, urllib.error.URLError):
                self.assertFalse(good)

    def test_each_front_gets_the_sockets_of_its_name(self):
        names = ("admin", "resp", "http", "weir.socket")
        sockets = [self.listening() for _ in names]
        self.inherit(":".join(names), *sockets)
        ports = [one.getsockname()[1] for one in sockets]
        self.assertEqual(harness.get(ports[0], "/metrics").status, 200)
        self.assertEqual(harness.Redis(self, ports[1]).ask("PING"), "PONG")
        for port in ports[2:]:  # one with another name counts as http
            self.assertEqual(harness.get(port, "/healthz").status, 200)
            self.assertEqual(harness.get(port, "/metrics").status, 403)

    def test_a_unix_socket(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = folder.name + "/weir.sock"
        self.inherit("resp", self.listening(socket.AF_UNIX, path))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"PING\r\n")
            self.assertEqual(client.recv(100), b"+PONG\r\n")

    def test_sockets_for_another_process_are_left_alone(self):
        one = self.listening()
        output = self.inherit("http", one, pid=1)
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", output).group(1))
        self.assertNotEqual(port, one.getsockname()[1])
        self.assertEqual(harness.get(port, "/healthz").status, 200)


class Notification(unittest.TestCase):
    def listen(self, address):
        hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(hears.close)
        hears.bind(address)
        hears.settimeout(harness.DEADLINE_S)
        return hears

    def heard_through(self, hears, name):
        weir = harness.Weir(self, rules=RULES, env={"NOTIFY_SOCKET": name})
        hear = lambda: hears.recv(4096).decode()
        self.assertEqual(hear(), "READY=1")
        weir.signal(signal.SIGHUP)
        self.assertEqual((hear(), hear()), ("RELOADING=1", "READY=1"))
        weir.write_rules("rules: nonsense\n")
        weir.signal(signal.SIGHUP)  # bad rules: ready all the same
        self.assertEqual((hear(), hear()), ("RELOADING=1", "READY=1"))
        weir.signal(signal.SIGTERM)
        self.assertEqual(hear(), "STOPPING=1")
        self.assertEqual(weir.wait(), 0)

    def test_states(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = folder.name + "/notify"
        self.heard_through(self.listen(path), path)

    def test_states_by_an_abstract_name(self):
        name = f"weir-test-{os.getpid()}"
        self.heard_through(self.listen("\0" + name), "@" + name)

    def test_nobody_who_listens(self):
        weir = harness.Weir(self, env={"NOTIFY_SOCKET": "/nonexistent/notify"})
        self.assertEqual(harness.get(weir.http, "/healthz").status, 200)


if __name__ == "__main__":
    harness.main()
