#!/usr/bin/env python3
"""Runs `weir simulate --html` and parses what it wrote: usage html_page_test.py <weir>."""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

TRACE = "time,key,cost\n" + "".join(f"{i / 4},user{i % 3},{1 + i % 5}\n" for i in range(2000))


def simulate(weir, *arguments):
    return subprocess.run([weir, "simulate", *arguments], capture_output=True, text=True)


def parse(page):
    """The page is written as XML, too, so a strict parser finds every tag left open."""
    root = ElementTree.fromstring(page.read_text("utf-8").replace("<!DOCTYPE html>\n", "", 1))
    assert root.tag == "html", root.tag
    for svg in root.iter("svg"):
        assert svg.get("aria-label"), "a chart without words"
        for path in svg.iter("path"):
            assert "nan" not in path.get("d") and "-" not in path.get("d"), path.get("d")
    return root


def main(weir):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        page, trace = folder / "out.html", folder / "a<b>&'c\".csv"
        trace.write_text(TRACE)
        page.write_text("what was here before")
        run = simulate(weir, "--trace", trace, "-l", "100/min", "-a", "all", "--html", page)
        assert run.returncode == 0 and run.stdout.startswith("wrote "), run
        root = parse(page)
        headings = ["".join(h.itertext()) for h in root.iter("h2")]
        assert len(headings) == 1 and headings[0].startswith("a<b>&'c\".csv"), headings
        assert sorted(path.name for path in folder.iterdir()) == [trace.name, "out.html"]

        assert simulate(weir, "-a", "all", "-c", "1-10", "--html", page).returncode == 0
        sections = len(parse(page).findall(".//section"))
        assert sections == 5, sections

        for bad in (folder / "no" / "such" / "out.html", folder):
            run = simulate(weir, "--html", bad)
            assert run.returncode == 1 and f"--html: cannot write '{bad}'" in run.stderr, run
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
