"""Checks the files in the images of deploy/Containerfile, and runs the images.

If a check fails, the program ends with a message that says what is wrong.
"""

import argparse
import json
import os
import pathlib
import re
import stat
import subprocess
import urllib.parse

from checks import need, run, wait_for
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# Programs that no image may have.
_COMPILERS = ("gcc", "g++", "cc", "c++", "cc1plus", "as", "ld", "cmake", "ninja", "make", "protoc")

# The options with which deploy/container/README.md confines a container.
_CONFINED = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
# On some machines a test can create neither networks nor control groups. So the test's containers
# share the machine's network, and have no control groups.
_HERE = ["--network=host", "--cgroups=disabled", "--ulimit=nofile=8192", "--ulimit=nproc=8192"]


class Image:
    """An image, and its root file system in a folder."""

    def __init__(self, options, name):
        self.podman = options.podman.split()
        self.name = f"localhost/systole-{name}:dev"
        (self.about,) = json.loads(run([*self.podman, "image", "inspect", self.name]))
        self.root = pathlib.Path(run([*self.podman, "image", "mount", self.name]).strip())
        self.config = self.about["Config"]

    def files(self):
        for folder, _, names in os.walk(self.root):
            for name in names:
                yield pathlib.Path(folder, name)

    def sbom(self):
        return json.loads((self.root / "usr/share/doc/systole/sbom.json").read_text())


def _check_config(image, version):
    """The image has the user of deploy/kubernetes, the project's version, and its labels."""
    deployment = pathlib.Path("deploy/kubernetes/base/deployment.yaml").read_text()
    user = re.search(r"runAsUser: (\d+)", deployment)[1]
    need(image.config["User"] == f"{user}:{user}", f"{image.name}: runs as {image.config['User']}")
    labels = image.config["Labels"]
    for label in ("title", "description", "licenses", "version", "revision"):
        need(labels.get(f"org.opencontainers.image.{label}"), f"{image.name}: has no {label}")
    said = labels["org.opencontainers.image.version"]
    need(said == version, f"{image.name}: its version is {said}, the project's {version}")


def _check_server_config(image):
    deployment = pathlib.Path("deploy/kubernetes/base/deployment.yaml").read_text()
    need(image.config["Entrypoint"] == ["systole-server"], f"{image.config['Entrypoint']}")
    need("command: [systole-server]" in deployment, "Kubernetes runs another program")
    need(image.config["StopSignal"] in ("15", "SIGTERM"), f"{image.config['StopSignal']}")
    ports = {f"{port}/tcp" for port in re.findall(r"containerPort: (\d+)", deployment)}
    need(set(image.config["ExposedPorts"]) == ports, f"{image.config['ExposedPorts']}")


def _check_files(image, only=None):
    """The image has no compiler. If `only` is given, the image has exactly these programs, and no
    file is setuid or setgid.
    """
    programs = set()
    for path in image.files():
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            continue
        where = f"{image.name}: {path.relative_to(image.root)}"
        need(path.name not in _COMPILERS, f"{where} is a compiler or a build tool")
        gives_rights = mode & (stat.S_ISUID | stat.S_ISGID)
        need(only is None or not gives_rights, f"{where} is setuid or setgid")
        if mode & 0o111 and ".so" not in path.name:
            programs.add(path.name)
    need(only is None or programs == only, f"{image.name}: its programs are {sorted(programs)}")


def _check_sbom(image, version):
    """The SBOM fits its schema. For each Debian package in it, the image has a copyright file.

    Returns the names and versions of these packages.
    """
    sbom = image.sbom()
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(sbom))
    need(problem is None, f"{image.name}: its SBOM does not fit CycloneDX 1.6: {problem}")
    components = {c["name"]: c for c in sbom["components"]}
    need(components["systole"]["version"] == version, f"{components['systole']}")
    debian = {
        c["name"]: c["version"]
        for c in sbom["components"]
        if c.get("purl", "").startswith("pkg:deb/debian/")
    }
    for name, number in debian.items():
        purl = components[name]["purl"]
        need(f"@{urllib.parse.quote(number, safe='')}?" in purl, f"{purl} is not {number}")
        need("distro=debian-12" in purl, f"{purl}: no distribution")
    known = sum("licenses" in components[name] for name in debian)
    need(known * 2 > len(debian), f"{image.name}: only {known} packages have a license")
    for name in debian:
        copyright_file = image.root / f"usr/share/doc/{name}/copyright"
        need(os.path.lexists(copyright_file), f"{image.name}: no copyright file of {name}")
    return debian


