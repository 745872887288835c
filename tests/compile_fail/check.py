#!/usr/bin/env python3
"""Misuse must not compile: usage check.py case.cc compiler [flag...].

The case must compile as it stands and fail with -DMISUSE, for the reason that its line
`// expect: <regular expression>` names. So neither a typo nor a missing header can pass for it.
"""

import re
import subprocess
import sys
from pathlib import Path


def main():
    case, command = Path(sys.argv[1]), sys.argv[2:]
    expected = re.search(r"^// expect: (.+)$", case.read_text(), re.MULTILINE)
    if not expected:
        sys.exit(f"{case}: no line '// expect: …'")

    def compile_it(*more):
        return subprocess.run([*command, "-fsyntax-only", *more, str(case)],
                              capture_output=True, text=True, check=False)

    good = compile_it()
    if good.returncode != 0:
        sys.exit(f"{case}: the right use does not compile\n{good.stderr}")
    bad = compile_it("-DMISUSE")
    if bad.returncode == 0:
        sys.exit(f"{case}: the misuse compiles")
    if not re.search(expected[1], bad.stderr):
        sys.exit(f"{case}: does not compile, but not for '{expected[1]}'\n{bad.stderr}")
    print(f"{case.name}: refused as it should be")


if __name__ == "__main__":
    main()
