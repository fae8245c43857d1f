"""Tests of bench/table.py, bench/compare.py and bench/plot.py: python3 tests/bench/table_test.py"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))

import plot  # noqa: E402
import results  # noqa: E402
import table  # noqa: E402

ROW = {"figure": "decode", "ceiling": "bare", "unit": "img/s", "figure_value": 900.0,
       "ceiling_value": 1000, "ratio": 0.9, "ratio_min": 0.8, "ratio_max": 0.95, "rounds": 5}
NOT_MEASURED = {"not_measured": "link", "reason": "needs root"}
POINT = {"curve": "img/s <by> clients", "series": "one & all", "x_label": "clients", "x": 1,
         "y_label": "img/s", "y": 10.0}
SVG = "{http://www.w3.org/2000/svg}"


class TempDirTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, *lines, name="results.jsonl"):
        path = self.folder / name
        path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n"
                                for line in lines), encoding="utf-8")
        return path

    def run_script(self, script, *arguments):
        return subprocess.run([sys.executable, "-B", BENCH / script, *arguments], text=True,
                              capture_output=True, check=False)


class ReadTest(TempDirTest):
    def assert_malformed(self, line, message):
        with self.assertRaisesRegex(results.MalformedResults, "line 2: .*" + message):
            results.read(self.write(ROW, line))

    def test_rows_and_points_are_told_apart(self):
        rows, points, not_measured = results.read(
            self.write(ROW, POINT, NOT_MEASURED, ROW | {"figure": "other"}))
        self.assertEqual([row["figure"] for row in rows], ["decode", "other"])
        self.assertEqual(points, [POINT])
        self.assertEqual(not_measured, [NOT_MEASURED])

    def test_malformed_lines_are_named(self):
        self.assert_malformed("{no json\n", "Expecting property name")
        self.assert_malformed("\n", "Expecting value")
        self.assert_malformed("[1]\n", "not a JSON object")
        self.assert_malformed({"figure": "decode"}, "lacks ceiling, unit")
        self.assert_malformed(ROW | {"ratio": "0.9"}, "ratio is '0.9', want a number")
        self.assert_malformed(ROW | {"ratio": True}, "ratio is True, want a number")
        self.assert_malformed(ROW | {"ratio": float("nan")}, "ratio is nan, want a finite number")
        self.assert_malformed(ROW | {"ratios": 1}, "unknown field ratios")
        self.assert_malformed(ROW | {"wanted": 1}, "only one of wanted and bound")
        self.assert_malformed(ROW | {"wanted": 1, "bound": "above"}, "bound is 'above'")
        self.assert_malformed(POINT | {"y": None}, "y is None")
        self.assert_malformed({"curve": "only a title"}, "lacks series")
        self.assert_malformed({"not_measured": "link"}, "lacks reason")


class VerdictTest(unittest.TestCase):
    def test_a_ratio_at_the_bound_is_a_hit_and_beyond_it_a_miss(self):
        def verdict(ratio, **more):
            return results.verdict(ROW | {"ratio": ratio} | more)
        self.assertEqual(verdict(0.9), "")
        self.assertEqual(verdict(0.9, wanted=0.9, bound="at least"), "hit")
        self.assertEqual(verdict(0.89, wanted=0.9, bound="at least"), "MISS")
        self.assertEqual(verdict(1.2, wanted=1.2, bound="at most"), "hit")
        self.assertEqual(verdict(1.21, wanted=1.2, bound="at most"), "MISS")

    def test_a_ratio_above_its_valid_range_means_a_bad_ceiling(self):
        row = ROW | {"wanted": 0.6, "bound": "at least", "valid_up_to": 1}
        self.assertEqual(results.verdict(row | {"ratio": 1.0}), "hit")
        self.assertEqual(results.verdict(row | {"ratio": 1.01}), "BAD CEILING")


class NumberTest(unittest.TestCase):
    def test_numbers_show_three_or_more_significant_digits(self):
        for value, text in ((0, "0"), (0.012345, "0.0123"), (1, "1.00"), (12.34, "12.3"),
                            (1234.5, "1,234"), (-2.5, "-2.50")):
            self.assertEqual(results.number(value), text)


class TableTest(TempDirTest):
    def test_prints_and_writes_what_was_measured(self):
        path = self.write(
            ROW | {"wanted": 0.85, "bound": "at least", "cpu_seconds_per_unit": 0.00075,
                   "peak_bytes": 250e6},
            ROW | {"figure": "wire", "unit": "GB/s", "wanted": 0.95, "bound": "at least",
                   "cpu_seconds_per_unit": 0.42},
            POINT, POINT | {"x": 2, "y": 19.0})
        versions = self.write({"simd_target": "AVX2"}, name="versions.json")
        out = self.folder / "out"
        done = self.run_script("table.py", path, out, "--versions", versions)
        self.assertEqual(done.returncode, 0, done.stderr)
        decode, wire = [line for line in done.stdout.splitlines()
                        if line.startswith(("| decode", "| wire"))]
        cells = [cell.strip() for cell in decode.strip("|").split("|")]
        self.assertEqual(cells, ["decode", "bare", "img/s", "900", "1,000", "0.900", "0.800",
                                 "0.950", "at least 0.85", "hit", "0.750 / 1,000 img", "250"])
        self.assertIn("MISS", wire)
        self.assertIn("0.420 / GB", wire)
        self.assertIn("1 of 2 wanted ratios reached.", done.stdout)
        self.assertIn("MISS: wire, against bare: 0.900, wanted at least 0.95", done.stdout)
        self.assertNotIn("too few", done.stdout)

        written = json.loads((out / "table.json").read_text(encoding="utf-8"))
        self.assertEqual([row["verdict"] for row in written["rows"]], ["hit", "MISS"])
        self.assertEqual(written["machine"]["simd_target"], "AVX2")
        for fact in ("cpu", "cores", "kernel", "revision", "dirty"):
            self.assertIn(fact, written["machine"])
        self.assertEqual(len(written["points"]), 2)
        self.assertTrue((out / "img-s-by-clients.svg").exists())

    def test_what_could_not_be_measured_is_said(self):
        done = self.run_script("table.py", self.write(ROW, NOT_MEASURED), self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("NOT MEASURED: link: needs root", done.stdout)
        written = json.loads((self.folder / "table.json").read_text(encoding="utf-8"))
        self.assertEqual(written["not_measured"], [NOT_MEASURED])

    def test_few_rounds_claim_nothing(self):
        done = self.run_script("table.py", self.write(ROW | {"rounds": 3}), self.folder)
        self.assertIn("3 rounds: too few to claim a figure", done.stdout)

    def test_invalid_input_ends_the_script_with_an_error_message(self):
        for path, message in ((self.write("nonsense\n", name="a"), "a, line 1: Expecting value"),
                              (self.write(ROW, ROW, name="b"), "'decode' against 'bare' appears"),
                              (self.folder / "absent", "No such file")):
            done = self.run_script("table.py", path, self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^table.py: .*" + message)

    def test_no_rows_is_said(self):
        done = self.run_script("table.py", self.write(POINT), self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no rows", done.stdout)

    def test_columns_are_aligned(self):
        lines = results.aligned(["a", "n"], [["x", "1.0"], ["longer", "10.0"]]).splitlines()
        self.assertEqual(lines, ["| a      |    n |", "| ------ | ---: |", "| x      |  1.0 |",
                                 "| longer | 10.0 |"])


class CompareTest(TempDirTest):
    def compare(self, rows_a, rows_b):
        return self.run_script("compare.py", self.write(*rows_a, name="a"), "old",
                               self.write(*rows_b, name="b"), "new")

    def test_ratios_are_formed_run_by_run(self):
        def runs(*values):
            return [ROW | {"figure_value": value, "ratio": value / 1000} for value in values]
        done = self.compare(runs(100, 200, 400), runs(110, 240, 400))
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("|").split("|")]
        self.assertEqual(cells, ["decode", "bare", "img/s", "200", "240", "1.100", "1.000", "1.200",
                                 "1.100", "3"])

    def test_figures_in_only_one_file_are_listed(self):
        done = self.compare([ROW, ROW | {"figure": "gone"}], [ROW, ROW | {"figure": "new one"}])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "only in old: gone, against bare\n"
                                      "only in new: new one, against bare\n")

    def test_results_that_cannot_be_compared_are_an_error(self):
        for rows_b, message in (([ROW | {"figure": "other"}], "no figure in common"),
                                ([ROW, ROW], "1 runs of A and 2 of B"),
                                ([ROW | {"unit": "GB/s"}], "in img/s in A and GB/s in B")):
            done = self.compare([ROW], rows_b)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)


class PlotTest(unittest.TestCase):
    def draw(self, *points):
        return xml.etree.ElementTree.fromstring(plot.svg(list(points)))

    def texts(self, root):
        return ["".join(text.itertext()) for text in root.iter(SVG + "text")]

    def test_shows_title_labels_ticks_and_legend(self):
        root = self.draw(POINT, POINT | {"x": 16, "y": 95.0}, POINT | {"series": "other"})
        texts = self.texts(root)
        for text in ("img/s <by> clients", "clients", "img/s", "one & all", "other", "0", "100",
                     "1", "16"):
            self.assertIn(text, texts)
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 3)

    def test_svg_has_a_dark_theme_and_no_external_references(self):
        text = plot.svg([POINT])
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertNotIn("href", text)
        self.assertEqual(text.count("http"), 1)  # The XML namespace.

    def test_points_lie_on_a_log_x_axis_and_a_linear_y_axis(self):
        root = self.draw(*[POINT | {"x": x, "y": 10.0 * x} for x in (1, 2, 4, 8)])
        places = [(float(circle.get("cx")), float(circle.get("cy")))
                  for circle in root.iter(SVG + "circle")]
        gaps = [b[0] - a[0] for a, b in zip(places, places[1:])]
        for gap in gaps:  # Values double, so gaps are even on a logarithmic axis.
            self.assertAlmostEqual(gap, gaps[0], delta=0.2)
        self.assertAlmostEqual(places[2][1] - places[3][1], 2 * (places[1][1] - places[2][1]),
                               delta=0.3)  # More is higher up. The y axis is linear.

    def test_points_stay_inside_the_drawing(self):
        root = self.draw(*[POINT | {"x": x, "y": y} for x, y in ((0, 0), (3, 7.3), (5, 99.9))])
        _, _, width, height = map(float, root.get("viewBox").split())
        for circle in root.iter(SVG + "circle"):
            self.assertTrue(0 < float(circle.get("cx")) < width)
            self.assertTrue(0 < float(circle.get("cy")) < height)

    def test_bars_are_as_long_as_their_values(self):
        root = xml.etree.ElementTree.fromstring(
            plot.bars("who is <fast>", [("ours", 1000), ("one & all", 250)]))
        for text in ("who is <fast>", "ours", "one & all", "1,000", "250"):
            self.assertIn(text, self.texts(root))
        lengths = [float(bar.get("width")) for bar in root.iter(SVG + "rect")
                   if bar.get("class") == "bar"]
        self.assertAlmostEqual(lengths[0], 4 * lengths[1], delta=0.3)
        self.assertLess(lengths[0], float(root.get("viewBox").split()[2]))

    def test_axis_ticks_start_at_zero_and_reach_the_largest_value(self):
        for top in (0, 0.003, 1, 1.01, 6, 9.99, 10, 1234):
            ticks = plot.nice_ticks(top)
            self.assertEqual(ticks[0], 0)
            self.assertGreaterEqual(ticks[-1], top)
            self.assertTrue(3 <= len(ticks) <= 8, (top, ticks))


if __name__ == "__main__":
    unittest.main()
