"""Each kind of trouble raises its own exception. The message says what to do."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import systole
from conftest import LONGEST_WAIT, python, spec_text

NOBODY = "127.0.0.1:1"
MIXTURE = 'mixture { dataset: "a" weight: 1 } mixture { dataset: "b" weight: 1 }'


def test_a_feed_without_a_server_fails_after_connect_timeout(write_spec):
    with pytest.raises(systole.Unavailable, match="no server has answered within 200ms.*127"):
        systole.Feed(NOBODY, write_spec(), connect_timeout=0.2)


@pytest.mark.parametrize("duration", [0.2, "0.2", "200ms", "0.2 s", timedelta(milliseconds=200)])
def test_durations_are_seconds_or_have_a_unit(duration, write_spec):
    with pytest.raises(systole.Unavailable, match="within 200ms"):
        systole.Feed(NOBODY, write_spec(), connect_timeout=duration)


def test_every_duration_option_takes_units_and_is_refused_by_name(write_spec, shards):
    wrong = "'3 weeks'; want seconds, such as 3 or 0.5, or a text such as '3s', '500ms'"
    names = ["connect_timeout", "retry_for", "silence_timeout", "backoff", "max_backoff"]
    for name in names:
        with pytest.raises(systole.InvalidSpec, match=f"{name} is {wrong}"):
            systole.Feed(NOBODY, write_spec(), **{name: "3 weeks"})
    with pytest.raises(systole.InvalidSpec, match=f"start_timeout is {wrong}"):
        systole.serve({"flowers": shards}, start_timeout="3 weeks")
    with pytest.raises(systole.Unavailable):
        systole.Feed(NOBODY, write_spec(), **{**dict.fromkeys(names, "2m"), names[0]: "1ms"})


def test_shards_at_unsupported_urls_are_refused_with_the_remedy(write_spec):
    for url in ("az://bucket/flowers-*", "ftp://host/flowers"):
        with pytest.raises(systole.InvalidSpec, match=f"{re.escape(url)}.*only.*paths.*mount"):
            systole.LocalFeed(url, write_spec())
        with pytest.raises(systole.Error, match=f"{re.escape(url)}.*only.*paths.*mount"):
            with systole.serve({"flowers": url}):
                pass


def test_an_invalid_server_address_is_refused(write_spec):
    with pytest.raises(systole.InvalidSpec, match="want HOST:PORT"):
        systole.Feed("http://somewhere:80", write_spec())


def test_a_dataset_that_is_not_served_is_refused_with_a_similar_name(server, write_spec):
    spec = write_spec(spec_text().replace('"flowers"', '"flower"'))
    with pytest.raises(systole.NotFound, match="did you mean 'flowers'"):
        systole.Feed(server.address, spec)


def test_a_spec_that_the_server_refuses_raises_invalid_spec(server, write_spec):
    spec = write_spec(spec_text().replace('"label" dtype', '"lable" dtype'))
    with pytest.raises(systole.InvalidSpec, match="label"):
        systole.Feed(server.address, spec)


def test_errors_derive_from_systole_error_and_from_pythons_exceptions():
    errors = [each for each in vars(systole._errors).values() if isinstance(each, type)]
    assert systole.Unavailable in errors
    for each in errors:
        assert issubclass(each, systole.Error)
    for each, kind in (
        (systole.Error, RuntimeError),
        (systole.InvalidSpec, ValueError),
        (systole.NotFound, LookupError),
        (systole.Unavailable, ConnectionError),
        (systole.PermissionDenied, PermissionError),
    ):
        assert issubclass(each, kind)


@pytest.fixture
def damaged(shards, tmp_path):
    """A copy of the shards. One bit is changed in the second record of the first shard."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in sorted(Path(shards).parent.glob(Path(shards).name)):
        (folder / path.name).write_bytes(path.read_bytes())
    first = sorted(folder.iterdir())[0]
    data = bytearray(first.read_bytes())
    length = int.from_bytes(data[:8], "little")
    data[12 + length + 4 + 12 + 100] ^= 1
    first.write_bytes(data)
    return str(folder / Path(shards).name)


