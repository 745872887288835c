"""Starts programs for a test on free ports, waits until they answer, and ends them with it."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

WEIR = os.environ.get("WEIR_BINARY", "build/dev/apps/weir/weir")
DEADLINE_S = 60  # generous: sanitizers and a busy machine are slow


def wait_for(what, condition, deadline_s=DEADLINE_S):
    """Returns the first true value of condition(); fails, naming what, if none comes in time."""
    give_up = time.monotonic() + deadline_s
    while time.monotonic() < give_up:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {deadline_s} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    return False


def program(name):
    """The path of a program that ./dev installs; a test without it fails and says so."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise AssertionError(f"{name} is not installed; ./dev setup test installs it")
    return path


class Process:
    """A program whose output is kept, and which is gone when the test is."""

    def __init__(self, test, command, env=None, cwd=None):
        self.name = pathlib.Path(command[0]).name
        self._log = tempfile.NamedTemporaryFile("w+", prefix=self.name, suffix=".log")
        self.process = subprocess.Popen(
            command, stdout=self._log, stderr=subprocess.STDOUT, env=env, cwd=cwd,
            start_new_session=True)
        test.addCleanup(self.stop)

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return pathlib.Path(self._log.name).read_text(errors="replace")

    def running(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """Stops it, as a machine that hangs would."""
        self.signal(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.pid}/stat")
        wait_for("the stop", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def wait(self, deadline_s=DEADLINE_S):
        return self.process.wait(deadline_s)

    def stop(self):
        if self.running():
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class TestClock:
    """The file behind --test-clock."""

    def __init__(self, test, ns=1_700_000_000_000_000_000):
        self._file = tempfile.NamedTemporaryFile("r+b", buffering=0)
        test.addCleanup(self._file.close)
        self.path = self._file.name
        self._file.write(b"\0" * 8)
        self.set(ns)

    def set(self, ns):
        self.ns = ns
        os.pwrite(self._file.fileno(), struct.pack("<q", ns), 0)

    def advance(self, ns):
        self.set(self.ns + ns)


class Weir(Process):
    """weir serve on free ports. `http`, `resp` and `admin` are the ports."""

    def __init__(self, test, *options, rules=None, env=None):
        command = [WEIR, "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0", "--memory", "32MiB", "--threads", "2"]
        if rules is not None:
            self.rules_dir = tempfile.mkdtemp(prefix="weir-rules")
            test.addCleanup(shutil.rmtree, self.rules_dir)
            self.rules_path = os.path.join(self.rules_dir, "rules.yaml")
            pathlib.Path(self.rules_path).write_text(rules)
            command += ["--rules", self.rules_path]
        super().__init__(test, command + list(options),
                         env=dict(os.environ, **env) if env else None)
        wait_for("the start of weir", lambda: "Try:" in self.output() or not self.running())
        if not self.running():
            raise AssertionError("weir did not start: " + self.output())
        self.http, self.resp, self.admin = (
            int(re.search(rf"^  {front} .*:(\d+)$", self.output(), re.M).group(1))
            for front in ("http", "resp", "admin"))

    def write_rules(self, text):
        """Replaces the rule file as careful editors do."""
        temporary = self.rules_path + ".new"
        pathlib.Path(temporary).write_text(text)
        os.rename(temporary, self.rules_path)

    def metric(self, name):
        """The value of a sample, given with its labels."""
        text = get(self.admin, "/metrics").text
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
        return float(found.group(1)) if found else None


class Reply:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()

    @property
    def text(self):
        return self.body.decode()


def send(port, raw):
    """Everything that comes back for these bytes, until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(raw)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def request(port, method, path, body=b"", headers=()):
    head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers)
    if body or method == "POST":
        head += f"Content-Length: {len(body)}\r\n"
    return Reply(send(port, head.encode() + b"\r\n" + body))


def get(port, path, headers=()):
    return request(port, "GET", path, headers=headers)


def post(port, path, body, headers=()):
    return request(port, "POST", path, body.encode(), headers)


class RedisServer(Process):
    """A real one, on a free port unless told."""

    def __init__(self, test, *options, port=None):
        self.port = port or free_port()
        super().__init__(test, [program("redis-server"), "--port", str(self.port),
                                "--bind", "127.0.0.1", "--save", "", *options])
        wait_for("Redis", lambda: answers(self.port))

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class Redis:
    """A plain connection of the Redis protocol, version 2."""

    def __init__(self, test, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        test.addCleanup(self._socket.close)
        self._in = self._socket.makefile("rb")
        test.addCleanup(self._in.close)

    @staticmethod
    def _encoded(words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def send(self, *words):
        self.send_bytes(self._encoded(words))

    def send_bytes(self, data):
        self._socket.sendall(data)

    def pipeline(self, commands):
        """All commands in one write; their answers."""
        self._socket.sendall(b"".join(self._encoded(words) for words in commands))
        return [self.read() for _ in commands]

    def read(self):
        line = self._in.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server ended the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return {"error": rest.decode()}
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._in.read(size + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        raise AssertionError(f"a reply that begins with {kind!r}")

    def ask(self, *words):
        self.send(*words)
        return self.read()


def main():
    unittest.main(verbosity=2)
