#!/usr/bin/env python3
"""What the tests run of our code, by folder: the summary of gcovr as a table.

usage: summarize_coverage.py summary.json

Test code, and what only tests link, is left out by whoever calls gcovr.
"""

import json
import pathlib
import sys

LEAST = 15  # files shown


def share(covered, total):
    return f"{100 * covered / total:5.1f} %" if total else "    -  "


def main(path):
    files = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["files"]
    folders = {}
    for file in files:
        sums = folders.setdefault(str(pathlib.PurePath(file["filename"]).parent), [0, 0, 0, 0])
        for i, name in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            sums[i] += file[name]
    everything = [sum(column) for column in zip(*folders.values())]
    print(f"{'folder':<28} {'lines':>7}  {'run':>7}  {'branches':>8}")
    for folder, sums in [*sorted(folders.items()), ("all", everything)]:
        print(f"{folder:<28} {sums[1]:>7}  {share(*sums[0:2])}   {share(*sums[2:4])}")
    print(f"\nfiles with the most lines that no test runs, at most {LEAST}:")
    by_missing = sorted(files, key=lambda file: file["line_covered"] - file["line_total"])
    for file in by_missing[:LEAST]:
        missing = file["line_total"] - file["line_covered"]
        print(f"{missing:>5} of {file['line_total']:>5}  {file['filename']}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
