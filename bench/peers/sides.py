"""The sides that take part, their settings, and the ratios of the table."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Side:
    name: str
    # Names the peer's requirements-ENVIRONMENT.txt and its virtual environment. None for Systole in
    # C++.
    environment: str | None
    # The program and its options; run.py adds those that all programs take (measuring.py).
    command: tuple[str, ...]
    dtype: str = "f32"
    # For --threads: the best of `tried` on two cores (run.sh --tune). 0: the peer chooses a number.
    threads: int = 0
    tried: tuple[int, ...] = ()
    # True: the side sends ready tensors, so there are no pixels to compare.
    wire: bool = False
    # For Systole only. True: a Unix socket, so that client and server share memory. False: TCP.
    unix: bool = False
    # For Systole only. True: pixels are rounded and sent as uint8, and are finished in the client.
    compact: bool = False
    # For Systole only: how many slices a batch is cut into.
    cores: int = 1
    # A pipeline of bench/breadth_rows.cc. Empty: the pipeline of README.md.
    pipeline: str = ""
    corpus: str = "photographs"
    batch: int = 128


# The commands of sides that run Systole in C++: words for which run.py chooses the programs.
# IN_PROCESS and SERVED get two threads, because there are two cores.
IN_PROCESS = ("in-process",)
SERVED = ("served",)
READY = ("ready",)

SIDES = (
    Side("systole in-process, f32", None, IN_PROCESS, threads=2),
    Side("systole in-process, bf16", None, IN_PROCESS, dtype="bf16", threads=2),
    Side("systole from Python, in-process, f32", "systole", ("systole_python.py",), threads=2),
    Side("systole from Python, in-process, bf16", "systole", ("systole_python.py",), dtype="bf16",
         threads=2),
    Side("tf.data, f32", "tensorflow", ("tf_data.py",), tried=(0, 2, 4)),
    Side("tf.data, bf16", "tensorflow", ("tf_data.py",), dtype="bf16", tried=(0, 2, 4)),
    Side("DALI CPU, f32", "dali", ("dali_cpu.py",), threads=4, tried=(2, 3, 4, 6)),
    Side("Grain + OpenCV, f32", "grain", ("grain_opencv.py",), threads=4, tried=(2, 4, 8, 16)),
    Side("DataLoader + torchvision, f32", "torch",
         ("torch_loader.py", "--decoder", "torchvision"), threads=3, tried=(1, 2, 3, 4)),
    Side("DataLoader + Pillow, f32", "torch",
         ("torch_loader.py", "--decoder", "pillow"), threads=2, tried=(1, 2, 3, 4)),
    Side("systole server + client, TCP, f32", None, SERVED, threads=2),
    Side("systole server + client, unix:, f32", None, SERVED, threads=2, unix=True),
    Side("systole server + client, TCP compact, f32", None, SERVED, threads=2, compact=True),
    Side("systole server + client, TCP, bf16", None, SERVED, dtype="bf16", threads=2),
    Side("systole server + client, unix:, bf16", None, SERVED, dtype="bf16", threads=2, unix=True),
    Side("systole server + client, TCP compact, bf16", None, SERVED, dtype="bf16", threads=2,
         compact=True),
    Side("systole server + client, TCP, u8", None, SERVED, dtype="u8", threads=2),
    Side("tf.data service, f32", "tensorflow", ("tf_data_service.py",)),
    Side("tf.data service, bf16", "tensorflow", ("tf_data_service.py",), dtype="bf16"),
    Side("tf.data service, uint8 wire, f32", "tensorflow", ("tf_data_service.py", "--compact")),
    Side("tf.data service, uint8 wire, bf16", "tensorflow", ("tf_data_service.py", "--compact"),
         dtype="bf16"),
    # Each batch is cut into slices for eight cores, as for a host with eight accelerator cores.
    Side("systole wire alone, TCP", None, READY, dtype="bf16", wire=True, cores=8),
    Side("systole wire alone, unix:", None, READY, dtype="bf16", wire=True, unix=True, cores=8),
    Side("systole wire alone, TCP, a batch in one slice", None, READY, dtype="bf16", wire=True),
    Side("systole wire alone, unix:, a batch in one slice", None, READY, dtype="bf16", wire=True,
         unix=True),
    Side("systole from Python, wire alone, TCP", "systole", ("systole_python.py", "--server"),
         dtype="bf16", wire=True, cores=8),
    Side("systole from Python, wire alone, unix:", "systole", ("systole_python.py", "--server"),
         dtype="bf16", wire=True, unix=True, cores=8),
    # Of 4, 8, 16, 32 and 128 images a record batch, 32 were the fastest.
    Side("Arrow Flight", "flight", ("arrow_flight.py", "--rows", "32"), dtype="bf16", wire=True),
    Side("Arrow Flight, into the caller's memory", "flight",
         ("arrow_flight.py", "--rows", "32", "--into-memory"), dtype="bf16", wire=True),
    Side("Arrow Flight, a batch in one record batch", "flight",
         ("arrow_flight.py", "--rows", "128"), dtype="bf16", wire=True),
    Side("Arrow Flight, Unix socket, into the caller's memory", "flight",
         ("arrow_flight.py", "--rows", "32", "--into-memory", "--unix"), dtype="bf16", wire=True),
    Side("tf.data service, ready tensors", "tensorflow", ("tf_data_service.py", "--ready"),
         dtype="bf16", wire=True),
)


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A pipeline of bench/breadth_rows.cc, its corpus and batch, and the peers that have it."""
    name: str
    peers: tuple[str, ...]
    corpus: str = "photographs"
    batch: int = 128


