"""Redis, alone and as a Cluster, weir on top of it, and redis-benchmark: what the suite `redis`
starts and asks."""

import ast
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parent
sys.path.insert(0, str(BENCH / "server"))
import contenders  # noqa: E402

BUILD = pathlib.Path(os.environ["WEIR_BUILD"])
WEIR = BUILD / "apps/weir/weir"
KEYS = 100_000
KEY = "weir:{0000000000__rand_int__}"  # 29 bytes, as the real ones are
# 100 a second, burst 20: cost * T, burst * T, the name of T = 10^4 microseconds.
BUCKET = ["10000", "200000", "401"]


def words_of(*words):
    """A command as Redis reads it."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(
        b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Redis(contenders.Server):
    def __init__(self, folder, *options, cpu=contenders.SERVER_CPU):
        port = contenders.free_port()
        super().__init__("redis-server", [
            "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--dir", str(folder), *options], port, cpu=cpu)
        if not self.wait_until_open():
            sys.exit("bench: redis-server did not start")

    def ask(self, *words):
        """One reply, of one line or one text."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(words_of(*words))
            reply = connection.makefile("rb")
            line = reply.readline().strip()
            if line[:1] == b"-":
                sys.exit(f"bench: redis-server: {line.decode()}")
            return reply.read(int(line[1:])).decode() if line[:1] == b"$" else line[1:].decode()

    def load(self, script):
        """The name under which it knows a script."""
        return self.ask("SCRIPT", "LOAD", script)

    def info(self, section, field):
        return int(re.search(rf"^{field}:(\d+)", self.ask("INFO", section), re.M)[1])


def script(name):
    """The text of one of weir's scripts, as it was built."""
    source = (BUILD / "src/store/redis/script_set.cc").read_text()
    found = re.search(r'Text\{"%s", R"weir_lua\((.*?)\)weir_lua"' % name, source, re.S)
    if not found:
        sys.exit(f"bench: no script {name} in {BUILD}/src/store/redis/script_set.cc")
    return found[1]


def benchmark(redis, calls, connections, pipeline, words, database=0, keys=KEYS):
    """Calls a second by redis-benchmark."""
    run = subprocess.run(
        ["redis-benchmark", "-p", str(redis.port), "-c", str(connections), "-P", str(pipeline),
         "-n", str(calls), "-r", str(keys), "--dbnum", str(database), "--csv",
         *words], capture_output=True, check=True, timeout=120,
        preexec_fn=contenders.pinned(contenders.LOAD_CPU))
    return float(run.stdout.decode().strip().splitlines()[-1].split('","')[1])


class Cluster:
    """Three masters without replicas, on the two processors in turn."""

    def __init__(self, folder):
        self.nodes = []
        for i in range(3):
            home = folder / f"node{i}"
            home.mkdir()
            self.nodes.append(Redis(home, "--cluster-enabled", "yes", "--cluster-port",
                                    str(contenders.free_port()), cpu=i % 2))
        made = subprocess.run(
            ["redis-cli", "--cluster", "create",
             *(f"127.0.0.1:{node.port}" for node in self.nodes), "--cluster-yes"],
            capture_output=True, text=True, timeout=60)
        deadline = time.monotonic() + 20
        while any("cluster_state:ok" not in node.ask("CLUSTER", "INFO") for node in self.nodes):
            if made.returncode != 0 or time.monotonic() > deadline:
                sys.exit(f"bench: no Cluster: {made.stdout}{made.stderr}")
            time.sleep(0.05)

    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def stop(self):
        for node in self.nodes:
            node.stop()


class WeirRls(contenders.Server):
    """weir in place of envoyproxy/ratelimit, counting in that Redis, on the same processor."""

    def __init__(self, redis):
        super().__init__("weir", [
            WEIR, "serve", "--http", "off", "--resp", "off", "--admin", "off", "--grpc",
            "127.0.0.1:0", "--descriptors", str(BENCH / "grpc/descriptors.yaml"), "--redis",
            f"redis://127.0.0.1:{redis.port}?in-flight=1024&timeout=1s", "--threads", "1",
            "--log-level", "error"])
        while self.port is None:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("bench: weir serve did not start")
            found = re.match(r"\s+grpc\s+.*127\.0\.0\.1:(\d+)", line)
            self.port = found and int(found[1])


def overheard(redis, do):
    """The words of the first EVALSHA that Redis gets while `do` runs."""
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(words_of("MONITOR"))
        lines = connection.makefile("rb")
        lines.readline()
        do()
        for line in lines:
            if b'"EVALSHA"' in line:
                return [ast.literal_eval("b" + word.decode())
                        for word in re.findall(rb'"(?:[^"\\]|\\.)*"', line)]
    sys.exit("bench: weir did not ask Redis")
