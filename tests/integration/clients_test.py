"""weir asked by stock clients of Redis, and scraped by a real Prometheus."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.parse

import harness

RULES = "rules:\n  - name: all\n    per: key\n    limit: 1000/h\n"


class Clients(unittest.TestCase):
    def run_program(self, *command, env=None):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, **(env or {})))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_redis_cli(self):
        weir = harness.Weir(self, rules=RULES)
        cli = [harness.program("redis-cli"), "-p", str(weir.resp)]
        throttle = ["CL.THROTTLE", "user123", "15", "30", "60"]
        self.assertEqual(self.run_program(*cli, *throttle).split(), ["0", "16", "15", "-1", "2"])
        self.assertIn("allowed (true)", self.run_program(*cli, "-3", "WEIR.CHECK", "key", "a"))
        self.assertIn("redis_version", self.run_program(*cli, "INFO"))

    def test_redis_cli_with_a_password(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sesame\n")
            file.flush()
            weir = harness.Weir(self, "--resp-password-file", file.name)
        cli = [harness.program("redis-cli"), "-p", str(weir.resp)]
        self.assertIn("NOAUTH", self.run_program(*cli, "PING"))
        secret = {"REDISCLI_AUTH": "sesame"}
        self.assertEqual(self.run_program(*cli, "PING", env=secret).strip(), "PONG")
        self.assertNotIn("sesame", weir.output())

    def test_redis_benchmark(self):
        weir = harness.Weir(self)
        output = self.run_program(
            "timeout", "60", harness.program("redis-benchmark"), "-p", str(weir.resp),
            "-n", "20000", "-P", "16", "-r", "1000", "-q",
            "CL.THROTTLE", "key:__rand_int__", "15", "30", "60")
        self.assertIn("requests per second", output)
        self.assertEqual(weir.metric('weir_request_errors_total{protocol="resp"}'), 0)

    def test_wrk(self):
        """Decisions, allowed first and then denied, over connections that stay."""
        weir = harness.Weir(self, rules=RULES)
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write("wrk.method = 'POST'\nwrk.body = '{\"key\": \"wrk\"}'\n")
            script.flush()
            output = self.run_program(harness.program("wrk"), "-t1", "-c8", "-d1", "-s",
                                      script.name, f"http://127.0.0.1:{weir.http}/v1/check")
        self.assertIn("Requests/sec", output)
        self.assertNotIn("Socket errors", output)
        allowed = weir.metric('weir_decisions_total{rule="all",outcome="allowed"}')
        self.assertGreaterEqual(allowed, 1)
        self.assertLessEqual(allowed, 1100)  # a unit comes back every 3.6 s

    def test_ioredis_and_node_redis(self):
        weir = harness.Weir(self, rules=RULES)
        script = os.path.join(os.environ["WEIR_CLIENTS"], "ask.mjs")
        output = self.run_program("node", script, env={"WEIR_RESP_PORT": str(weir.resp)})
        self.assertEqual(output, "ioredis\nnode-redis RESP2\nnode-redis RESP3\n")

    def test_prometheus_scrapes(self):
        weir = harness.Weir(self, rules=RULES)
        harness.post(weir.http, "/v1/check", '{"key": "a"}')
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        config = pathlib.Path(folder.name) / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [{
            "job_name": "weir", "scrape_interval": "1s",
            "static_configs": [{"targets": [f"127.0.0.1:{weir.admin}"]}]}]}))
        port = harness.free_port()
        harness.Process(self, [
            harness.program("prometheus"), f"--config.file={config}",
            f"--storage.tsdb.path={folder.name}/data", f"--web.listen-address=127.0.0.1:{port}"])
        query = urllib.parse.quote('weir_decisions_total{rule="all",outcome="allowed"}')

        def scraped():
            try:
                reply = harness.get(port, f"/api/v1/query?query={query}")
            except OSError:
                return False
            if reply.status != 200:
                return False
            body = reply.body[reply.body.index(b"{"):reply.body.rindex(b"}") + 1]
            found = json.loads(body)["data"]["result"]
            return found and found[0]["value"][1] == "1"

        harness.wait_for("the scrape", scraped)


if __name__ == "__main__":
    harness.main()