_TF, _TORCH, _DALI = "tf.data", "DataLoader + torchvision", "DALI CPU"
# Peer -> its environment, its program, and --threads.
_BREADTH_PEERS = {
    _TF: ("tensorflow", "tf_breadth.py", 0),
    _TORCH: ("torch", "torch_breadth.py", 2),
    _DALI: ("dali", "dali_breadth.py", 4),
}

PIPELINES = (
    Pipeline("crop", (_TF, _DALI)),
    Pipeline("crop_antialias", (_TF, _TORCH, _DALI)),
    Pipeline("crop_tpu_resnet", (_TF,)),
    Pipeline("center_crop", (_TF, _DALI)),
    Pipeline("center_crop_antialias", (_TF, _TORCH, _DALI)),
    Pipeline("resize", (_TF, _TORCH, _DALI)),
    Pipeline("resize_cached", (_TF,)),
    Pipeline("resize_with_pad", (_TF, _DALI)),
    Pipeline("resize_lanczos3", (_TF, _DALI)),
    Pipeline("standardize", (_TF, _DALI)),
    Pipeline("colours", (_TF, _TORCH, _DALI)),
    Pipeline("trivial_augment", (_TORCH, _DALI)),
    Pipeline("mix", (_TORCH,)),
    Pipeline("large", (_TF, _TORCH, _DALI), corpus="large-photographs", batch=8),
    Pipeline("png", (_TF, _TORCH, _DALI), corpus="pngs"),
    Pipeline("raw", (_TF, _TORCH, _DALI), corpus="tiny-images"),
    Pipeline("tokens", (_TF, _DALI), corpus="tokens", batch=1024),
    Pipeline("tables", (_TF, _DALI), corpus="tables", batch=1024),
)

# The pipelines whose examples are not images.
LISTS = ("tokens", "tables")


def _breadth_sides(pipeline):
    """Systole's side comes first, because the peers' values are compared with Systole's."""
    more = {"pipeline": pipeline.name, "corpus": pipeline.corpus, "batch": pipeline.batch}
    yield Side(f"systole in-process, {pipeline.name}", None, IN_PROCESS, threads=2, **more)
    for peer in pipeline.peers:
        environment, program, threads = _BREADTH_PEERS[peer]
        yield Side(f"{peer}, {pipeline.name}", environment,
                   (program, "--pipeline", pipeline.name), threads=threads, **more)


