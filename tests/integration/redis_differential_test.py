"""What clients of Redis say to connect is answered to the byte as a real Redis 7.0 does."""
import socket
import unittest

import harness

# Each list is one connection. Left out is what must differ: HELLO's own name and number, lists of
# commands, and errors that name what we know.
CONVERSATIONS = [
    [b"PING", b"PING hi", b"PING a b", b"ECHO hi", b"ECHO", b"ECHO a b"],
    [b"SELECT 0", b"SELECT x", b"SELECT -1", b"SELECT 99", b"SELECT 00", b"SELECT", b"SELECT -0"],
    [b"CLIENT GETNAME", b"CLIENT SETNAME me", b"CLIENT GETNAME", b"CLIENT SETNAME \"a b\"",
     b"CLIENT SETNAME \"\"", b"CLIENT GETNAME", b"CLIENT SETNAME caf\xc3\xa9", b"CLIENT GETNAME"],
    [b"HELLO abc", b"HELLO 4", b"HELLO 1", b"HELLO -3", b"HELLO 2 FOO", b"HELLO 2 AUTH x",
     b"HELLO 2 SETNAME \"a b\"", b"CLIENT GETNAME"],
    [b"COMMAND INFO nosuch", b"COMMAND INFO nosuch neither"],
    [b"AUTH x", b"AUTH default x", b"AUTH other x", b"AUTH a b c", b"AUTH"],
    [b"DEL nosuch", b"DEL nosuch neither", b"DEL"],
    [b"CONFIG GET save", b"CONFIG GET appendonly", b"RESET", b"PING", b"RESET x"],
    [b"*1\r\n$4\r\nPING", b"*2\r\n$4\r\nECHO\r\n$0\r\n", b"*0", b"*-1", b"", b"PING"],
    [b"nosuch", b"PING"],
    [b"QUIT"],
]
# In version 3, after HELLO 3, whose answer is not compared.
IN_VERSION_3 = [
    [b"CLIENT GETNAME", b"COMMAND INFO nosuch", b"RESET", b"CLIENT GETNAME"],
]
END = b"ECHO the-end-of-it\r\n"
ENDED = b"$13\r\nthe-end-of-it\r\n"


def converse(port, lines):
    """All that is answered to these, which are sent at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as connection:
        connection.sendall(b"".join(line + b"\r\n" for line in lines) + END)
        received = b""
        while not received.endswith(ENDED):
            chunk = connection.recv(65536)
            if not chunk:
                break
            received += chunk
        return received


class Differential(unittest.TestCase):
    def setUp(self):
        self.weir = harness.Weir(self)
        self.redis = harness.RedisServer(self)

    def test_same_replies(self):
        for lines in CONVERSATIONS:
            with self.subTest(lines=lines):
                self.assertEqual(converse(self.weir.resp, lines), converse(self.redis.port, lines))

    def test_same_replies_in_version_3(self):
        for lines in IN_VERSION_3:
            with self.subTest(lines=lines):
                without_hello = [
                    converse(port, [b"HELLO 3", b"ECHO hello"] + lines).partition(b"$5\r\nhello")[2]
                    for port in (self.weir.resp, self.redis.port)]
                self.assertEqual(*without_hello)


if __name__ == "__main__":
    harness.main()