@pytest.mark.parametrize("kind", ["client", "local"])
def test_masked_records_are_logged_and_listed(kind, damaged, start_server, write_spec, caplog):
    spec = write_spec(spec_text(more="epochs: 1 tail: PAD on_corrupt: MASK"))
    where = start_server(data=damaged).address if kind == "client" else damaged
    feed = systole.Feed(where, spec) if kind == "client" else systole.LocalFeed(where, spec)
    assert feed.masked_records() == []
    list(feed)
    assert "1 masked for damaged records" in repr(feed)
    assert [one["record"] for one in feed.masked_records()] == [1]
    feed.close()
    told = [one.getMessage() for one in caplog.records if "masked" in one.getMessage()]
    assert len(told) == 1
    assert re.match(r"step \d: examples masked for damage: 1; record_id 1\b", told[0])


@pytest.mark.parametrize("kind", ["client", "local"])
def test_damaged_records_fail_or_are_masked_as_the_spec_says(
    kind, damaged, start_server, write_spec
):
    def open_feed(spec):
        if kind == "client":
            return systole.Feed(start_server(data=damaged).address, spec)
        return systole.LocalFeed(damaged, spec)

    with open_feed(write_spec()) as feed:
        with pytest.raises(systole.DataLoss, match="record 1.*on_corrupt: MASK") as caught:
            list(feed)
        assert "00000-of-00003" in str(caught.value)
    masking = write_spec(spec_text(more="epochs: 1 tail: PAD on_corrupt: MASK"), "mask.textproto")
    with open_feed(masking) as feed:
        assert sum(batch["valid"].sum() for batch in feed) == 95
        assert feed.stats()["masked_examples"] == 1
        assert feed.stats()["masked_records"] == [1]
        if kind == "local":
            assert [one["record"] for one in feed.masked_records()] == [1]


def test_a_dataset_with_missing_records_or_shards_is_refused(shards, tmp_path, write_spec):
    folder = tmp_path / "lost"
    folder.mkdir()
    for path in Path(shards).parent.glob("flowers*"):
        (folder / path.name).write_bytes(path.read_bytes())
    lost = str(folder / Path(shards).name)
    spec = write_spec()
    for options in [{"expect_records": 96}, {"expect_records": {"flowers": 96}}, {}]:
        systole.LocalFeed(lost, spec, **options).close()
    with pytest.raises(systole.FailedPrecondition, match="have 96 records, expect_records says 97"):
        systole.LocalFeed(lost, spec, expect_records=97)
    with pytest.raises(systole.FailedPrecondition, match="expect_bytes says 7"):
        systole.LocalFeed(lost, spec, expect_bytes=7)
    for wrong in [0, -1, {"flower": 96}]:
        with pytest.raises(systole.InvalidSpec, match="expect_records"):
            systole.LocalFeed(lost, spec, expect_records=wrong)
    second = sorted(folder.glob("*.tfrecord"))[1]
    second.write_bytes(b"")
    with pytest.raises(systole.DataLoss, match='has 0 records.*"flowers.manifest" says 32 records'):
        systole.LocalFeed(lost, spec)
    second.unlink()
    with pytest.raises(systole.NotFound, match="00001-of-00003.* is missing"):
        systole.LocalFeed(lost, spec)


def test_several_datasets_need_expect_records_for_each(shards, write_spec):
    both = spec_text().replace('dataset: "flowers"', MIXTURE)
    where = {"a": shards, "b": shards}
    with pytest.raises(systole.InvalidSpec, match='give a number for each, as in {"a": 96, ..}'):
        systole.LocalFeed(where, write_spec(both), expect_records=96)
    with pytest.raises(systole.FailedPrecondition, match="dataset 'b'.*expect_records says 97"):
        systole.LocalFeed(where, write_spec(both), expect_records={"a": 96, "b": 97})


def ids_of(feed, steps):
    """The record ids of the next `steps` steps, also beyond the end of an epoch."""
    got = []
    while len(got) < steps:
        got += [batch["id"].tolist() for batch in itertools.islice(feed, steps - len(got))]
    return got


def ids(feed):
    return [batch["id"].tolist() for _ in range(2) for batch in feed]


@pytest.fixture
def whole(server, write_spec):
    """All record ids of a feed, read without trouble. The tests below read the same feed while
    its servers have trouble."""
    with systole.Feed(server.address, write_spec()) as feed:
        return ids(feed)


