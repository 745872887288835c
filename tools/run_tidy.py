#!/usr/bin/env python3
"""clang-tidy over a compilation database, in parallel, remembering what was clean.

usage: run_tidy.py build-folder cache-folder [--all | file...]

Checks what is shipped; tests, fuzz targets and benchmarks only with --all or by name, because
clang-tidy takes longer for one of them than its compiler and its run together. A file is checked
again when it, a header of ours that it reaches, its compile command, .clang-tidy or clang-tidy
itself has changed.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import tree

TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
SHIPPED = ("src", "apps", "examples")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Closure:
    """The project headers that a file reaches, by #include lines."""

    def __init__(self, root):
        self._roots = [root / "include", root / "src", root / "apps", root]
        self._direct = {}

    def of(self, path):
        seen, todo = set(), [path]
        while todo:
            current = todo.pop()
            if current not in seen:
                seen.add(current)
                todo += self._direct_includes(current)
        return sorted(seen)

    def _direct_includes(self, path):
        if path not in self._direct:
            found = []
            for name in INCLUDE.findall(path.read_text()):
                for folder in (path.parent, *self._roots):
                    if (folder / name).is_file():
                        found.append((folder / name).resolve())
                        break
            self._direct[path] = found
        return self._direct[path]


def fingerprint(entry, path, closure, common):
    digest = hashlib.sha256(common)
    digest.update(entry.get("command", " ".join(entry.get("arguments", []))).encode())
    for part in closure.of(path):
        digest.update(str(part).encode() + b"\0" + part.read_bytes() + b"\0")
    return digest.hexdigest()


def run_one(build, path):
    """(path, ok, output) of one file."""
    run = subprocess.run([TIDY, "-p", str(build), "--quiet", str(path)],
                         capture_output=True, text=True, check=False)
    kept = [line for line in run.stdout.splitlines() if line.strip()]
    if run.returncode != 0 and not kept:
        kept = run.stderr.splitlines()
    return path, run.returncode == 0, "\n".join(kept)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root = Path(__file__).resolve().parent.parent
    build, cache = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    every = "--all" in sys.argv[3:]
    wanted = {Path(name).resolve() for name in sys.argv[3:] if name != "--all"}
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (root / ".clang-tidy").read_bytes()
    tracked = {(root / path).resolve() for path in tree.files(root)}
    closure = Closure(root)
    work = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        shipped = path.relative_to(root).parts[0] in SHIPPED if path in tracked else False
        shipped = shipped and not path.stem.endswith("_test") and "testing" not in path.parts
        if path in tracked and (path in wanted if wanted else every or shipped):
            work[path] = cache / fingerprint(entry, path, closure, common)
    stale = {path: mark for path, mark in work.items() if not mark.exists()}
    print(f"clang-tidy: {len(work)} files, {len(stale)} to check", flush=True)
    failed = done = 0
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_one, build, path) for path in stale]
        for job in concurrent.futures.as_completed(jobs):
            path, ok, output = job.result()
            done += 1
            print(f"[{done}/{len(stale)}] {path.relative_to(root)}", flush=True)
            if ok:
                stale[path].touch()
            else:
                failed += 1
                print(output, flush=True)
    # Marks of files as they once were: keep the folder from growing for ever.
    if not wanted:
        for mark in set(cache.iterdir()) - set(work.values()):
            mark.unlink(missing_ok=True)
    print(f"clang-tidy: {failed} of {len(work)} files with findings, "
          f"{time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