BREADTH_SIDES = tuple(side for pipeline in PIPELINES for side in _breadth_sides(pipeline))

# (figure, ceiling, ratio): the figure's rate should be at least `ratio` times the ceiling's rate.
# If `ratio` is None, any rate will do.
RATIOS = (
    ("systole in-process, f32", "tf.data, f32", 2.5),
    ("systole in-process, f32", "DALI CPU, f32", 2.5),
    ("systole in-process, f32", "Grain + OpenCV, f32", 2.5),
    ("systole in-process, f32", "DataLoader + torchvision, f32", 2.8),
    ("systole in-process, f32", "DataLoader + Pillow, f32", 4.0),
    ("systole in-process, bf16", "tf.data, bf16", None),
    ("systole from Python, in-process, f32", "systole in-process, f32", 0.97),
    ("systole from Python, in-process, bf16", "systole in-process, bf16", 0.97),
    ("systole from Python, in-process, f32", "tf.data, f32", 2.5),
    ("systole from Python, in-process, f32", "DALI CPU, f32", 2.5),
    ("systole from Python, in-process, f32", "Grain + OpenCV, f32", 2.5),
    ("systole from Python, in-process, f32", "DataLoader + torchvision, f32", 2.5),
    ("systole from Python, wire alone, TCP", "systole wire alone, TCP", 0.95),
    ("systole from Python, wire alone, unix:", "systole wire alone, unix:", 0.95),
    ("systole server + client, TCP, f32", "tf.data service, f32", 5.0),
    ("systole server + client, unix:, f32", "tf.data service, f32", 5.0),
    ("systole server + client, TCP compact, f32", "tf.data service, f32", 5.0),
    ("systole server + client, TCP compact, f32", "tf.data service, uint8 wire, f32", None),
    ("systole server + client, TCP, bf16", "tf.data service, bf16", 3.5),
    ("systole server + client, unix:, bf16", "tf.data service, bf16", 3.5),
    ("systole server + client, TCP compact, bf16", "tf.data service, bf16", 3.5),
    ("systole server + client, TCP compact, bf16", "tf.data service, uint8 wire, bf16", None),
    ("systole wire alone, TCP", "Arrow Flight", 2.0),
    ("systole wire alone, unix:", "Arrow Flight", 2.0),
    ("systole wire alone, TCP", "Arrow Flight, into the caller's memory", 2.0),
    ("systole wire alone, unix:", "Arrow Flight, into the caller's memory", 2.0),
    ("systole wire alone, unix:", "Arrow Flight, Unix socket, into the caller's memory", None),
    ("systole wire alone, TCP, a batch in one slice",
     "Arrow Flight, a batch in one record batch", 2.0),
    ("systole wire alone, unix:, a batch in one slice",
     "Arrow Flight, a batch in one record batch", 2.0),
    ("systole wire alone, TCP", "tf.data service, ready tensors", 7.0),
    ("systole wire alone, unix:", "tf.data service, ready tensors", 7.0),
)

BREADTH_RATIOS = tuple(
    (f"systole in-process, {pipeline.name}", f"{peer}, {pipeline.name}", None)
    for pipeline in PIPELINES for peer in pipeline.peers)

# The CPU time of CPU_FIGURE for an image may be at most CPU_AT_MOST times the least CPU time of the
# CPU_PEERS.
CPU_FIGURE = "systole in-process, f32"
CPU_PEERS = ("tf.data, f32", "DALI CPU, f32", "Grain + OpenCV, f32",
             "DataLoader + torchvision, f32", "DataLoader + Pillow, f32")
CPU_AT_MOST = 0.4
