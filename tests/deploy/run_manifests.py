"""Runs commands and probes of rendered manifests without a cluster, and ends pods like kubelet.

A folder stands for each volume, and replaces the volume's mount path in commands and configs. If
this script runs as root, it runs the programs as the manifests' user, with no capability. If a
check fails, the script ends with a message that says what is wrong.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from manifests import Rendered, config_field, flags_of, pod_of

_LONGEST_WAIT_S = 300

# The manifests' ports may not be free on this machine.
_ANY_PORTS = {"--listen": "127.0.0.1:0", "--admin": "127.0.0.1:0"}


def _need(holds, text):
    if not holds:
        sys.exit(text)


def _wait_for(what, holds):
    """Returns the first true answer of holds()."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if answer := holds():
                return answer
        time.sleep(0.05)
    sys.exit(f"waited {_LONGEST_WAIT_S} s in vain for {what}")


def _as_user(pod):
    """The words that must stand before a command, so that the command runs as the pod's user, with
    no capability. Empty if this script does not run as root.
    """
    if os.geteuid() != 0:
        return []
    user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    ids = [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    return ["setpriv", *ids, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


class Pod:
    """A workload's pod. Each volume is a folder, and commands use paths in these folders."""

    def __init__(self, rendered, workload, folder):
        self.pod = pod_of(workload)
        self.folder = folder
        self.as_user = _as_user(self.pod)
        for volume in self.pod["volumes"]:
            path = folder / volume["name"]
            path.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                # The map's name without the hash of its data.
                name = volume["configMap"]["name"].rsplit("-", 1)[0]
                for file, text in rendered.config(name).items():
                    (path / file).write_text(self._with_paths(text))
            elif os.geteuid() == 0 and "emptyDir" in volume:
                os.chown(path, -1, self.pod["securityContext"]["fsGroup"])
                path.chmod(0o2770)

    def _with_paths(self, text, container=None):
        """In `text`, replaces each mount path of `container` by the volume's folder. Without
        `container`, replaces the mount paths of all containers of the pod.
        """
        containers = [container] if container else self.pod["containers"]
        mounts = {m["mountPath"]: m["name"] for c in containers for m in c["volumeMounts"]}
        for path in sorted(mounts, key=len, reverse=True):
            text = re.sub(
                rf"(?<![\w.]){re.escape(path)}(?=[/\"]|$)", str(self.folder / mounts[path]), text
            )
        return text

    def command(self, container, programs, words=None, replaced=None):
        """The command line of a container. For a probe of the container, `words` are the probe's
        command. `replaced` has new values for flags of the line.
        """
        line = words or container["command"] + container["args"]
        line = [self._with_paths(word, container) for word in line]
        for flag, value in (replaced or {}).items():
            (at,) = (i for i, word in enumerate(line) if word.startswith(flag + "="))
            line[at] = f"{flag}={value}"
        return [*self.as_user, programs / line[0], *line[1:]]


@contextlib.contextmanager
def _serving(pod, server, programs):
    """Starts the server of a pod, and waits until the server serves. Yields the server's process,
    ports and log. At the end of the block, kills the server.
    """
    ports = {name: pod.folder / "index" / f"{name}-port" for name in ("grpc", "admin")}
    for file in ports.values():
        file.unlink(missing_ok=True)
    line = pod.command(server, programs, replaced=_ANY_PORTS)
    line += [f"--port-file={ports['grpc']}", f"--admin-port-file={ports['admin']}"]
    log = pod.folder / "log"
    with open(log, "wb") as lines, subprocess.Popen(line, stdout=lines, stderr=lines) as process:
        try:

            def serves():
                _need(process.poll() is None, log.read_text())
                return all(file.exists() for file in ports.values())

            _wait_for("the server", serves)
            yield process, {n: int(f.read_text()) for n, f in ports.items()}, log
        finally:
            process.kill()
            process.wait()


def _end(process, pod, rendered):
    """Ends the server as kubelet does: within the part of the grace period that preStop leaves."""
    pause = rendered.server()["lifecycle"]["preStop"]["sleep"]["seconds"]
    process.send_signal(signal.SIGTERM)
    code = process.wait(pod.pod["terminationGracePeriodSeconds"] - pause)
    _need(code == 0, f"{rendered.name}: the server ended with {code}")


def _run(line, **more):
    done = subprocess.run(line, capture_output=True, text=True, check=False, **more)
    _need(done.returncode == 0, f"{line}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def _put_shards(data, folder):
    """Copies shards into the folder of a volume. The pod may read this folder, but not write."""
    shutil.copytree(data, folder, dirs_exist_ok=True)
    folder.chmod(0o755)


def _check_demo(options):
    """Runs the demo, from the init containers to a feed and its verdict."""
    rendered = Rendered(options.work / "demo.yaml")
    pod = Pod(rendered, rendered.one("Deployment"), options.work / "demo")
    for container in pod.pod["initContainers"]:
        _run(pod.command(container, options.build))
    server = rendered.server()
    job = rendered.one("Job", "systole-feed")
    trainer = Pod(rendered, job, options.work / "feed")
    with _serving(pod, server, options.build) as (process, ports, _):
        probe = server["livenessProbe"]["httpGet"]["path"]
        for page in (probe, "/readyz", "/metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{ports['admin']}{page}") as answer:
                _need(answer.status == 200, f"{page}: {answer.status}")
                metrics = answer.read().decode()
        (container,) = trainer.pod["containers"]
        there = {"--server": f"127.0.0.1:{ports['grpc']}"}
        said = _run(trainer.command(container, options.build, replaced=there))
        _need("The trainer waited" in said, f"the feed has no verdict: {said}")
        _end(process, pod, rendered)
    scaler = Rendered(options.work / "autoscale.yaml").one("HorizontalPodAutoscaler")
    adapter = pathlib.Path("deploy/kubernetes/components/autoscale/prometheus-adapter.yaml")
    for name in {m["pods"]["metric"]["name"] for m in scaler["spec"]["metrics"] if "pods" in m}:
        _need(f'\n{name}{{statistic="mean"}} ' in metrics, f"no server has the metric {name}")
        _need(f'{name}{{statistic="mean",' in adapter.read_text(), f"{adapter} lacks {name}")
    print(f"the demo makes images, serves and feeds: {said.splitlines()[-1]}")
    return pod.folder / "data"


def _make_certificate(certificate, folder):
    """Makes a certificate as cert-manager does, with its names and usages, signed by a new CA."""
    folder.mkdir()
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    ca = ["-keyout", folder / "ca.key", "-out", folder / "ca.crt", "-subj", "/CN=ca"]
    _run(["openssl", "req", "-x509", *key, *ca])
    names = ",".join(f"DNS:{name}" for name in certificate["spec"]["dnsNames"])
    words = {"server auth": "serverAuth", "client auth": "clientAuth"}
    usages = ",".join(words[u] for u in certificate["spec"]["usages"] if u in words)
    _run(
        ["openssl", "req", "-x509", *key, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key"]
        + ["-keyout", folder / "tls.key", "-out", folder / "tls.crt", "-subj", "/"]
        + ["-addext", f"subjectAltName={names}", "-addext", f"extendedKeyUsage={usages}"]
        + ["-addext", "basicConstraints=critical,CA:FALSE"]
    )


def _put_secret(folder, certificates, version, group):
    """Lays a secret out as kubelet does: each file is a link to a file in `..data`, and `..data` is
    a link to the folder of the newest version. If the script runs as root, root owns the files, and
    the group may read the files.
    """
    now = folder / f"..{version}"
    now.mkdir()
    for key in ("tls.crt", "tls.key", "ca.crt"):
        shutil.copy(certificates / key, now / key)
        if os.geteuid() == 0:
            os.chown(now / key, 0, group)
            (now / key).chmod(0o440)
        if not (folder / key).is_symlink():
            (folder / key).symlink_to(f"..data/{key}")
    (folder / "..data_tmp").symlink_to(now.name)
    (folder / "..data_tmp").rename(folder / "..data")


def _check_mtls(options, data):
    """The server reads TLS files that are laid out as by kubelet, refuses a client without TLS, and
    starts to use renewed files. The probe passes with the first and with the renewed files.
    """
    rendered = Rendered(options.work / "demo-mtls.yaml")
    pod = Pod(rendered, rendered.one("Deployment"), options.work / "mtls")
    _put_shards(data, pod.folder / "data")
    group = pod.pod["securityContext"]["fsGroup"]
    for version in ("first", "second"):
        _make_certificate(rendered.one("Certificate", "systole-server"), options.work / version)
    _put_secret(pod.folder / "tls", options.work / "first", "first", group)
    server = rendered.server()
    words = server["readinessProbe"]["exec"]["command"]
    with _serving(pod, server, options.build) as (process, ports, log):
        there = {"--server": f"127.0.0.1:{ports['grpc']}"}
        probe = pod.command(server, options.build, words=words, replaced=there)
        _run(probe)
        plain = [options.build / "systole", "status", f"--server={there['--server']}"]
        done = subprocess.run(plain, capture_output=True, text=True, check=False)
        _need(done.returncode == 4, f"a client without TLS: exit code {done.returncode}")
        _put_secret(pod.folder / "tls", options.work / "second", "second", group)
        # The probe trusts only the new CA, so it passes only if the server uses the new files.
        _run(probe)
        _need("TLS files have changed; new" in log.read_text(), log.read_text())
        _end(process, pod, rendered)
    print("with mutual TLS the server refuses a client without TLS, and takes renewed files")


def _check_index_job(options, data):
    """The job's pods index and verify all shards. If a shard is damaged, `systole verify` ends with
    exit code 1. For this code, the job's podFailurePolicy fails the pod's part of the job.
    """
    rendered = Rendered(options.work / "index-job.yaml")
    job = rendered.one("Job", "systole-index")
    pod = Pod(rendered, job, options.work / "index")
    shards = 20
    _run(
        [options.build / "systole", "pack", data / "images", pod.folder / "data" / "flowers"]
        + [f"--shards={shards}"]
    )
    if os.geteuid() == 0:
        for path in (pod.folder / "data", *(pod.folder / "data").iterdir()):
            os.chown(path, pod.pod["securityContext"]["runAsUser"], -1)
    env = rendered.config("systole-index")
    (value,) = env.values()
    values = {f"$({next(iter(env))})": pod._with_paths(value)}

    def lines_of(part):
        values["$(JOB_COMPLETION_INDEX)"] = str(part)
        for container in (*pod.pod["initContainers"], *pod.pod["containers"]):
            line = [str(word) for word in pod.command(container, options.build)]
            for name, text in values.items():
                line = [word.replace(name, text) for word in line]
            yield line

    indexed = set()
    for part in range(job["spec"]["completions"]):
        index, verify = lines_of(part)
        before = set((pod.folder / "data").glob("*.idx"))
        _run(index)
        made = set((pod.folder / "data").glob("*.idx")) - before
        _need(made, f"part {part} made no index")
        indexed |= made
        _run(verify)
    _need(len(indexed) == shards, f"{len(indexed)} indexes of {shards} shards")
    shard = next((pod.folder / "data").glob("*00007-of-*.tfrecord"))
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    shard.write_bytes(damaged)
    _, verify = lines_of(7)
    code = subprocess.run(verify, capture_output=True, check=False).returncode
    rules = job["spec"]["podFailurePolicy"]["rules"]
    (fails,) = (rule for rule in rules if rule["action"] == "FailIndex")
    _need(code == 1 and code in fails["onExitCodes"]["values"], f"damage: exit code {code}")
    print(
        f"the job's {job['spec']['completions']} pods index and verify {shards} shards, "
        "and find a damaged shard"
    )


def _check_config_of_base(options, data):
    """With all components, the manifests use only flags that the server has, and the paths in the
    flags and in the config are mounted. With the base alone, the server starts and ends.
    """
    rendered = Rendered(options.work / "all.yaml")
    server = rendered.server()
    known = set(re.findall(r"--[a-z-]+", _run([options.build / "systole-server", "--help"])))
    for word in server["args"]:
        _need(word.split("=")[0] in known, f"there is no flag {word}")
    mounts = {m["mountPath"]: m for m in server["volumeMounts"]}
    writable = [path for path, mount in mounts.items() if not mount.get("readOnly")]
    text = rendered.config("systole-config")["server.textproto"]
    for path in (config_field(text, "index_dir"), flags_of(server)["--block-cache"]):
        _need(any(path.startswith(at) for at in writable), f"{path} cannot be written")
    for flag in ("--config", "--tls-key", "--tls-certificate", "--tls-client-ca"):
        path = flags_of(server)[flag]
        _need(any(path.startswith(at + "/") for at in mounts), f"{flag}: {path} is not mounted")
    base = Rendered(options.work / "base.yaml")
    pod = Pod(base, base.one("Deployment"), options.work / "base")
    _put_shards(data, pod.folder / "data")
    with _serving(pod, base.server(), options.build) as (process, _, _):
        _end(process, pod, base)
    print("the base serves, and ends within the part of the grace period that preStop leaves")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # mktemp made the folder for its owner alone, but the manifests' user must reach the volumes.
    options.work.chmod(0o755)
    data = _check_demo(options)
    _check_config_of_base(options, data)
    _check_mtls(options, data)
    _check_index_job(options, data)


if __name__ == "__main__":
    main()
