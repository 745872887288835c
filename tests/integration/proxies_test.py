"""nginx and HAProxy in front of an application, asking weir, with the files that we ship."""
import http.server
import os
import pathlib
import shutil
import signal
import tempfile
import threading
import unittest

import harness

EXAMPLES = pathlib.Path("examples/proxies").resolve()
RULES = """
rules:
  - name: per-ip
    per: ip
    limit: 3/h
    algorithm: fixed-window
  - name: writes
    when: { method: POST, path: /api/write }
    per: api_key
    limit: 1/h
    algorithm: fixed-window
"""


class Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    do_POST = do_GET

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a proxy that closes connections it does not need is none


class Proxies(unittest.TestCase):
    def start_application(self):
        server = Server(("127.0.0.1", 0), Application)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def configured(self, name, weir, application, patient):
        """A copy of a shipped file with this test's ports; the port of the proxy. A patient one
        waits longer for weir, so that a busy machine does not let requests pass."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-proxy"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        port = harness.free_port()
        text = (EXAMPLES / name).read_text()
        for shipped, ours in (("127.0.0.1:8080", f"127.0.0.1:{weir}"),
                              ("127.0.0.1:9000", f"127.0.0.1:{application}"),
                              ("127.0.0.1:8000", f"127.0.0.1:{port}")):
            self.assertIn(shipped, text, f"{name} no longer names {shipped}")
            text = text.replace(shipped, ours)
        if patient:
            for shipped, ours in (("timeout 50ms", "timeout 30s"), ("timeout 100ms", "timeout 30s"),
                                  ("WEIR_TIMEOUT 0.1", "WEIR_TIMEOUT 30")):
                text = text.replace(shipped, ours)
        (folder / name).write_text(text)
        return folder, port

    def start_nginx(self, weir, application, patient=False):
        folder, port = self.configured("nginx.conf", weir, application, patient)
        process = harness.Process(self, [
            harness.program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"),
            "-g", "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"])
        harness.wait_for("nginx", lambda: harness.answers(port) or not process.running())
        self.assertTrue(process.running(), process.output())
        return port

    def start_haproxy(self, weir, application, patient=False):
        folder, port = self.configured("haproxy.cfg", weir, application, patient)
        shutil.copy(EXAMPLES / "weir.lua", folder)
        process = harness.Process(
            self, [harness.program("haproxy"), "-db", "-f", "haproxy.cfg"], cwd=folder)
        harness.wait_for("haproxy", lambda: harness.answers(port) or not process.running())
        self.assertTrue(process.running(), process.output())
        return port

    def start_weir(self):
        return harness.Weir(self, "--trusted-proxy", "127.0.0.1", "--client-from", "x-real-ip",
                            rules=RULES)

    def limits(self, start):
        weir = self.start_weir()
        port = start(weir.http, self.start_application(), patient=True)
        for _ in range(3):
            reply = harness.get(port, "/anything")
            self.assertEqual((reply.status, reply.text), (200, "hello\n"), weir.output())
        refused = harness.get(port, "/anything")
        self.assertEqual(refused.status, 429)
        self.assertGreater(int(refused.headers["retry-after"]), 0)
        self.assertIn('"per-ip"', refused.headers["ratelimit"])

    def survives(self, start):
        """Killed, stopped, and not there at all: every request passes."""
        weir = self.start_weir()
        port = start(weir.http, self.start_application())
        self.assertEqual(harness.get(port, "/").status, 200)
        weir.freeze()
        for _ in range(5):
            self.assertEqual(harness.get(port, "/").status, 200, "weir is stopped")
        weir.signal(signal.SIGCONT)
        weir.signal(signal.SIGKILL)
        weir.wait()
        for _ in range(20):
            self.assertEqual(harness.get(port, "/").status, 200, "weir is gone")

    def killed_under_load(self, start):
        self.under_load(start, lambda weir: weir.signal(signal.SIGKILL))

    def stopped_under_load(self, start):
        self.under_load(start, lambda weir: weir.freeze())

    def under_load(self, start, trouble):
        weir = harness.Weir(self, "--trusted-proxy", "127.0.0.1", "--client-from", "x-real-ip",
                            rules="rules: [{name: all, per: ip, limit: 1000000/s}]")
        port = start(weir.http, self.start_application())
        statuses = []
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                statuses.append(harness.get(port, "/").status)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        harness.wait_for("some requests", lambda: len(statuses) > 50)
        self.addCleanup(weir.signal, signal.SIGCONT)
        trouble(weir)
        before = len(statuses)
        harness.wait_for("more requests", lambda: len(statuses) > before + 50)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(set(statuses), {200})

    def test_nginx_limits(self):
        self.limits(self.start_nginx)

    def test_haproxy_limits(self):
        self.limits(self.start_haproxy)

    def test_nginx_passes_all_without_weir(self):
        self.survives(self.start_nginx)

    def test_haproxy_passes_all_without_weir(self):
        self.survives(self.start_haproxy)

    def test_nginx_loses_no_request_when_weir_is_killed(self):
        self.killed_under_load(self.start_nginx)

    def test_haproxy_loses_no_request_when_weir_is_killed(self):
        self.killed_under_load(self.start_haproxy)

    def test_nginx_loses_no_request_when_weir_is_stopped(self):
        self.stopped_under_load(self.start_nginx)

    def test_haproxy_loses_no_request_when_weir_is_stopped(self):
        self.stopped_under_load(self.start_haproxy)

    def test_method_and_path_of_the_original_request_count(self):
        weir = self.start_weir()
        port = self.start_nginx(weir.http, self.start_application(), patient=True)
        key = [("X-API-Key", "abc")]
        self.assertEqual(harness.request(port, "POST", "/api/write?x=1", b"body", key).status, 200)
        self.assertEqual(harness.request(port, "POST", "/api/write", b"body", key).status, 429)
        self.assertEqual(harness.get(port, "/api/write", key).status, 200)

    def test_nginx_limits_by_what_was_asked_for_and_not_by_what_the_client_says_was(self):
        weir = self.start_weir()
        port = self.start_nginx(weir.http, self.start_application(), patient=True)
        headers = [("X-API-Key", "abc")]
        for family, uri in (("X-Original", "URI"), ("X-Forwarded", "Uri")):
            headers += [(f"{family}-{uri}", "/elsewhere"), (f"{family}-Method", "GET")]
        statuses = [harness.request(port, "POST", "/api/write", b"", headers).status
                    for _ in range(2)]
        self.assertEqual(statuses, [200, 429])

    def test_nginx_passes_requests_with_long_heads(self):
        weir = self.start_weir()
        port = self.start_nginx(weir.http, self.start_application(), patient=True)
        long = [("Cookie", "a=" + "x" * 3000), ("Authorization", "Bearer " + "y" * 3000)]
        self.assertEqual(harness.get(port, "/", long).status, 200)
        longer = [(f"X-Extra-{i}", "z" * 7000) for i in range(3)]
        self.assertEqual(harness.get(port, "/", longer).status, 200)
        # Longer than weir reads is no way around the limit, and no failure either.
        never_read = [("X-API-Key", "k" * 8100)]
        self.assertEqual(harness.get(port, "/" + "p" * 8100, never_read).status, 429)


if __name__ == "__main__":
    harness.main()
