"""Tests of bench/peers without the peers: python3 tests/bench/peers_test.py"""

import ast
import pathlib
import re
import struct
import sys
import tempfile
import unittest

PEERS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PEERS))

import picture  # noqa: E402
import records  # noqa: E402
import run  # noqa: E402
import sides  # noqa: E402

OURS, PEER, THRIFTY = "systole in-process, f32", "tf.data, f32", "DALI CPU, f32"


def sample(images=1280, seconds=1.0, cpu_seconds=1.28, **more):
    return {"images": images, "bytes": images * 602112, "seconds": seconds,
            "cpu_seconds": cpu_seconds, "peak_bytes": 1e6, "version": "1",
            "shape": "float32[128, 224, 224, 3]", "mean": 0.0, "stddev": 0.8} | more


def field(number, payload):
    """A protobuf field of bytes, shorter than 128."""
    return bytes([number << 3 | 2, len(payload)]) + payload


def example(jpeg, label):
    """A tf.train.Example with the features `image` and `label`. `label` is a packed list."""
    image = field(1, field(1, jpeg))
    packed = field(3, field(1, label))
    return field(1, field(1, field(1, b"image") + field(2, image))
                 + field(1, field(1, b"label") + field(2, packed)))


class FakeRunner:
    """Gives each side's samples in order. A sample that is an exception is raised."""

    def __init__(self, **found):
        self._found = {name: iter(samples) for name, samples in found.items()}
        self.asked = []

    def run(self, side):
        self.asked.append(side.name)
        next_one = next(self._found[side.name])
        if isinstance(next_one, Exception):
            raise next_one
        return next_one


def peer(name):
    return sides.Side(name, "environment", ("program.py",))


class PictureTest(unittest.TestCase):
    def test_shows_systole_and_every_peer_of_the_readme_table(self):
        readme = PEERS.parent / "README.md"
        shown = picture.in_process(readme.read_text(encoding="utf-8"))
        self.assertEqual({name for name, _ in shown},
                         {"Systole", "tf.data", "DALI on CPU", "Grain + OpenCV",
                          "DataLoader + torchvision", "DataLoader + Pillow"})
        self.assertTrue(all(0 < rate <= shown[0][1] for _, rate in shown))


class ProgramsTest(unittest.TestCase):
    def test_every_program_compiles(self):
        for path in sorted(PEERS.glob("*.py")):
            with self.subTest(path.name):
                compile(path.read_text(encoding="utf-8"), str(path), "exec")

    def test_every_side_names_a_program_and_pinned_requirements(self):
        for side in (*sides.SIDES, *sides.BREADTH_SIDES):
            if side.environment is None:
                continue
            with self.subTest(side.name):
                self.assertTrue((PEERS / side.command[0]).exists())
                lines = (PEERS / f"requirements-{side.environment}.txt").read_text().splitlines()
                self.assertTrue(lines)
                # Our own package comes from this tree, so it needs no version.
                foreign = [line for line in lines if not line.startswith("./client/python ")]
                self.assertEqual([line for line in foreign if "==" not in line], [])

    def test_ratios_compare_existing_sides_with_equal_settings(self):
        every_side = (*sides.SIDES, *sides.BREADTH_SIDES)
        by_name = {side.name: side for side in every_side}
        self.assertEqual(len(by_name), len(every_side))
        for figure, ceiling, _ in (*sides.RATIOS, *sides.BREADTH_RATIOS):
            with self.subTest(f"{figure} against {ceiling}"):
                for field in ("wire", "dtype", "pipeline", "corpus", "batch"):
                    self.assertEqual(getattr(by_name[figure], field),
                                     getattr(by_name[ceiling], field))
        for name in (sides.CPU_FIGURE, *sides.CPU_PEERS):
            self.assertEqual(by_name[name].dtype, "f32")

    def test_systole_side_names_state_transport_and_compact_format(self):
        for side in sides.SIDES:
            if side.command not in (sides.SERVED, sides.READY):
                continue
            with self.subTest(side.name):
                self.assertEqual("unix:" in side.name, side.unix)
                self.assertEqual("TCP" in side.name, not side.unix)
                self.assertEqual("compact" in side.name, side.compact)