def test_a_killed_server_is_replaced_by_the_other_and_logged(
    server, start_server, write_spec, caplog
):
    first, second = start_server(), start_server()
    spec = write_spec(spec_text(more="epochs: 0 tail: PAD"))
    with (
        systole.Feed(server.address, spec) as calm,
        systole.Feed([first.address, second.address], spec, prefetch_bytes=0) as feed,
    ):
        got = ids_of(feed, 1)
        first.kill()
        # Steps that were on their way when the server died still arrive.
        while feed.stats()["streams_lost"] == 0:
            got += ids_of(feed, 1)
        got += ids_of(feed, 6)
        assert got == ids_of(calm, len(got))
    lost = [entry for entry in caplog.records if first.address in entry.getMessage()]
    assert lost[0].name == "systole"
    assert lost[0].levelname == "WARNING"
    assert f"server {first.address} was lost at step " in lost[0].getMessage()


def test_a_drained_server_is_replaced_by_the_other(whole, start_server, write_spec):
    first, second = start_server(), start_server()
    with systole.Feed(f"{first.address},{second.address}", write_spec(), prefetch_bytes=0) as feed:
        got = [next(feed)["id"].tolist()]
        first.signal(signal.SIGTERM)
        assert got + ids(feed) == whole
    assert first.process.wait() == 0


def test_a_server_that_joins_takes_over_from_one_that_leaves(
    whole, start_server, write_spec, tmp_path
):
    first, second = start_server(), start_server()
    servers = tmp_path / "servers"
    servers.write_text(f"{first.address}\n")
    with systole.Feed(f"file:{servers}", write_spec(), prefetch_bytes=0, hedge_fraction=0) as feed:
        got = [next(feed)["id"].tolist()]
        servers.write_text(f"{second.address}  # instead\n")
        first.kill()
        # The first server may have sent this whole small feed before it was killed. Then the steps
        # would arrive without any change of servers. So the test waits for the change.
        deadline = time.monotonic() + LONGEST_WAIT
        while feed.stats()["membership_changes"] < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert got + ids(feed) == whole
        stats = feed.stats()
        assert stats["membership_changes"] == 2
        assert stats["hedges_won"] + stats["hedges_lost"] == 0


def test_a_stopped_server_is_waited_for(whole, start_server, write_spec):
    server = start_server()
    with systole.Feed(server.address, write_spec(), prefetch_bytes=0) as feed:
        got = [next(feed)["id"].tolist()]
        server.signal(signal.SIGSTOP)
        threading.Timer(0.3, server.signal, [signal.SIGCONT]).start()
        assert got + ids(feed) == whole


def test_a_server_gone_longer_than_retry_for_raises_unavailable(start_server, write_spec):
    server = start_server()
    with systole.Feed(server.address, write_spec(), prefetch_bytes=0, retry_for=3) as feed:
        next(feed)
        server.kill()
        with pytest.raises(systole.Unavailable, match=server.address):
            ids(feed)


def test_close_ends_a_wait_on_another_thread(start_server, write_spec):
    server = start_server()
    feed = systole.Feed(server.address, write_spec())
    server.signal(signal.SIGSTOP)
    threading.Timer(0.2, feed.close).start()
    with pytest.raises((systole.Cancelled, systole.FailedPrecondition)):
        next(feed)


def interrupted(code: str, *arguments: str) -> str:
    """Runs the code in a new process. Sends it Ctrl-C 0.2 s after its first line of output.
    Returns its stderr."""
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    child.stdout.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    return said


def test_ctrl_c_ends_the_wait_for_shards_on_a_web_server(write_spec):
    said = interrupted(
        """
        import os, socket, sys, threading
        os.environ["no_proxy"] = "127.0.0.1"
        import systole
        silent = socket.create_server(("127.0.0.1", 0))
        asked = []

        def accept():
            asked.append(silent.accept())
            print("waiting")

        threading.Thread(target=accept, daemon=True).start()
        systole.LocalFeed(f"http://127.0.0.1:{silent.getsockname()[1]}/a.tfrecord", sys.argv[1])
        """,
        write_spec(),
    )
    assert "KeyboardInterrupt" in said


def test_ctrl_c_ends_the_wait_for_a_server(write_spec):
    said = interrupted(
        """
        import sys, systole
        print("waiting")
        systole.Feed(sys.argv[1], sys.argv[2], connect_timeout=600)
        """,
        NOBODY,
        write_spec(),
    )
    assert "KeyboardInterrupt" in said


def test_ctrl_c_ends_the_wait_for_a_batch(start_server, write_spec):
    server = start_server()
    said = interrupted(
        """
        import os, signal, sys, systole
        feed = systole.Feed(sys.argv[1], sys.argv[2])
        os.kill(int(sys.argv[3]), signal.SIGSTOP)
        print("waiting")
        next(feed)
        """,
        server.address,
        write_spec(),
        str(server.process.pid),
    )
    assert "KeyboardInterrupt" in said


