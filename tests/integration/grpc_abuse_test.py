"""HTTP/2 frames by hand, as those who mean ill send them: they are left within a second, others
notice little of it, and memory stays bounded."""
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

import harness
from grpc_test import HEALTH, GrpcWeir

# A sanitizer keeps freed memory for a while, and puts room around what is in use.
SANITIZED = b"__asan_init" in pathlib.Path(harness.WEIR).read_bytes()
MEMORY_KIB = (50 << 10) * (16 if SANITIZED else 1)
# Below this nobody's 99th percentile counts as slow: a turn of a busy machine's scheduler.
FLOOR_S = 0.02 * (10 if SANITIZED else 1)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
END_STREAM, END_HEADERS = 1, 4
PATH = (HEALTH + "Check").encode()


def frame(kind, flags=0, stream=0, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) +
            payload)


def field(name, value):
    """Literal, not indexed; names and values of up to 126 bytes."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def headers(extra=b""):
    return (b"\x83\x86" + field(b":path", PATH) + field(b":authority", b"a") +
            field(b"content-type", b"application/grpc") + extra)


def memory_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def rapid_reset():
    for stream in range(1, 200_001, 2):
        yield (frame(HEADERS, END_HEADERS, stream, headers()) +
               frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


def made_to_reset():
    """Streams that the server has to reset: an increment of 0 is an error."""
    for stream in range(1, 200_001, 2):
        yield (frame(HEADERS, END_HEADERS, stream, headers()) +
               frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\0"))


def continuations():
    yield frame(HEADERS, 0, 1, headers())
    while True:
        yield frame(CONTINUATION, 0, 1, field(b"x", b"y" * 100))


def empty_continuations():
    yield frame(HEADERS, 0, 1, headers())
    while True:
        yield frame(CONTINUATION, 0, 1)


def hpack_bomb():
    """A field of 4 KiB put into the table once, and then named by one byte thousands of times."""
    large = b"\x40\x01x\x7f" + b"\xa1\x1e" + b"y" * 4000
    for stream in range(1, 200_001, 2):
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream,
                    headers(large if stream == 1 else b"") + b"\xbe" * 8000)


def pings():
    while True:
        yield frame(PING, 0, 0, b"12345678")


def settings():
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100))


def priorities():
    while True:
        yield frame(PRIORITY, 0, 1, b"\0\0\0\3\x10")


def window_updates():
    while True:
        yield frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1")


def empty_data():
    yield frame(HEADERS, END_HEADERS, 1, headers())
    while True:
        yield frame(DATA, 0, 1)


def unknown_frames():
    """Of a type that HTTP/2 does not have; they are to be ignored, one by one."""
    while True:
        yield frame(0x42, 0, 1, b"x")


def too_many_streams():
    for stream in range(1, 200_001, 2):
        yield frame(HEADERS, END_HEADERS, stream, headers())


ATTACKS = (rapid_reset, made_to_reset, continuations, empty_continuations, hpack_bomb, pings,
           settings, priorities, window_updates, empty_data, unknown_frames, too_many_streams)


def ask_for_ever(port):
    """The program of a bystander: one call after the other; when each began, and how long it took.
    A process of its own, so that it does not wait for an attacker's Python."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Answers of 7 bytes would fill the usual window after 9,362 calls.
        connection.sendall(PREFACE + frame(SETTINGS) + frame(SETTINGS, 1) +
                           frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536)))
        incoming = connection.makefile("rb")
        for stream in range(1, 1 << 31, 2):
            began = time.monotonic()
            connection.sendall(frame(HEADERS, END_HEADERS, stream, headers()) +
                               frame(DATA, END_STREAM, stream, b"\0\0\0\0\0"))
            kind, flags, of = None, 0, 0
            while (kind, of) != (HEADERS, stream) or not flags & END_STREAM:
                head = incoming.read(9)
                kind, flags, of = head[3], head[4], struct.unpack(">I", head[5:])[0]
                incoming.read(int.from_bytes(head[:3], "big"))
            print(began, time.monotonic() - began, flush=True)


