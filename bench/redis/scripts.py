#!/usr/bin/env python3
"""weir's token-bucket script against the usual one on a hash: calls a second and bytes a key.

Called by bench/run with the build folder in WEIR_BUILD. Redis has one processor and redis-benchmark
another; the two scripts take turns on the same server with the same key names, and the best run of
each counts. The bytes are what MEMORY USAGE says of a key, less what its name alone takes.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["WEIR_BUILD"])
KEY = "weir:{0000000000__rand_int__}"  # 29 bytes, as the real ones are
KEYS = 100_000


def print_row(case, ours, unit, theirs, bar, better="more", **more):
    ratio = ours / theirs if better == "more" else theirs / ours
    print(json.dumps({"suite": "redis", "case": case, "ours": round(ours, 1), "unit": unit,
                      "peer": "HMGET/HMSET", "theirs": round(theirs, 1), "ratio": round(ratio, 3),
                      "bar": bar, "holds": ratio >= bar, **more}), flush=True)


def text_of(name):
    source = (BUILD / "src/store/redis/script_set.cc").read_text()
    found = re.search(r'Text\{"%s", R"weir_lua\((.*?)\)weir_lua"' % name, source, re.S)
    if not found:
        sys.exit(f"bench: no script {name} in {BUILD}/src/store/redis/script_set.cc")
    return found[1]


class Redis:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/redis.sock"
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", "redis-server", "--port", "0", "--unixsocket", self.path,
             "--save", "", "--appendonly", "no"],
            cwd=self.folder.name, stdout=subprocess.DEVNULL)
        while self.ask("PING") != "PONG":
            time.sleep(0.05)

    def ask(self, *words):
        run = subprocess.run(["redis-cli", "-s", self.path, *words], capture_output=True,
                             check=False)
        return run.stdout.decode("latin-1").strip()

    def rate(self, calls, pipeline, words):
        """Calls a second by redis-benchmark."""
        run = subprocess.run(
            ["taskset", "-c", "1", "redis-benchmark", "-s", self.path, "-c", "4", "-P",
             str(pipeline), "-n", str(calls), "-r", str(KEYS), "-q", "--csv", *words],
            capture_output=True, check=True)
        last = run.stdout.decode().strip().splitlines()[-1]
        return float(last.split(",")[1].strip('"'))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="shorter, less certain")
    quick = parser.parse_args().quick
    calls, rounds = (100_000, 3) if quick else (400_000, 7)
    redis = Redis()
    try:
        ours = redis.ask("SCRIPT", "LOAD", text_of("bucket"))
        hashed = redis.ask("SCRIPT", "LOAD", (HERE / "hash_bucket.lua").read_text())
        # 100 a second, burst 20: cost * T, burst * T, the name of T = 10^4 microseconds.
        ask = ["10000", "200000", "401"]
        mine = ["EVALSHA", ours, "1", KEY, *ask]
        theirs = ["EVALSHA", hashed, "1", KEY, "20", "100", f"{int(time.time())}.__rand_int__", "1"]
        for pipeline in (16, 64):
            best = [0.0, 0.0]
            for _ in range(rounds):
                for i, words in enumerate((mine, theirs)):
                    redis.ask("FLUSHALL")
                    best[i] = max(best[i], redis.rate(calls, pipeline, words))
            print_row(f"token-bucket script, 4 x {pipeline}", best[0], "calls/s", best[1], 1.3)
        redis.ask("FLUSHALL")
        name = KEY.replace("__rand_int__", "000000000001")
        redis.ask("EVALSHA", ours, "1", name, *ask)
        used = float(redis.ask("MEMORY", "USAGE", name))
        redis.ask("FLUSHALL")
        redis.ask("EVALSHA", hashed, "1", name, "20", "100", f"{time.time():.6f}", "1")
        redis.ask("EVALSHA", hashed, "1", name, "20", "100", f"{time.time() + 0.05:.6f}", "1")
        usual = float(redis.ask("MEMORY", "USAGE", name))
        # A key with a TTL takes an entry of 32 bytes more, which MEMORY USAGE leaves out.
        print_row("token bucket, bytes a key", used + 32, "bytes", usual + 32, 1 / 0.75, "less",
                  key_bytes=len(name))
    finally:
        redis.stop()


if __name__ == "__main__":
    main()