def test_other_threads_run_while_one_waits(start_server, write_spec):
    server = start_server()
    feed = systole.Feed(server.address, write_spec())
    server.signal(signal.SIGSTOP)
    waiting = threading.Thread(target=next, args=(feed,))
    waiting.start()
    count = sum(1 for _ in range(1000))
    assert count == 1000 and waiting.is_alive()
    assert feed.stats()["steps_received"] == 0
    server.signal(signal.SIGCONT)
    waiting.join()
    assert feed.step == 1


def test_a_child_of_fork_cannot_open_a_feed_after_its_parent_did(server, write_spec):
    done = python(
        """
        import os, sys, systole
        feed = systole.Feed(*sys.argv[1:])
        next(feed)
        systole.Feed(*sys.argv[1:]).close()
        child = os.fork()
        if child == 0:
            try:
                systole.Feed(*sys.argv[1:])
            except systole.FailedPrecondition as error:
                print(error, flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(next(feed).step, flush=True)
        """,
        server.address,
        write_spec(),
    )
    assert done.returncode == 0, done.stderr
    assert "was forked from one that has opened a feed" in done.stdout and "'spawn'" in done.stdout
    assert done.stdout.rstrip().endswith("1")


@pytest.mark.parametrize("kind", ["client", "local"])
def test_reading_a_parents_feed_after_a_fork_raises_an_error(kind, server, shards, write_spec):
    done = python(
        """
        import os, sys, systole
        where, spec, kind = sys.argv[1:]
        feed = systole.Feed(where, spec) if kind == "client" else systole.LocalFeed(where, spec)
        next(feed)
        child = os.fork()
        if child == 0:
            try:
                next(feed)
            except RuntimeError as error:
                print(error, flush=True)
            sys.exit(0)  # An ordinary exit must not touch the parent's feed.
        assert os.waitpid(child, 0)[1] == 0
        print(next(feed).step)
        """,
        server.address if kind == "client" else shards,
        write_spec(),
        kind,
    )
    assert done.returncode == 0, done.stderr
    assert "the process that forked" in done.stdout and "'spawn'" in done.stdout
    assert done.stdout.rstrip().endswith("1")


def read_one(address: str, spec: str) -> int:
    with systole.Feed(address, spec) as feed:
        return next(feed).step


def test_spawned_processes_can_open_their_own_feeds(server, write_spec):
    with systole.Feed(server.address, write_spec()) as feed:
        next(feed)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(read_one, (server.address, write_spec())) == 0


@pytest.mark.parametrize("kind", ["client", "local"])
@pytest.mark.parametrize("ending", ["", "del feed", "sys.exit(0)", "raise SystemExit(0)"])
def test_a_program_with_an_unclosed_feed_exits_cleanly(kind, ending, server, shards, write_spec):
    done = python(
        f"""
        import sys, systole
        where, spec, kind = sys.argv[1:]
        feed = systole.Feed(where, spec) if kind == "client" else systole.LocalFeed(where, spec)
        batch = next(feed)
        {ending}
        """,
        server.address if kind == "client" else shards,
        write_spec(),
        kind,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_starts_no_thread():
    done = python(
        """
        import os, numpy, ml_dtypes
        before = len(os.listdir("/proc/self/task"))
        import systole
        assert len(os.listdir("/proc/self/task")) == before
        """
    )
    assert done.returncode == 0, done.stderr


def test_an_open_feed_receives_no_step_before_it_is_read(server, write_spec):
    with systole.Feed(server.address, write_spec()) as feed:
        time.sleep(0.2)
        assert feed.stats()["steps_received"] == 0
        assert next(feed).step == 0


def test_closed_feeds_leave_no_open_files_or_threads(server, shards, write_spec):
    def open_files():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def use():
        with systole.Feed(server.address, write_spec()) as feed:
            next(feed)
        with systole.LocalFeed(shards, write_spec()) as feed:
            next(feed)

    use()  # gRPC opens some files at its first use, and keeps them.
    before = open_files()
    for _ in range(5):
        use()
    # gRPC ends a connection's threads a moment after the connection.
    deadline = time.monotonic() + LONGEST_WAIT
    while open_files() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert open_files() <= before
