#!/usr/bin/env python3
"""Turns the lines of one suite into a table and a file: suite | report.py SUITE --build FOLDER.

Reads a JSON object a line on standard input. With --json the lines go on to standard output with
exactly the promised fields; without it a table does. Both ways bench/results/<date>-<suite>.json is
written (<date>-<suite>-quick.json with --quick, which never takes the place of a full run), with
the machine, the compiler and the commit, because a figure without them says nothing.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

FIELDS = ("suite", "case", "ours", "unit", "peer", "theirs", "ratio", "bar", "holds")
BENCH = pathlib.Path(__file__).resolve().parent


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def output_of(*command):
    try:
        done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cmake_cache(build):
    """{name: value} of the build folder, {} if it was not made by CMake."""
    cache = {}
    try:
        for line in (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines():
            name, separator, value = line.partition("=")
            if separator and not line.startswith(("#", "//")):
                cache[name.partition(":")[0]] = value
    except OSError:
        pass
    return cache


def machine(build):
    cache = cmake_cache(build)
    compiler = cache.get("CMAKE_CXX_COMPILER")
    version = output_of(compiler, "--version") if compiler else None
    build_type = cache.get("CMAKE_BUILD_TYPE", "")
    flags = (cache.get("CMAKE_CXX_FLAGS", ""),
             cache.get("CMAKE_CXX_FLAGS_" + build_type.upper(), ""))
    commit = output_of("git", "rev-parse", "HEAD")
    if commit and output_of("git", "status", "--porcelain"):
        commit += " and changes"
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "compiler": version.splitlines()[0] if version else "unknown",
        "flags": " ".join(part for part in flags if part) or "unknown",
        "commit": commit or "unknown",
    }


def number(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def verdict(row):
    if row["theirs"] is None:
        return "peer missing"
    if row["holds"] is None:
        return ""
    return "holds" if row["holds"] else "MISSES"


def table(rows):
    head = ("case", "weir", "peer", "theirs", "unit", "ratio", "bar", "")
    body = [(row["case"], number(row["ours"]), row["peer"], number(row["theirs"]), row["unit"],
             number(row["ratio"]), number(row["bar"]), verdict(row)) for row in rows]
    widths = [max(len(line[column]) for line in [head, *body]) for column in range(len(head))]
    right = {1, 3, 5, 6}
    lines = []
    for line in [head, tuple("-" * width for width in widths), *body]:
        cells = [cell.rjust(width) if column in right else cell.ljust(width)
                 for column, (cell, width) in enumerate(zip(line, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def summary(rows):
    holds = sum(row["holds"] is True for row in rows)
    misses = sum(row["holds"] is False for row in rows)
    missing = sum(row["theirs"] is None for row in rows)
    text = f"{holds} bars hold, {misses} missed"
    return text + (f", {missing} without a peer" if missing else "")


def read_rows(lines):
    rows = []
    for line in lines:
        row = json.loads(line)
        absent = [field for field in FIELDS if field not in row]
        if absent:
            sys.exit(f"bench: a result without {', '.join(absent)}: {line.strip()}")
        rows.append(row)
        yield row
    if not rows:
        sys.exit("bench: the suite printed no result")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    rows = []
    for row in read_rows(sys.stdin):
        rows.append(row)
        if options.json:
            print(json.dumps({field: row[field] for field in FIELDS}), flush=True)
        elif sys.stderr.isatty():
            print(f"bench: {row['case']} ...", file=sys.stderr)
    about = machine(options.build)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    result = {"suite": options.suite, "date": today, "quick": options.quick, "machine": about,
              "results": rows}
    quick = "-quick" if options.quick else ""
    path = BENCH / "results" / f"{today}-{options.suite}{quick}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if not options.json:
        print(f"suite {options.suite}: {about['cpu']}, {about['cores']} cores, "
              f"{about['compiler']}, {about['flags']}")
        print(table(rows))
        print(f"{summary(rows)}; ratio above 1: weir is better; "
              f"written to {path.relative_to(BENCH.parent)}")


if __name__ == "__main__":
    main()
