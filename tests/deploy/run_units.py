"""Runs the server as the units of deploy/systemd say, without systemd.

This program does what systemd would do: it sends signals to the server, receives the server's
notifications, passes the socket to the server, and lays out the credentials. The server runs as a
user without any capability. If the server makes a system call that the unit does not allow, the
kernel kills the server. If a check fails, the program ends with a message that says what is wrong.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys

from checks import need, run, wait_for
from units import Unit

_FOLDER = pathlib.Path("deploy/systemd")
# A user id that systemd could choose for DynamicUser=.
_USER = 61184


def _allowed_calls(unit):
    """The names of the system calls that SystemCallFilter= allows. systemd-analyze lists the calls
    of a set, such as @default.
    """

    def expand(name):
        if not name.startswith("@"):
            return {name}
        lines = run(["systemd-analyze", "--no-pager", "syscall-filter", name]).splitlines()[1:]
        members = (line.strip() for line in lines)
        return set().union(*(expand(m) for m in members if m and not m.startswith("#")))

    allowed = expand("@default")
    for value in unit.all("SystemCallFilter"):
        names = set().union(*(expand(name) for name in value.removeprefix("~").split()))
        allowed = allowed - names if value.startswith("~") else allowed | names
    # systemd allows execve to every service.
    return allowed | {"execve"}


class Manager:
    """Starts the unit's command with a folder in place of /, and receives the server's messages."""

    def __init__(self, options, name, config):
        self.options = options
        self.unit = Unit(_FOLDER / "systole-server.service")
        self.root = options.work / name
        for path in ("etc/systole", "run/credentials", "srv"):
            (self.root / path).mkdir(parents=True)
        (self.root / "srv/data").symlink_to(options.work / "data")
        for kind, path in (("StateDirectory", "var/lib"), ("CacheDirectory", "var/cache")):
            folder = self.root / path / self.unit.one(kind)
            folder.mkdir(parents=True)
            os.chown(folder, _USER, _USER)
        self.write_config(config)
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(self.root / "notify"))
        # Every user may write to this socket, as to systemd's own socket for notifications.
        (self.root / "notify").chmod(0o777)
        self._notify.settimeout(300)
        self.log = self.root / "log"

    def in_root(self, text):
        """Moves the absolute paths in `text` into the folder that stands for /."""
        return re.sub(r"(?<![\w.-])/(?=(etc|run|srv|var)/)", f"{self.root}/", text)

    def write_config(self, text):
        # On this machine the config's ports may be in use, so the server chooses free ports.
        text = re.sub(r'127\.0\.0\.1:\d+"', '127.0.0.1:0"', self.in_root(text))
        (self.root / "etc/systole/server.textproto").write_text(text)

    @contextlib.contextmanager
    def started(self, flags="", passed=None, watchdog_s=None):
        program, *words = [self.in_root(word) for word in self.unit.command(flags)]
        ids = [f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        line = ["setpriv", *ids, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
        line += [sys.executable, "-B", "tests/deploy/confined.py"]
        line += [",".join(sorted(_allowed_calls(self.unit))), self.options.build / program, *words]
        watchdog = int((watchdog_s or self.unit.seconds("WatchdogSec")) * 1e6)
        environment = {
            "PATH": os.environ["PATH"],
            "NOTIFY_SOCKET": str(self.root / "notify"),
            "WATCHDOG_USEC": str(watchdog),
        }
        if passed is not None:
            environment |= {"LISTEN_FDS": "1", "PASSED_SOCKET": str(passed.fileno())}
        descriptors = (passed.fileno(),) if passed is not None else ()
        umask = int(self.unit.one("UMask"), 8)
        more = {"env": environment, "umask": umask, "pass_fds": descriptors}
        with (
            open(self.log, "wb") as log,
            subprocess.Popen(line, stdout=log, stderr=log, **more) as process,
        ):
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def next(self, process):
        """The next message of the server, as a dict."""
        self._notify.settimeout(0.2)

        def received():
            with contextlib.suppress(TimeoutError):
                return self._notify.recv(4096).decode()
            need(process.poll() is None, f"the server ended: {self.log.read_text()}")
            return None

        return dict(line.split("=", 1) for line in wait_for("a message", received).split("\n"))

    def until(self, process, key):
        """The server's next messages, up to and including the first message that has `key`."""
        said = [self.next(process)]
        while key not in said[-1]:
            said.append(self.next(process))
        return said

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        said = self.until(process, "STOPPING")
        code = process.wait(self.unit.seconds("TimeoutStopSec"))
        need(code == 0, f"the server ended with {code}: {self.log.read_text()}")
        return said[-1]


