"""Limits of real nginx and HAProxy, imported: both admit as many of a burst, about."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import harness

NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  limit_req_zone $binary_remote_addr zone=all:1m rate=1r/m;
  limit_req_zone $http_x_key zone=keys:1m rate=1r/m;
  limit_req_status 429;
  server {{
    listen 127.0.0.1:{port};
    limit_req zone=all burst=9 nodelay;
    location /keys/ {{ limit_req zone=keys burst=4 nodelay; try_files /none =404; }}
    location = /free {{ limit_req zone=keys burst=2 nodelay; try_files /none =404; }}
    location / {{ try_files /none =404; }}
  }}
}}
"""

HAPROXY = """
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend web
  bind 127.0.0.1:{port}
  stick-table type string len 64 size 1k expire 10m store http_req_rate(10m)
  acl office hdr(x-office) yes
  http-request track-sc0 hdr(x-key)
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 7 }} !office
  http-request return status 200 content-type text/plain string ok
"""


class Import(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-import")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.port = harness.free_port()

    def write(self, text):
        path = self.folder / "proxy.conf"
        path.write_text(text.format(folder=self.folder, port=self.port))
        return path

    def imported(self, path):
        done = subprocess.run([harness.WEIR, "rules", "import", str(path)], capture_output=True,
                              text=True, timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return harness.Weir(self, rules=done.stdout)

    def compare(self, weir, path, headers, asked=20):
        attributes = {"ip": "127.0.0.1", "path": path, "method": "GET", "host": "test"}
        attributes |= {"header:" + name.lower(): value for name, value in headers}
        body = json.dumps({"attributes": attributes})
        theirs = sum(harness.get(self.port, path, headers).status != 429 for _ in range(asked))
        ours = sum(harness.post(weir.http, "/v1/check", body).status == 200 for _ in range(asked))
        self.assertLessEqual(abs(theirs - ours), 1, f"{path} {headers}: {theirs} and {ours}")
        return ours

    def test_nginx(self):
        path = self.write(NGINX)
        process = harness.Process(self, [harness.program("nginx"), "-p", str(self.folder), "-c",
                                         str(path)])
        harness.wait_for("nginx", lambda: harness.answers(self.port) or not process.running())
        weir = self.imported(path)
        self.assertEqual(self.compare(weir, "/", ()), 10)
        self.assertEqual(self.compare(weir, "/keys/x", [("X-Key", "a")]), 5)
        self.assertEqual(self.compare(weir, "/keys/y", [("X-Key", "b")]), 5)
        self.assertEqual(self.compare(weir, "/keys/z", ()), 20)
        self.assertEqual(self.compare(weir, "/free", [("X-Key", "c")]), 3)

    def test_haproxy(self):
        path = self.write(HAPROXY)
        process = harness.Process(self, [harness.program("haproxy"), "-f", str(path)])
        harness.wait_for("haproxy", lambda: harness.answers(self.port) or not process.running())
        weir = self.imported(path)
        self.assertEqual(self.compare(weir, "/", [("X-Key", "a")]), 7)
        self.assertEqual(self.compare(weir, "/", [("X-Key", "b"), ("X-Office", "yes")]), 20)
        self.assertEqual(self.compare(weir, "/", ()), 20)


if __name__ == "__main__":
    harness.main()
