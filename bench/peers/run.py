"""Runs Systole and the peers in turns on the same shards and the same two cores (see run.sh)."""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "bench"))

import results  # noqa: E402
import sides  # noqa: E402

CORES = 2
# The cache for outputs with `cache`. It is larger than any corpus.
CACHE_BYTES = 4 << 30
# In seconds. A side's program that takes longer counts as failed.
TIMEOUT = 300


@dataclasses.dataclass(frozen=True)
class Amount:
    """How much one round measures. It also decides the size of the corpus (bench/corpora.h)."""
    name: str
    rounds: int
    steps: int
    warm_up: int  # tf.data's AUTOTUNE takes some seconds to settle.
    wire_steps: int


FULL = Amount("full", rounds=5, steps=32, warm_up=16, wire_steps=64)
QUICK = Amount("quick", rounds=3, steps=24, warm_up=12, wire_steps=40)
SMOKE = Amount("smoke", rounds=1, steps=2, warm_up=1, wire_steps=2)

SPEC = """\
dataset: "photographs"
seed: 7
shuffle {{ mode: GLOBAL }}
global_batch: {batch}
num_cores: {cores}
outputs {{
  name: "image"
  feature: "image"
  transforms {{ decode_jpeg {{}} }}
  transforms {{ random_resized_crop {{ height: 224 width: 224 }} }}
  transforms {{ random_flip {{}} }}
  {finish}
  dtype: {dtype}
}}
outputs {{ name: "label" feature: "label" dtype: INT64 }}
"""
DTYPES = {"f32": "FLOAT32", "bf16": "BFLOAT16", "u8": "UINT8"}
DTYPE_BYTES = {"f32": 4, "bf16": 2, "u8": 1}


class Failed(Exception):
    """A side did not run; the message says why."""


