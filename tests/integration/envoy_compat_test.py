"""weir in place of envoyproxy/ratelimit: its environment alone starts it, its files are taken and
watched through a ConfigMap's links, its HTTP endpoints answer, its statistics reach statsd."""
import json
import os
import pathlib
import socket
import tempfile
import unittest
import urllib.error
import urllib.request

import harness

LIMITS = """domain: shop
descriptors:
- key: address
  rate_limit: {unit: hour, requests_per_unit: %d}
"""


class ConfigMap:
    """A folder as Kubernetes lays one out: files are links into a version that is swapped."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.version = 0

    def write(self, files):
        self.version += 1
        version = self.folder / f"..version_{self.version}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text)
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.rename(self.folder / "..data")


class EnvoyCompat(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        self.config = ConfigMap(pathlib.Path(root.name) / "ratelimit" / "config")
        self.config.write({"shop.yaml": LIMITS % 2})
        self.statsd = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.statsd.close)
        self.statsd.bind(("127.0.0.1", 0))
        self.statsd.settimeout(harness.DEADLINE_S)
        self.redis = harness.RedisServer(self)
        self.port, self.debug, grpc = (harness.free_port() for _ in range(3))
        environment = dict(
            os.environ, HOST="127.0.0.1", PORT=str(self.port), DEBUG_PORT=str(self.debug),
            GRPC_HOST="127.0.0.1", GRPC_PORT=str(grpc), RUNTIME_ROOT=root.name,
            RUNTIME_SUBDIRECTORY="ratelimit", RUNTIME_WATCH_ROOT="false",
            RUNTIME_IGNOREDOTFILES="true", REDIS_SOCKET_TYPE="tcp",
            REDIS_URL=f"127.0.0.1:{self.redis.port}", REDIS_TIMEOUT="3s",
            STATSD_HOST="127.0.0.1", STATSD_PORT=str(self.statsd.getsockname()[1]),
            STATS_FLUSH_INTERVAL="100ms", LOG_LEVEL="INFO")
        self.weir = harness.Process(self, [harness.WEIR, "serve"], env=environment)
        harness.wait_for("an answer", lambda: harness.answers(self.port))

    def fetch(self, port, path, body=None):
        url = f"http://127.0.0.1:{port}{path}"
        try:
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(url, data=data, timeout=harness.DEADLINE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ask(self, value, hits=1):
        return self.fetch(self.port, "/json", {
            "domain": "shop", "hitsAddend": hits,
            "descriptors": [{"entries": [{"key": "address", "value": value}]}]})

    def test_no_test_clock_where_others_reach_it(self):
        clock = harness.TestClock(self)
        environment = dict(os.environ, HOST="0.0.0.0", PORT="0", DEBUG_PORT="0", GRPC_PORT="0",
                           GRPC_HOST="127.0.0.1", RUNTIME_ROOT=str(self.config.folder),
                           USE_STATSD="false")
        weir = harness.Process(
            self, [harness.WEIR, "serve", "--envoy-compat", "--test-clock", clock.path],
            env=environment)
        self.assertNotEqual(weir.wait(), 0, weir.output())
        self.assertIn("--test-clock is for tests on this machine alone", weir.output())

    def test_json_counts_and_tells(self):
        status, text = self.ask("192.0.2.1")
        self.assertEqual(status, 200, text)
        answer = json.loads(text)
        self.assertEqual(answer["overallCode"], "OK")
        self.assertEqual(answer["statuses"][0]["limitRemaining"], 1)
        self.assertEqual(self.ask("192.0.2.1", 2)[0], 429)
        self.assertEqual(self.fetch(self.port, "/json", {"domain": ""}), (400, "Bad Request\n"))
        self.assertEqual(self.fetch(self.port, "/json", ["no request"])[0], 400)
        self.assertEqual(self.fetch(self.port, "/healthcheck"), (200, "OK"))
        self.assertEqual(self.fetch(self.port, "/rlconfig")[0], 404)
        self.assertEqual(
            self.fetch(self.debug, "/rlconfig")[1],
            "shop.address: unit=HOUR requests_per_unit=2, shadow_mode: false, quota_mode: false\n")
        self.assertIn("ratelimit.service.rate_limit.shop.address.over_limit: 1\n",
                      self.fetch(self.debug, "/stats")[1])

    def test_a_swapped_configmap_is_taken_and_a_bad_one_is_not(self):
        self.ask("192.0.2.2", 2)
        self.config.write({"shop.yaml": LIMITS % 5})
        harness.wait_for("the new limit", lambda: "requests_per_unit=5" in
                         self.fetch(self.debug, "/rlconfig")[1])
        status, text = self.ask("192.0.2.2")
        self.assertEqual(json.loads(text)["statuses"][0]["limitRemaining"], 2, text)
        self.config.write({"shop.yaml": LIMITS.replace("rate_limit", "ratelimit") % 9})
        harness.wait_for("the refusal", lambda: "config_load_error: 1" in
                         self.fetch(self.debug, "/stats")[1])
        self.assertIn("requests_per_unit=5", self.fetch(self.debug, "/rlconfig")[1])

    def test_statistics_reach_statsd(self):
        self.ask("192.0.2.3")
        lines = ""
        while "rate_limit.shop.address.total_hits:1|c" not in lines:
            lines += self.statsd.recv(65536).decode() + "\n"


if __name__ == "__main__":
    unittest.main()
