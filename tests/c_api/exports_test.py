#!/usr/bin/env python3
"""libweir.so exports what weir.h declares and nothing else: exports_test.py libweir.so nm objdump.

Also that it is named after the ABI version and needs the C and C++ runtime only.
"""

import re
import subprocess
import sys
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include/weir/weir.h"
# The C and C++ runtime; libpthread and libm are parts of libc on current systems.
RUNTIME = re.compile(r"(libstdc\+\+|libgcc_s|libc|libm|libpthread|ld-linux[\w-]*)\.so\.\d+")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    library, nm, objdump = sys.argv[1:]
    text = HEADER.read_text()
    declared = set(re.findall(r"^WEIR_API [^;]*?\b(weir_\w+)\(", text, re.MULTILINE))
    abi = re.search(r"^#define WEIR_ABI_VERSION (\d+)$", text, re.MULTILINE)[1]
    symbols = output_of(nm, "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].split("@")[0] for line in symbols}
    dynamic = output_of(objdump, "-p", library)
    needed = re.findall(r"NEEDED\s+(\S+)", dynamic)

    problems = [f"exported but not in weir.h: {name}" for name in sorted(exported - declared)]
    problems += [f"in weir.h but not exported: {name}" for name in sorted(declared - exported)]
    problems += [f"needs {name}" for name in needed if not RUNTIME.fullmatch(name)]
    soname = re.search(r"SONAME\s+(\S+)", dynamic)[1]
    if soname != f"libweir.so.{abi}":
        problems.append(f"soname {soname}, not libweir.so.{abi}")
    print("\n".join(problems) if problems else
          f"{soname}: {len(exported)} functions, all of weir.h; needs {' '.join(needed)}")
    return 1 if problems or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
