#!/usr/bin/env python3
"""Habits that the formatter and the compiler cannot see: usage check_style.py [root].

Time is injected, so clocks and sleeps are banned outside their homes; lines fit 100 columns; what
is left undone names its issue; no tabs, no trailing blanks, no paths of somebody's machine; a file
under src/ or apps/ has 600 lines at most (ask at 400 whether two ideas live there).
"""

import re
import sys

import tree

COLUMNS = 100
LINES = 600
CLOCK_HOMES = ("src/base/clock.cc", "bench", "src/net", "src/redis",
               "tests/compile_fail")
CLOCKS = re.compile(r"::now\s*\(|\bclock_gettime\b|\bgettimeofday\b"
                    r"|\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\(")
# Written in pieces, so that this file passes its own check.
UNDONE = re.compile(r"\b(" + "TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
MACHINE = re.compile(r"(?<![\w./$}~-])/(?:" + "work|root|home|tmp" + r")/")
# Text that is not ours to wrap.
FREE_WIDTH = {".json", ".md", ".csv", ".svg", ".lock", ".txt", ""}
FREE_NAMES = {"LICENSE"}
MAY_HOLD_TABS = {".go", ".mod", ".sum"}


def is_text_source(path):
    return path.name not in FREE_NAMES and "corpus" not in path.parts


def check_file(path, content):
    """[problem] of one file."""
    problems = []
    code = tree.without_comments(content).split("\n") if path.suffix in tree.CPP else None
    clock_allowed = any(path.is_relative_to(home) for home in CLOCK_HOMES)
    lines = content.split("\n")
    for number, line in enumerate(lines, 1):
        def say(what, where=number):
            problems.append(f"{path}:{where}: {what}")
        if "\t" in line and path.suffix not in MAY_HOLD_TABS:
            say("tab")
        if line != line.rstrip():
            say("blanks at the end of the line")
        if len(line) > COLUMNS and path.suffix not in FREE_WIDTH and "NOLINT" not in line:
            say(f"{len(line)} columns; {COLUMNS} at most")
        if UNDONE.search(line):
            say("names no issue; write the issue's number after it: (#12)")
        if MACHINE.search(line):
            say("path of one machine")
        if code is not None and not clock_allowed and CLOCKS.search(code[number - 1]):
            say("reads a clock or waits; take a weir::Clock (allowed: " +
                ", ".join(CLOCK_HOMES) + ")")
    if content and not content.endswith("\n"):
        problems.append(f"{path}:{len(lines)}: no newline at the end of the file")
    if path.parts[0] in ("src", "apps") and path.suffix in tree.CPP and len(lines) - 1 > LINES:
        problems.append(f"{path}:{LINES + 1}: {len(lines) - 1} lines; {LINES} at most")
    return problems


def check(root):
    problems, checked = [], 0
    for path in tree.files(root):
        content = tree.text(root, path) if is_text_source(path) else None
        if content is None:
            continue
        checked += 1
        problems += check_file(path, content)
    return problems, checked


if __name__ == "__main__":
    sys.exit(tree.report("style", *check(tree.repo_root())))
