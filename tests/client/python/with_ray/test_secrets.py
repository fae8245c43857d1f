"""Servers on a cluster that use TLS and require a token. Ray must show none of their secrets."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import ray
import systole
import systole.ray
from conftest import ROOT
from conftest import systole as run_systole
from ray_cluster import server_processes

pytest_plugins = ["ray_fixtures"]


@pytest.fixture
def files(tmp_path):
    """Certificates for the nodes' address, a token and the servers' config."""
    folder = tmp_path / "secrets"
    host = ray.util.get_node_ip_address()
    subprocess.run([ROOT / "deploy/make_certificates.sh", folder, host], check=True)
    token = run_systole("token", "--name", "trainer", "--file", folder / "tokens")
    (folder / "trainer.token").write_text(token)
    (folder / "trainer.token").chmod(0o600)
    (folder / "config.textproto").write_text(
        f"""
        access {{
          token_file: "{folder}/tokens"
          identities {{ name: "trainer" token_names: "trainer" may {{ read: "flowers" }} }}
        }}
        """
    )
    return folder


def test_a_tls_feed_works_and_its_secrets_stay_out_of_logs_and_processes(
    nodes, files, shards, write_spec, mark
):
    spec = write_spec()
    options = {"nodes": "feeder", "cpus": 1, "index_dir": mark}
    with systole.ray.serve(
        {"flowers": shards},
        tls_certificate=files / "server.pem",
        tls_key=files / "server.key",
        config=files / "config.textproto",
        **options,
    ) as servers:
        tls = {"tls": True, "tls_ca": files / "ca.pem"}
        with systole.ray.Feed(servers, spec, token_file=files / "trainer.token", **tls) as feed:
            with systole.LocalFeed(shards, spec) as local:
                for batch in local.steps():
                    assert local.digest(batch) == feed.digest(next(feed.steps()))
        with pytest.raises(systole.PermissionDenied):
            systole.ray.Feed(servers, spec, **tls)
        # A server that does not answer the requests by which it is watched would be restarted.
        assert [one["restarts"] for one in servers.state()] == [0, 0]
        texts = [
            Path(f"/proc/{process}/{what}").read_bytes()
            for process in server_processes(mark)
            for what in ("cmdline", "environ")
        ]
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    texts += [path.read_bytes() for path in (session / "logs").rglob("*") if path.is_file()]
    assert len(texts) > 10
    secrets = [(files / "trainer.token").read_text().strip()]
    for key in ("server.key", "client.key", "ca.key"):
        secrets += (files / key).read_text().splitlines()[1:-1]
    for secret in secrets:
        assert len(secret) > 20
        assert not any(secret.encode() in text for text in texts)


def test_a_server_that_says_nothing_counts_as_dead(tmp_path, shards, mark, monkeypatch):
    from systole.ray import _server_actor

    monkeypatch.setattr(_server_actor, "WATCH_SECONDS", 0.5)
    monkeypatch.setattr(_server_actor, "_SECONDS_TO_ANSWER", 1.0)
    actor = _server_actor.SystoleServer()
    actor.start("127.0.0.1", 0, [f"--dataset=flowers={shards}", "--index-dir", mark], 600)
    (server,) = server_processes(mark)
    os.kill(server, signal.SIGSTOP)
    assert actor.watch() == "" and actor.watch() == ""
    assert "gave no answer" in actor.watch()
    os.kill(server, signal.SIGCONT)
    assert actor.watch() == ""  # The server runs and answers again, because nobody has ended it.
    actor.stop()
    assert actor.watch() == "it was stopped"
    assert server_processes(mark) == {}


@pytest.mark.parametrize("tls", [False, True])
def test_watching_a_server_logs_no_warning(tls, files, shards, mark, monkeypatch):
    from systole.ray import _server_actor

    monkeypatch.setattr(_server_actor, "WATCH_SECONDS", 0.1)
    arguments = [f"--dataset=flowers={shards}", "--index-dir", mark, "--log-level=warn"]
    if tls:
        for flag, name in (
            ("certificate", "server.pem"),
            ("key", "server.key"),
            ("client-ca", "ca.pem"),
        ):
            arguments += [f"--tls-{flag}", str(files / name)]
    actor = _server_actor.SystoleServer()
    actor.start("127.0.0.1", 0, arguments, 600)
    for _ in range(3):
        assert actor.watch() == ""
    assert actor._process.log() == ""
    actor.stop()
