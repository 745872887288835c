#!/usr/bin/env python3
"""Holds ARCHITECTURE.md and the build files to the tree: usage check_tree.py [root].

ARCHITECTURE.md has a fenced block under the heading "## The tree" with lines `path/  description`.
Each path listed must exist; each folder that holds files must be listed, or lie below a listed
folder that has no listed folder below it. Sources that no CMakeLists.txt names are found too: such
a test would never run.
"""

import re
import sys
from pathlib import Path

import tree

BUILT = ("include", "src", "apps", "tests", "bench", "fuzz", "examples")
# Compiled by the test that owns it, as an outside project.
BUILT_ELSEWHERE = Path("tests/install")


def listed_folders(root):
    """[(path, line number)] of ARCHITECTURE.md's folder list, and problems with it."""
    page = root / "ARCHITECTURE.md"
    if not page.exists():
        return [], ["ARCHITECTURE.md: missing"]
    folders, problems = [], []
    in_section = in_block = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("## ") and not in_block:
            in_section = line.strip() == "## The tree"
        elif in_section and line.startswith("```"):
            in_block = not in_block
            in_section = in_block
        elif in_section and in_block and line.strip():
            match = re.fullmatch(r"(\S+)/(?:\s{2,}\S.*)", line)
            if match:
                folders.append((Path(match[1]), number))
            else:
                problems.append(f"ARCHITECTURE.md:{number}: expected 'path/  description'")
    if not folders and not problems:
        problems.append('ARCHITECTURE.md: no folder list in a fenced block under "## The tree"')
    return folders, problems


def check_folders(root, paths):
    listed, problems = listed_folders(root)
    if not listed:
        return problems
    names = {path for path, _ in listed}
    leaves = {path for path in names if not any(path in other.parents for other in names)}
    for path, number in listed:
        if not (root / path).is_dir():
            problems.append(f"ARCHITECTURE.md:{number}: {path}/ is listed but does not exist")
    for folder in sorted({path.parent for path in paths} - {Path(".")}):
        if folder in names or any(leaf in folder.parents for leaf in leaves):
            continue
        problems.append(f"{folder}/ holds files but is not listed in ARCHITECTURE.md")
    return problems


def check_built(root, paths):
    """Every source and public header is named by a CMakeLists.txt in its folder or above it."""
    build_files = {path.parent: (root / path).read_text() for path in paths
                   if path.name == "CMakeLists.txt"}
    problems = []
    for path in paths:
        is_source = path.suffix == ".cc" and path.parts[0] in BUILT
        is_public = path.suffix == ".h" and path.parts[0] == "include"
        if not (is_source or is_public) or path.is_relative_to(BUILT_ELSEWHERE):
            continue
        near = [build_files.get(parent, "") for parent in path.parents if parent != Path(".")]
        if is_public:
            near += [body for folder, body in build_files.items() if folder.parts[0:1] == ("src",)]
        name = re.escape(path.name)
        stem = re.escape(path.stem)
        # weir_test(NAME x_test) builds x_test.cc; some folders list bare names.
        if not any(re.search(rf"(?<!\w){name}\b|(NAME |^ +|\(){stem}\b", body, re.MULTILINE)
                   for body in near):
            problems.append(f"{path}: not named in a CMakeLists.txt, so it is never built")
    return problems


def check(root):
    paths = tree.files(root)
    return check_folders(root, paths) + check_built(root, paths), len(paths)


if __name__ == "__main__":
    sys.exit(tree.report("tree", *check(tree.repo_root())))
