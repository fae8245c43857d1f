"""Checks the units of deploy/systemd without running them.

If a check fails, the program ends with a message that says what is wrong.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess

from checks import need, run
from manifests import config_field
from units import Unit

_FOLDER = pathlib.Path("deploy/systemd")
_SERVICE, _SOCKET = "systole-server.service", "systole-server.socket"

# `systemd-analyze security` must report a lower exposure than this, in tenths. A service without
# any limits has 100.
_MOST_EXPOSED = 20


def _check_by_systemd(options):
    """systemd accepts the units, with the drop-in and without it, and the service is confined.

    Returns the exposure that `systemd-analyze security` reports: 0 is best, 10 is worst.
    """
    for name, drop_ins in (("plain", False), ("with-drop-ins", True)):
        folder = options.work / name
        shutil.copytree(_FOLDER, folder)
        if not drop_ins:
            shutil.rmtree(folder / f"{_SERVICE}.d")
        service = folder / _SERVICE
        # systemd does not look for programs in options.build, so the unit gets the program's path.
        text = service.read_text().replace("=systole-server ", f"={options.build}/systole-server ")
        service.write_text(text)
        environment = os.environ | {"SYSTEMD_LOG_LEVEL": "info", "SYSTEMD_UNIT_PATH": f"{folder}:"}
        line = ["systemd-analyze", "verify", service, folder / _SOCKET]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        need(done.returncode == 0 and not said, f"systemd-analyze verify: {said}")
    limit = ["--offline=true", f"--threshold={_MOST_EXPOSED}", "--no-pager"]
    said = run(["systemd-analyze", "security", *limit, _FOLDER / _SERVICE])
    exposure = re.search(r"Overall exposure level for \S+ ([0-9.]+)", said)[1]
    need(float(exposure) * 10 < _MOST_EXPOSED, f"the exposure is too high: {exposure}")
    return exposure


def _check_flags(options, service):
    """The unit, the drop-ins and deploy/systemd/README.md name only flags that the server has.

    The flags of a drop-in use exactly the credentials that the drop-in loads.
    """
    known = set(re.findall(r"--[a-z-]+", run([options.build / "systole-server", "--help"])))
    drop_ins = [Unit(path) for path in (_FOLDER / f"{_SERVICE}.d").iterdir()]
    lines = [service.command(unit.environment().get("SYSTOLE_TLS_FLAGS", "")) for unit in drop_ins]
    page = (_FOLDER / "README.md").read_text()
    lines += [flags.split() for flags in re.findall(r"SYSTOLE_FLAGS=([^\"\n]*)", page)]
    for word in (word for line in lines for word in line if word.startswith("--")):
        need(word.split("=")[0] in known, f"there is no flag {word}")
    for unit in drop_ins:
        names = {credential.split(":")[0] for credential in unit.all("LoadCredential")}
        used = set(re.findall(r"%d/(\S+?)(?= |$)", unit.environment()["SYSTOLE_TLS_FLAGS"]))
        need(used == names, f"{unit.path}: loads {names}, but its flags use {used}")


def _check_places(service):
    """The config has the folders of the unit and the ports of deploy/kubernetes.

    TimeoutStopSec= is at least 5 s longer than the config's drain_timeout. README.md names the
    socket and the files of /etc/systole.
    """
    text = (_FOLDER / "server.textproto").read_text()
    page = (_FOLDER / "README.md").read_text()
    need(
        config_field(text, "index_dir") == f"/var/lib/{service.one('StateDirectory')}",
        "index_dir of the config is not the folder of StateDirectory=",
    )
    cache = f"/var/cache/{service.one('CacheDirectory')}/"
    need(config_field(text, "block_cache").startswith(cache), f"the block cache is not in {cache}")
    drain = int(config_field(text, "drain_timeout").removesuffix("s"))
    need(service.seconds("TimeoutStopSec") >= drain + 5, "TimeoutStopSec= is too short")
    deployment = pathlib.Path("deploy/kubernetes/base/deployment.yaml").read_text()
    for field in ("listen", "admin"):
        port = config_field(text, field).rsplit(":", 1)[1]
        need(f"--{field}=0.0.0.0:{port}\n" in deployment, f"Kubernetes has another --{field}")
    address = f"unix:{Unit(_FOLDER / _SOCKET).one('ListenStream')}"
    need(f'listen: "{address}"' in page, f"README.md does not name {address}")
    for path in re.findall(r"(?<=[=:])/etc/systole/[\w./-]+", (_FOLDER / _SERVICE).read_text()):
        need(path in page, f"README.md does not say what {path} is")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    service = Unit(_FOLDER / _SERVICE)
    exposure = _check_by_systemd(options)
    _check_flags(options, service)
    _check_places(service)
    print(f"systemd accepts the units; the service's exposure is {exposure} of 10")


if __name__ == "__main__":
    main()