def keys(program, *tables):
    """The keys of the dictionaries `tables` in a program that cannot be imported here."""
    found = set()
    for statement in ast.parse((PEERS / program).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id in tables:
            found |= {ast.literal_eval(key) for key in statement.value.keys}
    return found


class BreadthTest(unittest.TestCase):
    def test_pipelines_are_those_of_the_cpp_breadth_benchmark(self):
        rows = (PEERS.parent / "breadth_rows.cc").read_text(encoding="utf-8")
        names = re.findall(r'\.name = "(\w+)"', rows)
        self.assertGreater(len(names), 10)
        self.assertEqual(sorted(names), sorted(pipeline.name for pipeline in sides.PIPELINES))

    def test_a_peer_takes_part_in_the_pipelines_that_its_program_has(self):
        programs = {"tf.data": keys("tf_breadth.py", "IMAGES", "LISTS"),
                    "DataLoader + torchvision": keys("torch_breadth.py", "IMAGES"),
                    "DALI CPU": keys("dali_breadth.py", "IMAGES", "LISTS")}
        for peer, names in programs.items():
            with self.subTest(peer):
                self.assertEqual(names, {pipeline.name for pipeline in sides.PIPELINES
                                         if peer in pipeline.peers})


class RecordsTest(unittest.TestCase):
    def test_finds_each_jpeg_and_label(self):
        with tempfile.TemporaryDirectory() as folder:
            shard = pathlib.Path(folder) / "a.tfrecord"
            payloads = [example(b"first", b"\x07"), example(b"second!", b"\xac\x02")]
            shard.write_bytes(b"".join(
                struct.pack("<QI", len(payload), 0) + payload + struct.pack("<I", 0)
                for payload in payloads))
            data = shard.read_bytes()
            found = [(data[offset:offset + size], label)
                     for offset, size, label in records.images(shard)]
        self.assertEqual(found, [(b"first", 7), (b"second!", 300)])


class SanityTest(unittest.TestCase):
    def test_a_channels_first_shape_is_accepted(self):
        run.check_sanity(peer("p"), sample(shape="float32[128, 3, 224, 224]"), sample())

    def test_a_different_image_size_is_refused(self):
        with self.assertRaisesRegex(run.Failed, "112"):
            run.check_sanity(peer("p"), sample(shape="float32[128, 112, 112, 3]"), sample())

    def test_a_different_mean_or_stddev_is_refused(self):
        for other in ({"mean": 0.3}, {"stddev": 1.2}):
            with self.subTest(other), self.assertRaisesRegex(run.Failed, "ours 0.000, 0.800"):
                run.check_sanity(peer("p"), sample(**other), sample())


    def test_a_peer_is_checked_against_systole_on_the_same_pipeline(self):
        png = sides.Side("p", "environment", ("program.py",), pipeline="png", batch=2)
        ours = sample(images=2, shape="float32[2, 32, 32, 3]") | {"bytes": 2 * 12288}
        run.check_sanity(png, ours | {"shape": "float32[2, 3, 32, 32]"}, ours)
        run.check_sanity(png, ours, None)
        for other, message in (({"shape": "float32[2, 3, 32, 33]"}, "33"),
                               ({"bytes": 12288}, "6144 bytes, want 12288"),
                               ({"mean": 0.3}, "ours 0.000")):
            with self.subTest(other), self.assertRaisesRegex(run.Failed, message):
                run.check_sanity(png, ours | other, ours)

    def test_a_wrong_number_of_bytes_per_image_is_refused(self):
        bf16 = sides.Side("p", "environment", ("program.py",), dtype="bf16", wire=True)
        with self.assertRaisesRegex(run.Failed, "602112 bytes, want 301056"):
            run.check_sanity(bf16, sample(), None)


class WayTest(unittest.TestCase):
    """Each side names the way by which its batches come, such as shared memory. If this way fails,
    the client silently takes another way. run.check_way() refuses samples of another way."""

    def test_samples_delivered_the_stated_way_are_accepted(self):
        shared = sides.Side("s", None, sides.SERVED, unix=True)
        run.check_way(shared, sample(shared_bytes=1, compact_steps=0))
        compact = sides.Side("s", None, sides.SERVED, compact=True)
        run.check_way(compact, sample(shared_bytes=0, compact_steps=1))

    def test_samples_delivered_another_way_are_refused(self):
        shared = sides.Side("s", None, sides.SERVED, unix=True)
        tcp = sides.Side("s", None, sides.SERVED)
        for side, shared_bytes, compact_steps in ((shared, 0, 0), (tcp, 1, 0), (tcp, 0, 1)):
            with self.subTest(side), self.assertRaisesRegex(run.Failed, "came by"):
                run.check_way(side, sample(shared_bytes=shared_bytes, compact_steps=compact_steps))


class TurnsTest(unittest.TestCase):
    def test_the_order_rotates(self):
        runner = FakeRunner(a=[sample()] * 2, b=[sample()] * 2)
        run.take_turns(runner, [peer("a"), peer("b")], rounds=2)
        self.assertEqual(runner.asked, ["a", "b", "b", "a"])

    def test_a_failed_side_is_reported_and_left_out(self):
        runner = FakeRunner(a=[run.Failed("not installed: no wheel")], b=[sample()] * 2)
        samples, failures = run.take_turns(runner, [peer("a"), peer("b")], rounds=2)
        self.assertEqual(failures, {"a": "not installed: no wheel"})
        self.assertEqual([len(found) for found in samples.values()], [2])
        self.assertIn("no wheel", run.sides_table([peer("a"), peer("b")], samples, failures))


class RowsTest(unittest.TestCase):
    def test_the_ratio_is_formed_within_each_round(self):
        # The machine is half as fast in the second round, for both sides.
        row = run.rows({OURS: [sample(seconds=1), sample(seconds=2), sample(seconds=1)],
                        PEER: [sample(seconds=3), sample(seconds=6), sample(seconds=4)]})[0]
        self.assertEqual((row["figure"], row["ceiling"]), (OURS, PEER))
        self.assertEqual((row["ratio"], row["ratio_min"], row["ratio_max"]), (3, 3, 4))
        self.assertEqual((row["wanted"], row["bound"], row["rounds"]), (2.5, "at least", 3))

    def test_cpu_time_is_compared_with_the_thriftiest_peer(self):
        row = run.rows({OURS: [sample(cpu_seconds=1)], PEER: [sample(cpu_seconds=4)],
                        THRIFTY: [sample(cpu_seconds=2)]})[-1]
        self.assertIn(THRIFTY, row["ceiling"])
        self.assertEqual((row["ratio"], row["bound"]), (0.5, "at most"))

    def test_no_row_is_made_without_a_measured_peer(self):
        self.assertEqual(run.rows({OURS: [sample()]}), [])


if __name__ == "__main__":
    unittest.main()
