#!/usr/bin/env python3
"""Counts single tests over lanes: usage summarize_tests.py [--failures] report...

A report is either ctest's JUnit file (*.xml) or plain lines `pass <name>` and `fail <name>`.

One ctest entry is one program and may hold many GoogleTest cases; this counts the cases. A program
that fails without naming a case (a crash, a time-out, a script) counts as one failure. Prints

    skipped: <test>                  what said that it did not run
    no outside data: <suite>         suites that ran without the vectors from outside
    <n> passed, <m> failed           always last

and ends with 1 if anything failed. With --failures it prints instead what the failed ones said.
"""

import re
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

PASSED = re.compile(r"^\[       OK \] (\S+)", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (\S+).* \(\d+ ms\)$", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)
FAILED_BLOCK = re.compile(r"^\[ RUN      \] (\S+)\n(?:(?!\[ RUN ).*\n)*?\[  FAILED  \] \1.*$",
                          re.MULTILINE)
NO_DATA = re.compile(r"^no outside data: (.+?)\s*$", re.MULTILINE)


@dataclass
class Summary:
    passed: int = 0
    failed: int = 0
    skipped: set = field(default_factory=set)
    without_data: set = field(default_factory=set)


def add_entry(summary, entry):
    """Adds one ctest entry."""
    out = output_of(entry)
    status = entry.get("status")
    passed, failed = len(PASSED.findall(out)), len(FAILED.findall(out))
    skipped = SKIPPED.findall(out)
    if status == "run":
        # A script that passes is one test; a program whose cases all skipped is none.
        if not passed and not failed and not skipped:
            passed = 1
    elif not failed:
        failed = 1
    summary.passed += passed
    summary.failed += failed
    summary.skipped.update(skipped)
    summary.without_data.update(NO_DATA.findall(out))


def output_of(entry):
    return "".join(part.text or "" for part in entry.iter("system-out"))


def failures(report, lines_each=40):
    """What the failed entries of one JUnit report printed: failed cases, or else the last lines."""
    told = []
    for entry in xml.parse(report).getroot().iter("testcase"):
        if entry.get("status") == "run":
            continue
        out = output_of(entry)
        blocks = [block[0].splitlines() for block in FAILED_BLOCK.finditer(out)]
        blocks = blocks or [out.splitlines()[-lines_each:]]
        told.append(f"--- {entry.get('name')} ({entry.get('status')})")
        for block in blocks:
            told += block[:lines_each]
    return told


def summarize(*reports):
    summary = Summary()
    for report in reports:
        if report.suffix != ".xml":
            words = report.read_text().split("\n")
            summary.passed += sum(line.startswith("pass ") for line in words)
            summary.failed += sum(line.startswith("fail ") for line in words)
            continue
        for entry in xml.parse(report).getroot().iter("testcase"):
            add_entry(summary, entry)
    return summary


def main():
    if sys.argv[1:2] == ["--failures"]:
        for report in sys.argv[2:]:
            print("\n".join(failures(Path(report))))
        return 0
    summary = summarize(*[Path(name) for name in sys.argv[1:]])
    for name in sorted(summary.skipped):
        print(f"skipped: {name}")
    for suite in sorted(summary.without_data):
        print(f"no outside data: {suite}")
    print(f"{summary.passed} passed, {summary.failed} failed")
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
