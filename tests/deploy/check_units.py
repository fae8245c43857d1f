"""Checks the units of deploy/systemd without running them.

Every check fails the program with a line that says what is wrong.
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

# The highest exposure that `systemd-analyze security` may report, in tenths. A service without any
# limits has 100.
_MOST_EXPOSED = 20


def _check_by_systemd(options):
    """systemd understands every line, with the drop-in and without it."""
    for name, drop_ins in (("plain", False), ("with-drop-ins", True)):
        folder = options.work / name
        shutil.copytree(_FOLDER, folder)
        if not drop_ins:
            shutil.rmtree(folder / f"{_SERVICE}.d")
        service = folder / _SERVICE
        # systemd looks for programs only in folders of the system, so the unit gets the full path.
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
    need(float(exposure) * 10 < _MOST_EXPOSED, f"the unit is exposed by {exposure}")
    return exposure


def _check_flags(options, service):
    """The unit, the drop-ins and the page name only flags that the server has."""
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
        need(used == names, f"{unit.path}: credentials {names} and files {used}")


def _check_places(service):
    """The config has the folders of the unit and the ports of deploy/kubernetes."""
    text = (_FOLDER / "server.textproto").read_text()
    page = (_FOLDER / "README.md").read_text()
    need(
        config_field(text, "index_dir") == f"/var/lib/{service.one('StateDirectory')}",
        "the folder of indexes is not StateDirectory=",
    )
    cache = f"/var/cache/{service.one('CacheDirectory')}/"
    need(config_field(text, "block_cache").startswith(cache), f"the block cache is not in {cache}")
    drain = int(config_field(text, "drain_timeout").removesuffix("s"))
    need(service.seconds("TimeoutStopSec") >= drain + 5, "TimeoutStopSec= is too short")
    deployment = pathlib.Path("deploy/kubernetes/base/deployment.yaml").read_text()
    for field in ("listen", "admin"):
        port = config_field(text, field).rsplit(":", 1)[1]
        need(f"--{field}=0.0.0.0:{port}\n" in deployment, f"Kubernetes has another port: {field}")
    address = f"unix:{Unit(_FOLDER / _SOCKET).one('ListenStream')}"
    need(f'listen: "{address}"' in page, f"README.md does not name {address}")
    # README.md explains each file of /etc/systole that the unit names.
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
    print(f"systemd takes the units; the service is exposed by {exposure} of 10")


if __name__ == "__main__":
    main()
