#!/usr/bin/env python3
"""What one decision costs from C, Python and Node: call_cost.py [build-folder].

Needs the targets weir_c, weir_node and call_cost (-DWEIR_BUILD_BENCH=ON). Each measures 1000 keys
in turn on one thread, all admitted, each call reading the clock; the best of five runs counts.
"an empty call" is what ctypes asks for any function; the rest is the wrapper's and weir's.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALLS = 200000
RUNS = 5
QUOTA = "1000000/s burst 4000000000"

NODE = r"""
const {Limiter} = require(process.argv[1]);
const limiter = new Limiter(process.argv[2]);
const keys = Array.from({length: 1000}, (_, i) => `user:${i}`);
function measure(name, call, each = 1) {
  let best = Infinity;
  for (let run = 0; run < 5; ++run) {
    const began = process.hrtime.bigint();
    for (let i = 0; i < 200000; i += each) call(each === 1 ? keys[i % 1000] : keys.slice(0, each));
    best = Math.min(best, Number(process.hrtime.bigint() - began) / 200000);
  }
  console.log(`${name} ${best.toFixed(1)}`);
}
measure('limiter.allows', (key) => { if (!limiter.allows(key)) throw new Error(); });
measure('limiter.check', (key) => { if (!limiter.check(key).allowed) throw new Error(); });
measure('checkMany, 100', (many) => {
  if (!limiter.checkMany(many)[99].allowed) throw new Error();
}, 100);
"""


def best_ns(work):
    best = float("inf")
    for _ in range(RUNS):
        began = time.perf_counter_ns()
        work()
        best = min(best, (time.perf_counter_ns() - began) / CALLS)
    return best


def python_rows(build):
    os.environ["WEIR_LIBRARY"] = str(build / "src/libweir.so")
    sys.path.insert(0, str(ROOT / "examples/python"))
    import weir  # pylint: disable=import-outside-toplevel
    limiter = weir.Limiter(QUOTA)
    keys = [f"user:{i}" for i in range(1000)]

    def check():
        for i in range(CALLS):
            limiter.check(keys[i % 1000])

    def empty():
        call = weir._library.weir_abi_version
        for _ in range(CALLS):
            call()

    return [("an empty call", best_ns(empty)), ("limiter.check", best_ns(check))]


def rows_of(*command):
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(name, float(ns)) for name, ns in (line.rsplit(" ", 1)
                                               for line in printed.splitlines())]


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    rows = [("C", *row) for row in rows_of(build / "bench/call_cost")]
    rows += [("Python", *row) for row in python_rows(build)]
    package = build / "bindings/node/package"
    rows += [("Node", *row) for row in rows_of("node", "-e", NODE, package, QUOTA)]
    for language, name, ns in rows:
        print(f"{language:7} {name:16} {ns:8.1f} ns")


if __name__ == "__main__":
    main()
