"""Network and country of addresses, from databases made for the test, in a real server."""
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

import harness

HERE = pathlib.Path(__file__).parent

RULES = """
rules:
  - {name: per-asn, per: asn, limit: 3/h}
  - {name: not-from-nl, when: {country: NL}, block: true, group: countries}
"""


def make(kind, path, *networks):
    """Puts a database in its place whole, as those who fetch them do."""
    new = str(path) + ".new"
    subprocess.run([harness.program("perl"), str(HERE / "make_geo_db.pl"), kind, new, *networks],
                   check=True)
    os.rename(new, path)


class Geo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-geo")
        self.addCleanup(folder.cleanup)
        self.asn = pathlib.Path(folder.name) / "asn.mmdb"
        self.country = pathlib.Path(folder.name) / "country.mmdb"
        make("ASN", self.asn, "192.0.2.0/24=64496", "198.51.100.0/24=64496",
             "2001:db8::/32=64497")
        make("Country", self.country, "203.0.113.0/24=NL", "192.0.2.0/24=DE")

    def start(self, *options):
        return harness.Weir(self, "--geo-db", str(self.asn), "--geo-db", str(self.country),
                            *options, rules=RULES)

    def check(self, weir, **attributes):
        return harness.post(weir.http, "/v1/check", json.dumps({"attributes": attributes}))

    def test_counts_a_network_whatever_address_it_shows(self):
        weir = self.start()
        statuses = [self.check(weir, ip=ip).status for ip in
                    ("192.0.2.1", "198.51.100.7", "192.0.2.99", "198.51.100.8", "192.0.2.3")]
        self.assertEqual(statuses, [200, 200, 200, 429, 429])
        self.assertEqual(self.check(weir, ip="2001:db8::1").status, 200)
        self.assertEqual(self.check(weir, ip="203.0.113.5").status, 403)

    def test_does_not_believe_what_the_client_says(self):
        weir = self.start()
        for _ in range(3):
            self.check(weir, ip="192.0.2.1")
        self.assertEqual(self.check(weir, ip="192.0.2.1", asn="1").status, 429)
        self.assertEqual(self.check(weir, ip="203.0.113.5", country="DE").status, 403)

    def test_knows_the_client_of_a_proxy(self):
        weir = self.start("--trusted-proxy", "127.0.0.1")
        ask = lambda ip: harness.get(weir.http, "/v1/auth", [("X-Forwarded-For", ip)]).status
        self.assertEqual(ask("192.0.2.1"), 204)
        self.assertEqual(ask("203.0.113.9"), 403)

    def test_takes_a_new_database_without_losing_a_request(self):
        weir = self.start()
        stop = threading.Event()
        wrong = []

        def load():
            while not stop.is_set():
                reply = self.check(weir, ip="100.64.0.1")
                if reply.status != 200:
                    wrong.append(reply.status)

        loader = threading.Thread(target=load)
        loader.start()
        try:
            make("Country", self.country, "198.18.0.0/15=NL")
            harness.wait_for("the new database",
                             lambda: self.check(weir, ip="198.18.0.1").status == 403)
        finally:
            stop.set()
            loader.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.check(weir, ip="203.0.113.5").status, 200)

    def test_keeps_the_old_database_if_the_new_one_is_damaged_and_says_so_once(self):
        weir = self.start()
        whole = self.country.read_bytes()
        half = self.country.with_suffix(".half")
        half.write_bytes(whole[:len(whole) // 2])
        os.rename(half, self.country)
        harness.wait_for("the complaint", lambda: "the one before stays" in weir.output())
        weir.signal(1)  # a reload by hand does not repeat it
        self.assertEqual(self.check(weir, ip="203.0.113.5").status, 403)
        weir.write_rules(RULES + "  - {name: more, when: {user: x}, per: user, limit: 1/h}\n")
        harness.wait_for("the rules", lambda: self.check(weir, user="x").status == 429)
        self.assertEqual(weir.output().count("the one before stays"), 1)

    def test_does_not_start_with_a_bad_file(self):
        for path, words in (("/nonexistent/x.mmdb", "cannot be read"),
                            (str(HERE / "harness.py"), "no database of MaxMind's format")):
            done = subprocess.run([harness.WEIR, "serve", "--geo-db", path, "--http",
                                   "127.0.0.1:0", "--resp", "off", "--admin", "off"],
                                  capture_output=True, text=True, timeout=harness.DEADLINE_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertIn(path, done.stderr)

    def test_is_an_option_like_the_others(self):
        shown = subprocess.run([harness.WEIR, "serve", "--print-config"], text=True, check=True,
                               capture_output=True, timeout=harness.DEADLINE_S,
                               env=dict(os.environ, WEIR_GEO_DB="a.mmdb,b.mmdb")).stdout
        self.assertIn('geo-db = ["a.mmdb", "b.mmdb"]', shown)


if __name__ == "__main__":
    harness.main()
