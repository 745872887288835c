#!/usr/bin/env python3
"""Checks #include lines against tools/layers.txt: usage check_layers.py [root]."""

import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TESTS_ONLY = {"testing"}
# Folders that use everything: they stand outside the layers.
OUTSIDE = {"tests", "bench", "fuzz", "examples"}


def read_rules(root):
    """Returns ({layer: layers it may include}, {third-party header prefix: folders})."""
    layers, homes = {}, {}
    for number, line in enumerate((root / "tools/layers.txt").read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(layer|home) ([^:]+):(.*)", line)
        if not match:
            sys.exit(f"tools/layers.txt:{number}: expected 'layer x: …' or 'home x: …'")
        kind, name, rest = match.groups()
        (layers if kind == "layer" else homes)[name] = rest.split()
    for layer, below in layers.items():
        for name in below:
            if name not in layers:
                sys.exit(f"tools/layers.txt: layer {layer} names {name}, which is not a layer")
            if list(layers).index(name) > list(layers).index(layer):
                sys.exit(f"tools/layers.txt: layer {layer} names {name}, which is above it")
    return layers, homes


def layer_of(path):
    """The layer a file belongs to, or None for a folder that stands outside of them."""
    if path.parts[0] == "src" and len(path.parts) > 2:
        return path.parts[1]
    return "apps" if path.parts[0] == "apps" else None


def problem_with(path, quote, header, root, layers, homes):
    """Why this file may not include this header, or None."""
    for prefix, folders in homes.items():
        if header.startswith(prefix):
            if any(path.is_relative_to(folder) for folder in folders):
                return None
            return f"{header} may be included only in {', '.join(folders)}"
    if path.parts[0] == "include":
        if header.startswith("weir/"):
            return None
        if quote == "<" and re.fullmatch(r"[a-z0-9_]+|std(def|int)\.h", header):
            return None
        return f"a public header may include the standard library and weir/, not {header}"
    if quote == "<" or header.startswith("weir/") or path.parts[0] in OUTSIDE:
        return None
    own = layer_of(path)
    target = header.split("/")[0]
    if own == "apps" and (root / "apps" / header).exists():
        return None
    if target not in layers:
        return f"{header} is in no layer; private headers are included as \"<layer>/x.h\""
    if target == own or target in layers.get(own, []):
        return None
    if target in TESTS_ONLY and re.search(r"_test\.(cc|h)$", path.name):
        return None
    return f"layer {own} may not include layer {target} (tools/layers.txt)"


def check(root):
    layers, homes = read_rules(root)
    problems, checked = [], 0
    for path in tree.files(root):
        if path.suffix not in tree.CPP:
            continue
        checked += 1
        own = layer_of(path)
        if own is not None and own not in layers:
            problems.append(f"{path}: folder {own} is not a layer of tools/layers.txt")
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            why = match and problem_with(path, match[1], match[2], root, layers, homes)
            if why:
                problems.append(f"{path}:{number}: {line.strip()}: {why}")
    return problems, checked


if __name__ == "__main__":
    sys.exit(tree.report("layers", *check(tree.repo_root())))
