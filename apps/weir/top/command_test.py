#!/usr/bin/env python3
"""weir top against a server that answers as weir's admin address does: command_test.py PROGRAM."""

import http.server
import json
import subprocess
import sys
import tempfile
import threading
import unittest

TOKEN = "s3cret"


class Admin(http.server.BaseHTTPRequestHandler):
    """Counts up with every look, so that rates are above 0."""

    looks = 0
    asked = []

    def do_GET(self):
        Admin.asked.append(self.path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(403, "{}")
        elif self.path == "/metrics":
            Admin.looks += 1
            self.answer(200, 'weir_build_info{version="9.9"} 1\n'
                        f'weir_decisions_total{{rule="login",outcome="allowed"}} '
                        f'{1000 * Admin.looks}\n'
                        f'weir_decisions_total{{rule="login",outcome="denied"}} '
                        f'{100 * Admin.looks}\n'
                        'weir_decisions_total{rule="all",outcome="allowed"} 5\n')
        elif self.path.startswith("/v1/top?most="):
            keys = [{"key": "192.0.2.77", "cut": False, "count": 900, "denied": 90, "error": 0}]
            self.answer(200, json.dumps({"rules": [{"rule": "login", "keys": keys}]}))
        else:
            self.answer(404, "{}")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class TopCommand(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Admin)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.token = tempfile.NamedTemporaryFile("w")
        self.token.write(TOKEN + "\n")
        self.token.flush()
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def tearDown(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        self.token.close()

    def command(self, *options):
        return [PROGRAM, "top", "--admin", self.address, *options]

    def call(self, *options):
        return subprocess.run(self.command(*options), capture_output=True, text=True, timeout=30)

    def test_once_prints_totals_as_plain_text(self):
        done = self.call("--token-file", self.token.name, "--once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("weir 9.9 at " + self.address, done.stdout)
        self.assertIn("login", done.stdout)
        self.assertIn("192.0.2.77", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_goes_on_until_it_is_ended_and_shows_rates(self):
        with subprocess.Popen(self.command("--token-file", self.token.name), text=True,
                              stdout=subprocess.PIPE) as program:
            lines = []
            while not any("/s decisions" in line for line in lines):
                line = program.stdout.readline()
                self.assertNotEqual(line, "", "it ended by itself")
                lines.append(line)
            program.terminate()
            program.stdout.read()
            self.assertEqual(program.wait(timeout=30), 0)

    def test_one_rule_is_asked_for_by_name(self):
        done = self.call("--token-file", self.token.name, "--once", "--rule", "login")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(" all ", done.stdout)
        self.assertTrue(any(path.endswith("&rule=login") for path in Admin.asked), Admin.asked)

    def test_says_that_a_token_is_wanted(self):
        done = self.call("--once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("wants its token (--token-file)", done.stderr)

    def test_says_what_was_asked_wrongly(self):
        self.address = "x:y"
        self.assertIn("is not ADDRESS:PORT", self.call().stderr)
        self.address = "127.0.0.1:1"
        self.assertIn("no token in the first line", self.call("--token-file", "/none").stderr)

    def test_says_that_nobody_is_there(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        done = self.call("--once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot connect to " + self.address, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
