"""What the checks share: the files of the tree, and how a violation is printed."""

import os
import subprocess
import sys
from pathlib import Path

CPP = {".h", ".cc"}


def repo_root():
    """The tree to check: the first argument, or the one this script belongs to."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).resolve()
    return Path(__file__).resolve().parent.parent


def files(root):
    """Paths relative to root: what git tracks or would track; without git, all but build/."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached",
         "--others", "--exclude-standard"],
        capture_output=True, check=False) if (root / ".git").exists() else None
    if listing is not None and listing.returncode == 0:
        names = [n for n in listing.stdout.decode().split("\0") if n]
    else:
        names = []
        for folder, folders, leaves in os.walk(root):
            relative = os.path.relpath(folder, root)
            folders[:] = [f for f in folders if f not in (".git", "node_modules", "__pycache__")
                          and not (relative == "." and f == "build")]
            names += [os.path.normpath(os.path.join(relative, leaf)) for leaf in leaves]
    return sorted(Path(n) for n in set(names) if (root / n).is_file())


def text(root, path):
    """The file as text, or None when it is not text."""
    try:
        return (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def without_comments(source):
    """C++ with comments and string contents blanked; line numbers stay."""
    out = []
    i, n = 0, len(source)
    while i < n:
        two = source[i:i + 2]
        if two == "//":
            while i < n and source[i] != "\n":
                i += 1
        elif two == "/*":
            end = source.find("*/", i + 2)
            end = n if end < 0 else end + 2
            out.append("\n" * source.count("\n", i, end))
            i = end
        elif source[i] == '"' and source[i - 1:i] == "R":
            opening = source.index("(", i)
            mark = ")" + source[i + 1:opening] + '"'
            end = source.find(mark, opening)
            end = n if end < 0 else end + len(mark)
            out.append('""' + "\n" * source.count("\n", i, end))
            i = end
        elif source[i] == '"':
            end = i + 1
            while end < n and source[end] not in '"\n':
                end += 2 if source[end] == "\\" else 1
            out.append('""')
            i = end + 1
        elif source[i] == "'" and not (i > 0 and source[i - 1].isalnum()):
            end = i + 1
            while end < n and source[end] not in "'\n":
                end += 2 if source[end] == "\\" else 1
            out.append("' '")
            i = end + 1
        else:
            out.append(source[i])
            i += 1
    return "".join(out)


def report(name, problems, checked):
    """Prints the problems, one a line, and returns the exit code."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{name}: {len(problems)} problem(s)")
        return 1
    print(f"{name}: ok ({checked} files)")
    return 0
