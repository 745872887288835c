#!/usr/bin/env python3
"""Plants violations in a small tree and sees each check catch them, and a clean tree pass."""

import tempfile
import unittest
from pathlib import Path

import check_layers
import check_portable
import check_style
import check_tree
import extract_examples
import summarize_tests

LAYERS = """layer base:
layer store: base
layer testing: base
layer apps:
home xxhash.h: src/base
"""
PAGE = "# x\n## The tree\n```\ninclude/weir/  headers\nsrc/  layers\ntools/  checks\n```\n## More\n"


class Planted(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = Path(self._folder.name)
        self.write("tools/layers.txt", LAYERS)
        self.write("ARCHITECTURE.md", PAGE)
        self.write("src/CMakeLists.txt", "x.h\n")
        self.write("src/base/CMakeLists.txt", "weir_layer(NAME base SOURCES a.cc)\n")
        self.write("src/base/a.cc", '#include <vector>\n#include "base/a.h"\n')
        self.write("src/base/a.h", "#pragma once\n#include <xxhash.h>\n")
        self.write("src/store/s.h", '#pragma once\n#include "base/a.h"\n#include "weir/x.h"\n')
        self.write("include/weir/x.h", "#pragma once\n#include <chrono>\n")

    def write(self, path, content):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def problems(self, check):
        return "\n".join(check.check(self.root)[0])

    def test_a_clean_tree_passes_every_check(self):
        for check in (check_layers, check_tree, check_style):
            self.assertEqual(self.problems(check), "", check.__name__)

    def test_an_include_of_an_upper_layer_is_named_with_its_line(self):
        self.write("src/base/a.cc", '// x\n#include "store/s.h"\n')
        self.assertIn("src/base/a.cc:2:", self.problems(check_layers))

    def test_a_third_party_header_has_one_home(self):
        self.write("src/store/s.h", "#include <xxhash.h>\n")
        self.assertIn("only in src/base", self.problems(check_layers))

    def test_a_public_header_includes_nothing_private_or_foreign(self):
        for line in ('#include "base/a.h"', "#include <sys/mman.h>", "#include <absl/x.h>"):
            self.write("include/weir/x.h", line + "\n")
            self.assertIn("include/weir/x.h:1:", self.problems(check_layers), line)

    def test_a_folder_that_is_no_layer_is_refused(self):
        self.write("src/misc/m.cc", "")
        self.assertIn("folder misc is not a layer", self.problems(check_layers))

    def test_only_tests_include_testing(self):
        self.write("src/store/s_test.cc", '#include "testing/fake.h"\n')
        self.assertEqual(self.problems(check_layers), "")
        self.write("src/store/s.cc", '#include "testing/fake.h"\n')
        self.assertIn("src/store/s.cc:1:", self.problems(check_layers))

    def test_a_program_uses_public_headers(self):
        self.write("apps/weir/main.cc", '#include "base/a.h"\n')
        self.assertIn("apps/weir/main.cc:1:", self.problems(check_layers))

    def test_a_listed_folder_must_exist(self):
        self.write("ARCHITECTURE.md", PAGE.replace("src/", "src/\u0020\u0020x\ngone/", 1))
        self.assertIn("gone/ is listed but does not exist", self.problems(check_tree))

    def test_a_folder_with_files_must_be_listed(self):
        self.write("extra/deep/file.txt", "x\n")
        self.assertIn("extra/deep/ holds files", self.problems(check_tree))

    def test_a_page_without_the_list_is_refused(self):
        self.write("ARCHITECTURE.md", "# nothing\n")
        self.assertIn("no folder list", self.problems(check_tree))

    def test_a_source_that_is_never_built_is_found(self):
        self.write("src/base/lost_test.cc", "")
        self.assertIn("src/base/lost_test.cc: not named", self.problems(check_tree))

    def test_a_public_header_that_is_never_installed_is_found(self):
        self.write("include/weir/lost.h", "#pragma once\n")
        self.assertIn("include/weir/lost.h: not named", self.problems(check_tree))

    def test_banned_words_are_caught_in_code_and_not_in_comments(self):
        for code in ("auto t = Clock::now();", "sleep_for(x);", "clock_gettime(0, &t);"):
            self.write("src/base/a.cc", code + "\n")
            self.assertIn("src/base/a.cc:1:", self.problems(check_style), code)
            self.write("src/base/clock.cc", code + "\n")
            self.assertNotIn("src/base/clock.cc:", self.problems(check_style), code)
            self.write("src/base/a.cc", f'// {code}\nauto s = "{code}";\n')
            self.assertEqual(self.problems(check_style), "", code)

    def test_small_habits_are_caught(self):
        for content, expected in (("x" * 101 + "\n", "101 columns"), ("\tx\n", "tab"),
                                  ("// TO" "DO: later\n", "names no issue"),
                                  ('"/ro' 'ot/x"\n', "path of one machine"), ("x \n", "blanks"),
                                  ("x", "no newline"), ("x\n" * 601, "601 lines")):
            self.write("src/base/a.cc", content)
            self.assertIn(expected, self.problems(check_style), expected)

    def test_an_undone_thing_with_an_issue_and_600_lines_pass(self):
        self.write("src/base/a.cc", "// TO" "DO(#12): later\n" + "x\n" * 599)
        self.assertEqual(self.problems(check_style), "")


class Examples(unittest.TestCase):
    def test_blocks_with_main_are_taken_with_their_line(self):
        page = "a\n```cpp\nint x;\n```\n```cpp\nint main() {}\n```\n```sh\nint main\n```\n"
        self.assertEqual(extract_examples.examples(page), [(6, "int main() {}\n")])


class Portable(unittest.TestCase):
    def test_wide_instructions_are_allowed_only_where_they_are_chosen_at_run_time(self):
        wide = ["   4:\tvpaddd %ymm0,%ymm0,%ymm1", "   8:\tret"]
        chosen, common = "0000 <weir::store::avx2::Find(int)>:", "0000 <std::f<int>()>:"
        self.assertEqual(check_portable.offenders([chosen, *wide]), {})
        self.assertEqual(list(check_portable.offenders([common, *wide])), ["std::f<int>()"])
        plain = ["0000 <f>:", "   0:\ttzcnt %rax,%rcx", "   4:\tmovdqu (%rax),%xmm0"]
        self.assertEqual(check_portable.offenders(plain), {})


REPORT = """<testsuite>
<testcase name="a_test" status="fail"><system-out>
[ RUN      ] A.Works
[       OK ] A.Works (0 ms)
[ RUN      ] A.Fails
a.cc:7: Failure
[  FAILED  ] A.Fails (1 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Fails
no outside data: gcra
</system-out></testcase>
<testcase name="crash_test" status="fail"><system-out>[       OK ] B.Works (0 ms)
</system-out></testcase>
<testcase name="script" status="run"><system-out>fine</system-out></testcase>
<testcase name="lost" status="notrun"><system-out/></testcase>
</testsuite>
"""


class Summary(unittest.TestCase):
    def test_counts_single_tests_crashes_scripts_and_what_never_ran(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.xml"
            path.write_text(REPORT)
            plain = Path(folder) / "lane.cases"
            plain.write_text("pass format\nfail tidy\npass layers\n")
            summary = summarize_tests.summarize(path, plain)
        self.assertEqual((summary.passed, summary.failed), (5, 4))
        self.assertEqual(summary.without_data, {"gcra"})

    def test_tells_what_failed_cases_printed_and_not_what_others_did(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.xml"
            path.write_text(REPORT)
            told = summarize_tests.failures(path)
        self.assertEqual(told[:4], ["--- a_test (fail)", "[ RUN      ] A.Fails", "a.cc:7: Failure",
                                    "[  FAILED  ] A.Fails (1 ms)"])
        self.assertIn("--- crash_test (fail)", told)
        self.assertNotIn("fine", told)


if __name__ == "__main__":
    unittest.main()