def _check_service(options):
    """With the shipped config, the server sends the messages that the unit needs, in order."""
    config = (_FOLDER / "server.textproto").read_text()
    manager = Manager(options, "service", config)
    with manager.started(watchdog_s=2) as process:
        ready = manager.until(process, "READY")
        need(len(ready) == 2 and "STATUS" in ready[0], f"not one STATUS before READY: {ready[:-1]}")
        address = re.fullmatch(r"serving 1 dataset on (\S+)", ready[-1]["STATUS"])[1]
        need(manager.until(process, "WATCHDOG")[0] == {"WATCHDOG": "1"}, "no sign of life")
        spec = options.work / "feed.textproto"
        said = run([options.build / "systole", "feed", "--server", address, "--spec", spec])
        need("The trainer waited" in said, f"the feed has no verdict: {said}")
        reload = manager.unit.one("ExecReload").replace("$MAINPID", str(process.pid))
        run(reload.split())
        need("MONOTONIC_USEC" in manager.until(process, "RELOADING")[-1], "RELOADING has no time")
        manager.until(process, "READY")
        need("draining" in manager.end(process)["STATUS"], "STOPPING has no status of the drain")
    for folder in (manager.root / "var/lib/systole/index", manager.root / "var/cache/systole"):
        need(any(folder.iterdir()), f"the server left nothing in {folder}")
    print(f"the server notifies systemd, and its unit allows its calls: {said.splitlines()[-1]}")


def _check_socket(options):
    """Trainers can connect to the socket before the server starts, and while the server runs. The
    socket stays when the server ends. A user outside the socket's group cannot connect.
    """
    unit = Unit(_FOLDER / "systole-server.socket")
    config = (_FOLDER / "server.textproto").read_text()
    path = unit.one("ListenStream")
    manager = Manager(
        options, "socket", re.sub(r"(?m)^listen: .*$", f'listen: "unix:{path}"', config)
    )
    at = pathlib.Path(manager.in_root(path))
    # As in the real /run, the server's user owns nothing in the socket's folder.
    with socket.socket(socket.AF_UNIX) as passed:
        passed.bind(str(at))
        at.chmod(int(unit.one("SocketMode"), 8))
        passed.listen(64)
        feed = [options.build / "systole", "feed", f"--server=unix:{at}"]
        feed += [f"--spec={options.work / 'feed.textproto'}", "--steps=4", "--json"]
        with subprocess.Popen(feed, stdout=subprocess.PIPE, text=True) as trainer:
            for _ in range(2):
                with manager.started(passed=passed) as process:
                    ready = manager.until(process, "READY")
                    need(f"unix:{at}" in ready[-1]["STATUS"], f"{ready}")
                    if trainer.returncode is None:
                        said = json.loads(trainer.communicate()[0])
                        need(trainer.returncode == 0, f"the feed that waited failed: {said}")
                    run(feed)
                    manager.end(process)
                need(at.is_socket(), "the server removed the manager's socket")
        stranger = ["setpriv", "--reuid=61185", "--regid=61185", "--clear-groups", sys.executable]
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(at)!r})"
        done = subprocess.run([*stranger, "-c", code], capture_output=True, text=True, check=False)
        need("PermissionError" in done.stderr, f"a user without the group: {done.stderr}")
    print("the socket takes connections before the server starts, and stays when the server ends")


def _put_credential(source, folder, name):
    """Lays a credential out as systemd does: root owns the file, and an ACL lets _USER read it."""
    path = folder / name
    path.write_bytes(source.read_bytes())
    path.chmod(0o400)
    # Five entries (tag, permissions, id): for the owner, _USER, the group, the mask and others.
    none = 0xFFFFFFFF
    entries = [(1, 4, none), (2, 4, _USER), (4, 0, none), (16, 4, none), (32, 0, none)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", acl)


def _check_credentials(options):
    """With the drop-in tls.conf, the server reads its certificate and its key from credentials."""
    drop_in = Unit(_FOLDER / "systole-server.service.d/tls.conf")
    manager = Manager(options, "tls", (_FOLDER / "server.textproto").read_text())
    run(["deploy/make_certificates.sh", options.work / "certificates", "localhost"])
    tls = manager.root / "etc/systole/tls"
    tls.symlink_to(options.work / "certificates")
    credentials = manager.root / "run/credentials"
    for credential in drop_in.all("LoadCredential"):
        name, path = credential.split(":")
        _put_credential(pathlib.Path(manager.in_root(path)), credentials, name)
    flags = drop_in.environment()["SYSTOLE_TLS_FLAGS"].replace("%d", str(credentials))
    # The server listens on the address in the drop-in, but on any free port.
    flags = re.sub(r"--listen=(\S+):\d+", r"--listen=\1:0", flags)
    with manager.started(flags) as process:
        status = manager.until(process, "READY")[-1]["STATUS"]
        port = status.rsplit(":", 1)[1]
        ca = options.work / "certificates/ca.pem"
        server = ["--server", f"localhost:{port}", "--tls", "--tls-ca", ca]
        run([options.build / "systole", "status", *server])
        manager.end(process)
    need("PRIVATE" not in manager.log.read_text(), "the log shows the key")
    print("the server reads the drop-in's credentials, although its user does not own them")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # Programs that run as another user must reach the folders in options.work.
    options.work.chmod(0o755)
    data = options.work / "data"
    systole = options.build / "systole"
    run([systole, "make-flowers", data / "images", "--images=256", "--seed=1"])
    run([systole, "pack", data / "images", data / "flowers", "--shards=2", "--validation=0.2"])
    spec = pathlib.Path("deploy/specs/flowers.textproto").read_text()
    (options.work / "feed.textproto").write_text(spec)
    _check_service(options)
    _check_socket(options)
    _check_credentials(options)


if __name__ == "__main__":
    main()