def _check_owners(image, debian):
    """Looks up the image's libraries with dpkg of this machine. If dpkg knows the package of a
    library, the SBOM must have this package.
    """
    for path in (image.root / "usr/lib").rglob("*.so*"):
        if path.is_symlink():
            continue
        at = "/" + str(path.relative_to(image.root))
        # dpkg may know a file of /usr/lib by its path in /lib.
        for known in (at, at.removeprefix("/usr")):
            done = subprocess.run(
                ["dpkg-query", "-S", known], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                package = done.stdout.partition(":")[0]
                need(package in debian, f"{at}: the SBOM lacks {package}")
                break


def _check_dpkg(image, debian, options):
    """dpkg in the image lists the same packages as the SBOM."""
    line = [*options.podman.split(), "run", "--rm", *_HERE, *_CONFINED, image.name]
    said = run([*line, "dpkg-query", "-W", "-f", "${Package} ${Version}\\n"])
    installed = dict(row.split(" ") for row in said.splitlines())
    need(installed == debian, f"{image.name}: {set(installed.items()) ^ set(debian.items())}")


def _serve(options, image):
    """Starts a server as deploy/container/README.md does. Returns its address."""
    for name, mode in (("etc", 0o755), ("run", 0o777)):
        (options.work / name).mkdir()
        (options.work / name).chmod(mode)
    page = pathlib.Path("deploy/container/README.md").read_text()
    config = re.search(r"```\n(# server.textproto\n.*?)```", page, re.DOTALL)[1]
    (options.work / "etc/server.textproto").write_text(config)
    volumes = [("data", "/data:ro"), ("etc", "/etc/systole:ro"), ("run", "/run/systole")]
    line = [*image.podman, "run", "--detach", "--name=systole-server-test", *_HERE, *_CONFINED]
    line += [f"--volume={options.work / folder}:{at}" for folder, at in volumes]
    line += ["--tmpfs=/var/lib/systole", "--tmpfs=/var/cache/systole", image.name]
    line += ["--config=/etc/systole/server.textproto"]
    # The container shares the machine's network, where the usual ports may be in use.
    line += ["--listen=127.0.0.1:0", "--port-file=/run/systole/port"]
    run([*line, "--admin=127.0.0.1:0", "--admin-port-file=/run/systole/admin-port"])
    port = options.work / "run/port"
    return f"127.0.0.1:{wait_for('the server', lambda: port.exists() and port.read_text()).strip()}"


def _inspect(image, field):
    line = [*image.podman, "inspect", "--format", f"{{{{{field}}}}}", "systole-server-test"]
    return run(line).strip()


def _check_process(image):
    pid = _inspect(image, ".State.Pid")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(re.findall(r"^(\w+):\s*(.*)$", status, re.MULTILINE))
    need(fields["Uid"].split() == ["65532"] * 4, f"the server runs as {fields['Uid']}")
    need(int(fields["CapEff"], 16) == 0, f"the server has capabilities {fields['CapEff']}")
    need(fields["NoNewPrivs"] == "1", "NoNewPrivs is off, so the server could gain rights")
    mounts = pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    (root,) = (line.split() for line in mounts if line.split()[4] == "/")
    need("ro" in root[5].split(","), f"the server's root can be written: {root}")


def _check_server(options, image):
    """`systole status` works in the container, clients outside read, and SIGTERM drains the server.

    A step from the server has the same bytes as a step that Python makes from local files.
    """
    address = _serve(options, image)
    _check_process(image)
    inside = [*image.podman, "exec", "systole-server-test"]
    run([*inside, "systole", "status", f"--server={address}"])
    spec = options.work / "feed.textproto"
    spec.write_text(pathlib.Path("deploy/specs/flowers.textproto").read_text())
    feed = ["feed", f"--server={address}", f"--spec={spec}", "--steps=20"]
    said = run([options.build / "systole", *feed])
    need("The trainer waited" in said, f"the feed has no verdict: {said}")
    python = Image(options, "python")
    line = [*image.podman, "run", "--rm", "--name=systole-python-test", *_HERE, *_CONFINED]
    line += [f"--volume={options.work}:/job:ro", python.name, "python", "-c", _TRAINER, address]
    digests = run(line).split()
    need(len(digests) == 2 and digests[0] == digests[1], f"server and local feed differ: {digests}")
    run([*image.podman, "stop", "--time=40", "systole-server-test"])
    log = subprocess.run(
        [*image.podman, "logs", "systole-server-test"], capture_output=True, text=True, check=True
    )
    need("drained" in log.stderr + log.stdout, f"the server did not drain: {log.stderr}")
    code = _inspect(image, ".State.ExitCode")
    need(code == "0", f"the server ended with {code}")
    return said.splitlines()[-1]


# Makes one step from local files, reads the same step from the server, and prints both digests.
_TRAINER = """
import hashlib, sys, systole
spec = "/job/feed.textproto"
local = systole.LocalFeed({"flowers": "/job/data/flowers-train-*.tfrecord"}, spec)
for feed in (local, systole.Feed(sys.argv[1], spec)):
    batch = next(feed.steps())
    print(hashlib.sha256(batch["image"].tobytes()).hexdigest())
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--podman", required=True, help="podman with its options")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # The containers' user must reach the folders in options.work.
    options.work.chmod(0o755)
    data = options.work / "data"
    systole = options.build / "systole"
    run([systole, "make-flowers", data / "images", "--images=256", "--seed=1"])
    run([systole, "pack", data / "images", data / "flowers", "--shards=2", "--validation=0.2"])
    project = pathlib.Path("CMakeLists.txt").read_text()
    version = re.search(r"project\(Systole VERSION (\S+)", project)[1]
    for name, only in (("server", {"systole", "systole-server"}), ("python", None)):
        image = Image(options, name)
        _check_config(image, version)
        _check_files(image, only)
        debian = _check_sbom(image, version)
        if only:
            _check_server_config(image)
            _check_owners(image, debian)
        else:
            _check_dpkg(image, debian, options)
        mb = image.about["Size"] / 1e6
        print(f"{image.name}: {mb:.0f} MB, {len(debian)} packages of Debian")
    print(f"the images serve, feed and drain: {_check_server(options, Image(options, 'server'))}")


if __name__ == "__main__":
    main()