class Environments:
    """One virtual environment for each requirements file, because the files conflict."""

    def __init__(self, folder):
        self._folder = folder
        self._why_not = {}

    def python(self, name):
        """Returns the interpreter of the environment `name`, and first installs the environment if it
        is missing. Raises Failed if this is not possible."""
        if name not in self._why_not:
            self._why_not[name] = self._install(name)
        if self._why_not[name]:
            raise Failed(f"not installed: {self._why_not[name]}")
        return self._folder / name / "bin" / "python"

    def _install(self, name):
        requirements = HERE / f"requirements-{name}.txt"
        digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
        stamp = self._folder / name / "installed"
        if stamp.exists() and stamp.read_text() == digest:
            return ""
        print(f"installing {requirements.name} into {self._folder / name}", flush=True)
        for command in ([sys.executable, "-m", "venv", self._folder / name],
                        [self._folder / name / "bin" / "python", "-m", "pip", "install",
                         "--quiet", "--requirement", requirements]):
            done = subprocess.run(command, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                return last_line(done.stderr)
        stamp.write_text(digest)
        return ""


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it printed no message"


class Runner:
    """Runs a side once, and returns what its program printed."""

    def __init__(self, build, environments, amount, work):
        self._build = build
        self._environments = environments
        self._amount = amount
        self._work = work
        self._shards = {}  # Name of a corpus -> a glob.
        self.commands = {}  # Name of a side -> the command run last.

    def shards(self, corpus):
        if corpus not in self._shards:
            made = subprocess.run([self._build / "bench" / "make_corpus", corpus], text=True,
                                  stdout=subprocess.PIPE, check=True,
                                  env=os.environ | {"SYSTOLE_BENCH": self._amount.name})
            folder = pathlib.Path(made.stdout.split()[0]).parent
            self._shards[corpus] = str(folder / "*.tfrecord")
        return self._shards[corpus]

    def run(self, side):
        steps = self._amount.wire_steps if side.wire else self._amount.steps
        window = ["--steps", str(steps), "--warm-up", str(self._amount.warm_up)]
        ready = side.command == sides.READY or "--server" in side.command
        if side.environment is not None and not ready:
            return self._peer(side, window)
        if side.environment is None:
            window += ["--spec", self._spec(side)]
        timer = self._build / "bench" / "feed_timer"
        if side.command == sides.IN_PROCESS:
            return self._program(side, [timer, "in-process", *window,
                                        "--threads", str(side.threads),
                                        "--cache-bytes", str(CACHE_BYTES),
                                        self.shards(side.corpus)])
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            listen = f"unix:{folder / 'socket'}" if side.unix else "127.0.0.1:0"
            if ready:
                return self._ready(side, window, listen)
            return self._served(side, window, listen, folder / "port")

    def _ready(self, side, window, listen):
        command = [self._build / "bench" / "feed_timer", "ready-server", "--batch", str(side.batch),
                   "--cores", str(side.cores), "--listen", listen]
        with subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as server:
            try:
                return self._client(side, window, server, server.stdout.readline().strip())
            finally:
                server.stdin.close()

    def _served(self, side, window, listen, port):
        command = [self._build / "systole-server", "--listen", listen, "--threads",
                   str(side.threads), "--dataset", f"photographs={self.shards(side.corpus)}",
                   "--port-file", port]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                for line in server.stderr:
                    if "serving on" in line:
                        address = listen if side.unix else f"127.0.0.1:{port.read_text().strip()}"
                        return self._client(side, window, server, address)
                raise Failed("systole-server ended before it served")
            finally:
                server.terminate()

    def _client(self, side, window, server, address):
        if side.environment is not None:
            return self._python_client(side, window, address)
        timer = self._build / "bench" / "feed_timer"
        sample = self._program(side, [timer, "client", "--server", address,
                                      "--server-pid", str(server.pid), *window])
        check_way(side, sample)
        return sample

    def _python_client(self, side, window, address):
        python = self._environments.python(side.environment)
        sample = self._program(side, [
            python, *side.command, address, "--cores", str(side.cores),
            "--shards", self.shards(side.corpus), "--batch", str(side.batch), *window,
            "--dtype", side.dtype, "--threads", "1"])
        check_way(side, sample)
        return sample

    def _peer(self, side, window):
        python = self._environments.python(side.environment)
        return self._program(side, [
            python, *side.command, "--shards", self.shards(side.corpus),
            "--batch", str(side.batch), *window, "--dtype", side.dtype, "--threads", str(side.threads), "--work", self._work])

    def _program(self, side, command):
        self.commands[side.name] = shlex.join(str(word) for word in command)
        try:
            done = subprocess.run(command, cwd=HERE, text=True, capture_output=True,
                                  timeout=TIMEOUT, check=False,
                                  env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
        except subprocess.TimeoutExpired as error:
            raise Failed(f"no result within {TIMEOUT} s") from error
        if done.returncode != 0 or not done.stdout.strip():
            raise Failed(f"failed: {last_line(done.stderr)}")
        return json.loads(last_line(done.stdout))

    def _spec(self, side):
        path = self._work / f"{re.sub('[^a-z0-9]+', '-', side.name.lower())}.textproto"
        if side.pipeline:
            with path.open("w", encoding="utf-8") as file:
                subprocess.run([self._build / "bench" / "breadth_spec", side.pipeline],
                               stdout=file, check=True)
            return str(path)
        finish = []
        if side.compact:
            finish.append("transforms { round_to_uint8 {} }")
        if side.dtype != "u8":
            finish.append("transforms { normalize { mean: 127.5 stddev: 63.75 } }")
        path.write_text(SPEC.format(batch=side.batch, cores=side.cores, dtype=DTYPES[side.dtype],
                                    finish="\n  ".join(finish)))
        return str(path)


def rate(sample, side):
    """Returns images per second or, if `side.wire`, bytes per second."""
    return (sample["bytes"] if side.wire else sample["images"]) / sample["seconds"]


def unit(side):
    if side.wire:
        return "GB/s", 1e9
    return ("records/s" if side.pipeline in sides.LISTS else "img/s"), 1.0


def check_way(side, sample):
    """Checks that our batches came by the transport and in the form that the side's name says. If
    one of them is not possible, a client takes another one and reports no error."""
    found = {"shared memory": sample["shared_bytes"] > 0, "uint8 pixels": sample["compact_steps"] > 0}
    want = {"shared memory": side.unix, "uint8 pixels": side.compact}
    if found != want:
        raise Failed(f"came by {found}, want {want}")


def dimensions(sample):
    """The dimensions of a batch, sorted, because sides order an image's dimensions differently."""
    return sorted(int(digits) for digits in re.findall(r"\d+", sample["shape"].split("[")[1]))


def check_sanity(side, sample, ours):
    """Checks number, size and distribution of the values. `ours`: a sample of our feed of the same
    pipeline, or None."""
    image_bytes = 224 * 224 * 3 * DTYPE_BYTES[side.dtype]
    want = sorted([side.batch, 224, 224, 3])
    if side.pipeline:
        if ours is None:
            return
        image_bytes = ours["bytes"] / ours["images"]
        want = dimensions(ours)
    if sample["bytes"] != sample["images"] * image_bytes:
        raise Failed(
            f"an image is {sample['bytes'] / sample['images']:g} bytes, want {image_bytes:g}")
    if not side.wire and dimensions(sample) != want:
        raise Failed(f"made {sample['shape']}, want the dimensions {want}")
    if side.wire or side.dtype == "u8" or ours is None:
        return
    # The pipelines of bench/breadth_rows.cc have a wider bound, because libraries change colours by
    # different rules: one adds where another multiplies.
    most = 0.25 if side.pipeline else 0.125
    if (abs(sample["mean"] - ours["mean"]) > most * ours["stddev"]
            or abs(sample["stddev"] / ours["stddev"] - 1) > most):
        raise Failed(f"mean {sample['mean']:.3f}, deviation {sample['stddev']:.3f}; ours "
                     f"{ours['mean']:.3f}, {ours['stddev']:.3f}")


def take_turns(runner, chosen, rounds):
    """Runs each side once a round, in rotating order. Returns name -> samples for sides that ran,
    and name -> the reason for sides that failed."""
    samples = {side.name: [] for side in chosen}
    failures = {}
    ours = {}  # Pipeline -> a sample.
    for number in range(rounds):
        at = number % len(chosen)
        for side in chosen[at:] + chosen[:at]:
            if side.name in failures:
                continue
            try:
                sample = runner.run(side)
                if side.environment is None and side.dtype == "f32":
                    ours.setdefault(side.pipeline, sample)
                check_sanity(side, sample, ours.get(side.pipeline))
            except Failed as failure:
                failures[side.name] = str(failure)
                print(f"{side.name}: {failure}", flush=True)
                continue
            samples[side.name].append(sample)
            name, size = unit(side)
            print(f"round {number + 1}  {side.name:52} {rate(sample, side) / size:9.2f} {name}",
                  flush=True)
    return {name: found for name, found in samples.items() if name not in failures}, failures


def row(figure, ceiling, unit_name, figures, ceilings, wanted, bound):
    """A line of the results, in the format that bench/rounds.cc writes."""
    ratios = [mine / other for mine, other in zip(figures, ceilings)]
    line = {"figure": figure, "ceiling": ceiling, "unit": unit_name,
            "figure_value": statistics.median(figures),
            "ceiling_value": statistics.median(ceilings),
            "ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios), "rounds": len(ratios)}
    if wanted is not None:
        line |= {"wanted": wanted, "bound": bound}
    return line


def cpu_per_1000(sample):
    return 1000 * sample["cpu_seconds"] / sample["images"]


def rows(samples):
    by_name = {side.name: side for side in (*sides.SIDES, *sides.BREADTH_SIDES)}
    found = []
    for figure, ceiling, wanted in (*sides.RATIOS, *sides.BREADTH_RATIOS):
        if not (samples.get(figure) and samples.get(ceiling)):
            continue
        side = by_name[figure]
        name, size = unit(side)
        line = row(figure, ceiling, name,
                   [rate(sample, side) / size for sample in samples[figure]],
                   [rate(sample, side) / size for sample in samples[ceiling]],
                   wanted, "at least")
        amount = "bytes" if side.wire else "images"
        line["cpu_seconds_per_unit"] = statistics.median(
            sample["cpu_seconds"] / sample[amount] * size for sample in samples[figure])
        line["peak_bytes"] = max(sample["peak_bytes"] for sample in samples[figure])
        found.append(line)
    peers = [name for name in sides.CPU_PEERS if samples.get(name)]
    if peers and samples.get(sides.CPU_FIGURE):
        cost = {name: [cpu_per_1000(sample) for sample in samples[name]]
                for name in (*peers, sides.CPU_FIGURE)}
        best = min(peers, key=lambda name: statistics.median(cost[name]))
        found.append(row(f"CPU time of {sides.CPU_FIGURE}", f"the best peer's: {best}",
                         "CPU-s/1,000 img", cost[sides.CPU_FIGURE], cost[best],
                         sides.CPU_AT_MOST, "at most"))
    return found


def settings_of(side, sample):
    """The settings of a side, for the table. A peer's program reports its settings itself."""
    ours = "ready batches" if side.wire else f"{side.threads} threads"
    if side.compact:
        ours += ", round_to_uint8"
    return sample.get("settings", ours)


def sides_table(chosen, samples, failures):
    lines = []
    for side in chosen:
        if side.name in failures:
            lines.append([side.name, "", "", "", "", "", "", failures[side.name]])
            continue
        found = samples[side.name]
        name, size = unit(side)
        rates = [rate(sample, side) / size for sample in found]
        lines.append([side.name, name, *map(results.number, (
            statistics.median(rates), min(rates), max(rates),
            statistics.median(map(cpu_per_1000, found)),
            max(sample["peak_bytes"] for sample in found) / 1e6)),
            f"{settings_of(side, found[0])}; version {found[0]['version']}"])
    return results.aligned(["side", "unit", "median", "min", "max", "CPU-s / 1,000 img", "peak MB",
                            "settings, version"], lines)


def variants(chosen):
    """Each side once for each of its thread settings."""
    return [dataclasses.replace(side, name=f"{side.name}, --threads {threads}", threads=threads)
            for side in chosen for threads in side.tried]


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", dest="amount", action="store_const", const=QUICK, default=FULL)
    parser.add_argument("--smoke", dest="amount", action="store_const", const=SMOKE)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--breadth", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--env", type=pathlib.Path, default=ROOT / "build" / "peers" / "env")
    options = parser.parse_args()
    chosen = [side for side in (sides.BREADTH_SIDES if options.breadth else sides.SIDES)
              if not options.only or any(text in side.name for text in options.only)]
    options.chosen = variants(chosen) if options.tune else chosen
    if not options.chosen:
        parser.error(f"no side is named like {options.only}")
    return options


def main():
    options = parse()
    # All threads and processes that are started from now on run on these cores, too.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    work = ROOT / "build" / "peers" / "work"
    work.mkdir(parents=True, exist_ok=True)
    environments = Environments(options.env.resolve())
    for name in sorted({side.environment for side in options.chosen if side.environment}):
        try:
            environments.python(name)  # Installs the peer before the first round.
        except Failed as failure:
            print(f"{name}: {failure}", flush=True)
    runner = Runner(options.build.resolve(), environments, options.amount, work)
    samples, failures = take_turns(runner, options.chosen, options.amount.rounds)

    shards = " ".join(runner.shards(corpus)
                      for corpus in sorted({side.corpus for side in options.chosen}))
    print(f"\n{options.amount.rounds} rounds of {options.amount.steps} batches; "
          f"{len(os.sched_getaffinity(0))} cores; {shards}\n")
    print(sides_table(options.chosen, samples, failures) + "\n")
    for name, command in runner.commands.items():
        print(f"{name}:\n  {command}")
    print(flush=True)
    if not options.tune:
        out = ROOT / "build" / "peers" / (
            options.amount.name + "-breadth" * options.breadth)
        out.mkdir(exist_ok=True)
        lines = out / "results.jsonl"
        lines.write_text("".join(json.dumps(line) + "\n" for line in rows(samples)),
                         encoding="utf-8")
        subprocess.run([sys.executable, ROOT / "bench" / "table.py", lines, out], check=True)
        print(f"results: {out}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
