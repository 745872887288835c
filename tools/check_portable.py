#!/usr/bin/env python3
"""The library must run on any x86-64: usage check_portable.py libweir.a [objdump].

Instructions that not every such processor has may appear only in functions that are compiled for
them and chosen at run time: those in a namespace avx2 or avx512. An emulator does not find this,
since it runs an instruction even when it denies having it.
"""

import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# VEX and EVEX encodings begin with v; the others are BMI, BMI2, LZCNT and POPCNT. TZCNT is left
# out: compilers emit its encoding on purpose where BSF does the same.
WIDE = re.compile(r"^\s+[0-9a-f]+:\s+(?:\w+ )*?(v[a-z]+\w*|andn|bextr|bls\w+|bzhi|mulx|pdep|pext"
                  r"|rorx|sarx|shlx|shrx|lzcnt|popcnt)\s")
ALLOWED = re.compile(r"\bavx(2|512)::")


def offenders(disassembly):
    """{function: its first wide instruction} of objdump's output."""
    found, function = {}, "?"
    for line in disassembly:
        match = FUNCTION.match(line)
        if match:
            function = match[1]
        elif not ALLOWED.search(function) and function not in found and WIDE.match(line):
            found[function] = line.strip()
    return found


def main():
    objdump = sys.argv[2] if len(sys.argv) > 2 else "objdump"
    run = subprocess.run([objdump, "-dC", "--no-show-raw-insn", sys.argv[1]],
                         capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    if not any(ALLOWED.search(line) for line in lines):
        sys.exit(f"{sys.argv[1]}: no function in avx2:: or avx512::, so nothing was checked")
    found = offenders(lines)
    for function, instruction in found.items():
        print(f"{function}: {instruction}")
    print(f"portable: {len(found)} function(s) need more than x86-64" if found else "portable: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