class Bystander:
    """Somebody else's calls, and how long they take."""

    def __init__(self, test, port):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, str(port)], text=True,
                                        stdout=subprocess.PIPE)
        self.times = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        test.addCleanup(self.stop)

    def _read(self):
        for line in self.process.stdout:
            self.times.append(float(line.split()[1]))

    def running(self):
        return self.process.poll() is None

    def p99_while(self, work, calls=200):
        """Of at least so many calls, while `work` is done again and again."""
        first = len(self.times)

        def enough():
            work()
            return len(self.times) >= first + calls or not self.running()
        harness.wait_for("calls of a bystander", enough)
        took = sorted(self.times[first:])
        return took[len(took) * 99 // 100]

    def stop(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        self._thread.join()
        self.process.stdout.close()


class GrpcAbuse(unittest.TestCase):
    def attack(self, frames):
        """Sends until the server ends it; how long that took."""
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.weir.grpc), timeout=30) as connection:
            try:
                connection.sendall(PREFACE + frame(SETTINGS))
                batch = b""
                for one in frames:
                    batch += one
                    if len(batch) > 8192:
                        connection.sendall(batch)
                        batch = b""
                        connection.setblocking(False)
                        try:
                            while connection.recv(65536):
                                pass
                            return time.monotonic() - began  # an orderly end
                        except BlockingIOError:
                            connection.settimeout(30)
            except OSError:
                return time.monotonic() - began
        self.fail("all of it was taken")

    def test_floods(self):
        self.weir = GrpcWeir(self)
        bystander = Bystander(self, self.weir.grpc)
        bystander.p99_while(lambda: None)
        before = memory_kib(self.weir.pid)
        closed = 1 if not SANITIZED else 10  # seconds, and what a sanitizer makes of them

        def attack_once():
            self.assertLess(self.attack(attack()), closed)
            self.assertLess(memory_kib(self.weir.pid) - before, MEMORY_KIB)
        for attack in ATTACKS:
            with self.subTest(attack.__name__):
                # Attackers take processors as well, and others may be busy here: a floor, and
                # three attempts.
                for attempt in range(3):
                    quiet = bystander.p99_while(lambda: None)
                    attacked = bystander.p99_while(attack_once)
                    if attacked <= max(3 * quiet, FLOOR_S):
                        break
                else:
                    self.fail(f"p99 of others {attacked * 1000:.1f} ms, {quiet * 1000:.1f} before")
                self.assertTrue(bystander.running(), "a bystander was cut off")
        self.assertGreaterEqual(
            harness.wait_for("their end", lambda: self.weir.metric(
                'weir_protocol_errors_total{protocol="grpc"}')), len(ATTACKS) // 2)

    def test_an_envoy_with_timeouts_keeps_its_connection(self):
        """450 resets a second, for three seconds, between calls that are answered."""
        self.weir = GrpcWeir(self)
        with socket.create_connection(("127.0.0.1", self.weir.grpc), timeout=30) as connection:
            connection.sendall(PREFACE + frame(SETTINGS))
            stream = 1
            for _ in range(3):
                began = time.monotonic()
                for _ in range(45):
                    batch = b""
                    for _ in range(10):
                        batch += frame(HEADERS, END_HEADERS, stream, headers())
                        batch += frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
                        stream += 2
                    connection.sendall(batch)
                harness.wait_for("a second", lambda start=began: time.monotonic() - start > 1)
            connection.sendall(frame(HEADERS, END_HEADERS, stream, headers()) +
                               frame(DATA, END_STREAM, stream, b"\0\0\0\0\0"))
            received = b""
            while b"\x08\x01" not in received:  # SERVING
                chunk = connection.recv(65536)
                self.assertNotEqual(chunk, b"", "the connection was ended")
                received += chunk

    def test_silent_and_half_said_connections_end(self):
        self.weir = GrpcWeir(self, "--message-seconds", "1")
        for said in (PREFACE[:10], PREFACE, PREFACE + frame(SETTINGS)[:5]):
            with socket.create_connection(("127.0.0.1", self.weir.grpc), timeout=30) as connection:
                connection.sendall(said)
                while connection.recv(65536):
                    pass


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].isdigit():
        ask_for_ever(int(sys.argv[1]))
    else:
        harness.main()
