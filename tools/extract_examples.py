#!/usr/bin/env python3
"""Builds and runs the README's programs, so that they cannot go stale.

usage: extract_examples.py README.md output-folder compiler [flag...]

Every ```cpp block that has a main() is written to the output folder, compiled with the flags given
and run; it must end with 0. A #line directive makes errors point into the README.
"""

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```cpp[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page):
    """[(line of its first line, program)] of a Markdown text."""
    return [(page.count("\n", 0, block.start(1)) + 1, block[1])
            for block in BLOCK.finditer(page) if re.search(r"\bint main\b", block[1])]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    page, output, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    found = examples(page.read_text())
    if not found:
        sys.exit(f"{page}: no ```cpp block with a main()")
    output.mkdir(parents=True, exist_ok=True)
    for number, (line, program) in enumerate(found, 1):
        source, binary = output / f"example_{number}.cc", output / f"example_{number}"
        source.write_text(f'#line {line} "{page}"\n{program}')
        subprocess.run([compiler, str(source), "-o", str(binary), *sys.argv[4:]], check=True)
        print(f"--- {page}:{line}", flush=True)
        subprocess.run([str(binary)], check=True, timeout=60)
    print(f"{len(found)} example(s) ran")


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
        sys.exit(f"failed: {failure}")
