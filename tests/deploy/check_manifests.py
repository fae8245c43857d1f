"""Renders deploy/kubernetes and checks what can be checked without running it.

If a check fails, the program ends with a line that says what is wrong.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import yaml
from manifests import (
    Rendered,
    config_field,
    containers_of,
    flags_of,
    pod_of,
    quantity,
    size,
)

# Two versions of Kubernetes: the oldest that has everything the manifests use, such as preStop's
# sleep, and a current one.
_KUBERNETES = ("1.30", "1.37")

# Kinds that are not part of Kubernetes: an operator such as cert-manager adds them to a cluster.
# kubernetes_validate has no schemas for them. The values are the fields of each kind's `spec` that
# the manifests may use, from the operator's documentation.
_CUSTOM = {
    ("cert-manager.io/v1", "Issuer"): {"selfSigned", "ca"},
    ("cert-manager.io/v1", "Certificate"): {
        *("secretName", "issuerRef", "commonName", "dnsNames", "isCA"),
        *("duration", "renewBefore", "usages", "privateKey"),
    },
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {"selector", "namespaceSelector", "endpoints"},
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        *("selector", "namespaceSelector", "podMetricsEndpoints"),
    },
    ("monitoring.coreos.com/v1", "PrometheusRule"): {"groups"},
}

_BUCKETS = ("bucket-gke", "bucket-eks", "bucket-web-identity")
_COMBINATIONS = {
    "base": ("base", ()),
    "autoscale": ("base", ("autoscale",)),
    "monitoring": ("base", ("monitoring",)),
    "mtls": ("base", ("mtls",)),
    **{bucket: ("base", (bucket,)) for bucket in _BUCKETS},
    **{f"index-{bucket}": ("index-job", (bucket,)) for bucket in _BUCKETS},
    "all": ("base", ("bucket-gke", "autoscale", "monitoring", "mtls")),
    "demo": ("demo", ()),
    "demo-mtls": ("demo", ("mtls",)),
    "index-job": ("index-job", ()),
    "trainer": ("trainer", ()),
}


def _need(holds, text):
    if not holds:
        sys.exit(text)


def _render(options):
    """Renders each combination, and the two examples of README.md, into options.work."""
    tree = options.work / "kubernetes"
    shutil.copytree("deploy/kubernetes", tree)
    page = (tree / "README.md").read_text()
    shown, shown_job = re.findall(r"```yaml\n(# kustomization.yaml\n.*?)```", page, re.DOTALL)
    kustomizations = {
        name: yaml.safe_dump(
            {"resources": [f"../{base}"], "components": [f"../components/{c}" for c in components]}
        )
        for name, (base, components) in _COMBINATIONS.items()
    }
    own = tree / "own"
    own.mkdir()
    (own / "server.textproto").write_text(
        re.findall(r"```\n(# server.textproto\n.*?)```", page, re.DOTALL)[0]
    )
    kustomizations["shown"] = shown.replace("systole/deploy/kubernetes/", "../")
    kustomizations["shown_job"] = shown_job.replace("systole/deploy/kubernetes/", "../")
    all_rendered = {}
    for name, text in kustomizations.items():
        (own / "kustomization.yaml").write_text(text)
        done = subprocess.run(
            [*options.render.split(), own], capture_output=True, text=True, check=False
        )
        _need(done.returncode == 0 and not done.stderr, f"{name}: {done.stderr}")
        path = options.work / f"{name}.yaml"
        path.write_text(done.stdout)
        all_rendered[name] = Rendered(path)
    return all_rendered


def _check_schemas(rendered):
    for thing in rendered.objects:
        where = f"{rendered.name}: {thing['kind']} {thing['metadata']['name']}"
        custom = _CUSTOM.get((thing["apiVersion"], thing["kind"]))
        if custom is not None:
            extra = sorted(set(thing["spec"]) - custom)
            _need(not extra, f"{where}: unknown fields: {', '.join(extra)}")
            continue
        for version in _KUBERNETES:
            try:
                kubernetes_validate.validate(thing, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"{where}: Kubernetes {version} refuses it: {error}")
    return len(rendered.objects)


def _check_names(rendered):
    """Each object that another object names exists, in the same namespace."""
    for thing in rendered.objects:
        if thing["kind"] != "Namespace":
            _need(thing["metadata"].get("namespace") == "systole", f"{rendered.name}: {thing}")
    maps = {o["metadata"]["name"] for o in rendered.all("ConfigMap")}
    accounts = {o["metadata"]["name"] for o in rendered.all("ServiceAccount")} | {"default"}
    secrets = {o["spec"]["secretName"] for o in rendered.all("Certificate")}
    for workload in rendered.workloads():
        pod = pod_of(workload)
        _need(
            pod.get("serviceAccountName", "default") in accounts,
            f"{rendered.name}: a pod names a service account that does not exist",
        )
        for volume in pod["volumes"]:
            _need(
                volume.get("configMap", {}).get("name") in maps | {None},
                f"a volume names a ConfigMap that does not exist: {volume}",
            )
            _need(
                volume.get("secret", {}).get("secretName") in secrets | {None},
                f"a volume names a Secret that does not exist: {volume}",
            )
    for account in rendered.all("ServiceAccount"):
        _need(
            account["automountServiceAccountToken"] is False,
            f"{rendered.name}: pods of this account get a token: {account}",
        )
    issuers = {o["metadata"]["name"] for o in rendered.all("Issuer")}
    for certificate in rendered.all("Certificate"):
        _need(
            certificate["spec"]["issuerRef"]["name"] in issuers,
            f"a certificate names an Issuer that does not exist: {certificate}",
        )


def _check_restricted(rendered):
    """Every pod obeys Kubernetes' `restricted` level, and has read-only root file systems."""
    for workload in rendered.workloads():
        pod = pod_of(workload)
        where = f"{rendered.name}: {workload['metadata']['name']}"
        security = pod["securityContext"]
        _need(security["runAsNonRoot"] and security["runAsUser"] > 0, f"{where}: runs as root")
        _need(
            security["seccompProfile"] == {"type": "RuntimeDefault"},
            f"{where}: want seccompProfile RuntimeDefault",
        )
        _need(pod["automountServiceAccountToken"] is False, f"{where}: its pods get a token")
        for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
            _need(not pod.get(forbidden), f"{where}: sets {forbidden}")
        for volume in pod["volumes"]:
            _need("hostPath" not in volume, f"{where}: mounts a path of the host")
        for container in containers_of(workload):
            own = container["securityContext"]
            _need(
                own["allowPrivilegeEscalation"] is False,
                f"{where}: want allowPrivilegeEscalation: false",
            )
            _need(
                own["readOnlyRootFilesystem"] is True,
                f"{where}: its root file system can be written",
            )
            _need(
                own["capabilities"] == {"drop": ["ALL"]},
                f"{where}: want capabilities with drop: [ALL] alone",
            )
            _need(not own.get("privileged"), f"{where}: is privileged")
            _need(
                set(container["resources"]) == {"requests", "limits"},
                f"{where}: want resources with requests and limits",
            )


def _check_ports(rendered):
    """Flags, containers, services, probes and policies agree on the ports."""
    server = rendered.server()
    flags = flags_of(server)
    ports = {p["name"]: p["containerPort"] for p in server["ports"]}
    wanted = {
        n: int(flags[f].rsplit(":", 1)[1]) for n, f in (("grpc", "--listen"), ("admin", "--admin"))
    }
    _need(ports == wanted, f"{rendered.name}: ports {ports} and flags {wanted}")
    service = rendered.one("Service")["spec"]
    _need(service["clusterIP"] == "None", "the service is not headless")
    for port in service["ports"]:
        _need(port["port"] == ports[port["targetPort"]], f"{rendered.name}: service {port}")
    for probe in (server["livenessProbe"], server["readinessProbe"]):
        if "grpc" in probe:
            _need(probe["grpc"]["port"] == ports["grpc"], f"{rendered.name}: {probe}")
        elif "exec" in probe:
            _need(f"--server=127.0.0.1:{ports['grpc']}" in probe["exec"]["command"], f"{probe}")
        else:
            handler = probe.get("httpGet", probe.get("tcpSocket"))
            _need(handler["port"] == "admin", f"{rendered.name}: {probe}")
    rules = rendered.one("NetworkPolicy")["spec"]["ingress"]
    open_ports = [p["port"] for rule in rules for p in rule["ports"]]
    _need(sorted(open_ports) == sorted(ports.values()), f"{rendered.name}: policy {open_ports}")
    for monitor in rendered.all("ServiceMonitor"):
        _need(
            monitor["spec"]["endpoints"][0]["port"] in {p["name"] for p in service["ports"]},
            "a ServiceMonitor names a port that the service does not have",
        )
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        _need(chosen <= rendered.one("Service")["metadata"]["labels"].items(), f"{monitor}")


def _check_selectors(rendered, trainer):
    """Selectors choose the server's pods and no pods of jobs. The policy lets jobs connect."""
    labels = rendered.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    chosen = [
        rendered.one("Service")["spec"]["selector"],
        rendered.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        rendered.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        rendered.one("Deployment")["spec"]["selector"]["matchLabels"],
    ]
    for selector in chosen:
        _need(selector.items() <= labels.items(), f"{rendered.name}: {selector} and {labels}")
        for job in rendered.all("Job"):
            of_job = job["spec"]["template"]["metadata"]["labels"]
            _need(not selector.items() <= of_job.items(), f"{rendered.name}: {selector}")
    for scaler in rendered.all("HorizontalPodAutoscaler"):
        _need(scaler["spec"]["scaleTargetRef"]["name"] == "systole", f"{scaler}")
        _need(
            "replicas" not in rendered.one("Deployment")["spec"],
            "the Deployment sets replicas, although an autoscaler does",
        )
    (trainers,) = {
        tuple(source["podSelector"]["matchLabels"].items())
        for rule in rendered.one("NetworkPolicy")["spec"]["ingress"]
        for source in rule["from"]
        if "podSelector" in source
    }
    for job in [*rendered.all("Job"), *trainer.all("Job")]:
        of_job = job["spec"]["template"]["metadata"]["labels"]
        _need(
            dict(trainers).items() <= of_job.items(),
            f"{rendered.name}: the policy shuts out {of_job}",
        )


def _check_monitored(monitoring, trainer, rule):
    """Prometheus selects the monitors and rules by label. The PodMonitor finds the trainers."""
    monitors = [*monitoring.all("ServiceMonitor"), *monitoring.all("PodMonitor")]
    chosen = {
        tuple(o["metadata"]["labels"].items()) for o in [*monitors, rule.one("PrometheusRule")]
    }
    _need(chosen == {(("release", "kube-prometheus-stack"),)}, f"Prometheus chooses {chosen}")
    (pods,) = (m["spec"] for m in monitoring.all("PodMonitor"))
    pod = trainer.one("Job", "systole-trainer")["spec"]["template"]
    _need(pods["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items(), f"{pods}")
    (port,) = (p["name"] for p in pod["spec"]["containers"][0]["ports"])
    _need(port == pods["podMetricsEndpoints"][0]["port"], f"{port} and {pods}")


def _check_room(rendered):
    """The server's memory and cache fit into its pod; its shutdown fits into the grace period."""
    pod = pod_of(rendered.one("Deployment"))
    server = rendered.server()
    config = rendered.config("systole-config")["server.textproto"]
    where = rendered.name
    budget = size(config_field(config, "memory_budget") or "1GB")
    memory = budget + 2 * (64 << 20)  # 64 MiB when idle, 64 MiB that no limit counts.
    memory += size(config_field(config, "read_budget") or str(budget // 4))
    memory += size(config_field(config, "decompression_cache") or "256MB")
    memory += size(config_field(config, "cache_memory") or "0")
    limit = quantity(server["resources"]["limits"]["memory"])
    _need(memory <= limit, f"{where}: the server may take {memory} bytes of {limit}")
    volumes = {v["name"]: v for v in pod["volumes"]}
    cache = quantity(volumes["cache"]["emptyDir"]["sizeLimit"])
    blocks = size(config_field(config, "block_cache_bytes") or "64GB")
    _need(blocks * 1.05 <= cache, f"{where}: a cache of {blocks} bytes on a volume of {cache}")
    disk = blocks * 1.05 + quantity(volumes["index"]["emptyDir"]["sizeLimit"])
    whole = quantity(server["resources"]["limits"]["ephemeral-storage"])
    if where.split("-")[0] != "demo":
        _need(disk <= whole, f"{where}: {disk} bytes on a disk of {whole}")
    drain = int(config_field(config, "drain_timeout").removesuffix("s"))
    pause = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = pod["terminationGracePeriodSeconds"]
    _need(grace >= pause + drain + 5, f"{where}: grace {grace} s, pause {pause} s, drain {drain} s")
    # A client looks the server's name up every 5 s.
    _need(pause >= 10, f"{where}: preStop waits {pause} s, want 10: clients see old addresses")


def _check_certificates(rendered):
    server = rendered.one("Certificate", "systole-server")
    names = server["spec"]["dnsNames"]
    service, namespace = "systole", "systole"
    for name in (service, f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"):
        _need(name in names, f"{rendered.name}: the certificate is not for {name}")
    command = rendered.server()["readinessProbe"]["exec"]["command"]
    (asked,) = (word for word in command if word.startswith("--tls-server-name="))
    _need(asked.split("=")[1] in names, f"{rendered.name}: {asked}")
    _need("--insecure" in rendered.server()["args"], "the base is plain text")
    for monitor in rendered.all("ServiceMonitor"):
        tls = monitor["spec"]["endpoints"][0]["tlsConfig"]
        _need(tls["serverName"] in names, f"{rendered.name}: Prometheus asks for {tls}")


def _check_alerts(options, rendered):
    """README.md's command makes a PrometheusRule of alerts.yml. The alerts' job is the service."""
    page = pathlib.Path("deploy/kubernetes/README.md").read_text()
    (command,) = re.findall(r"```sh\n(\{\n[^`]*alerts\.yml\n\}) \| kubectl apply -f -\n```", page)
    made = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, check=True)
    (options.work / "rule.yaml").write_text(made.stdout)
    rule = Rendered(options.work / "rule.yaml")
    _check_schemas(rule)
    alerts = yaml.safe_load(pathlib.Path("deploy/prometheus/alerts.yml").read_text())
    _need(rule.one("PrometheusRule")["spec"] == alerts, "the rule is not alerts.yml")
    jobs = set(re.findall(r'job="(\w+)"', yaml.safe_dump(alerts)))
    _need(jobs == {rendered.one("Service")["metadata"]["name"]}, f"alerts are about {jobs}")
    return rule


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", required=True, help="the command that renders a folder")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    all_rendered = _render(options)
    objects = 0
    for rendered in all_rendered.values():
        objects += _check_schemas(rendered)
        _check_names(rendered)
        _check_restricted(rendered)
        if not rendered.all("Deployment"):
            continue
        _check_ports(rendered)
        _check_selectors(rendered, all_rendered["trainer"])
        _check_room(rendered)
        if rendered.all("Certificate"):
            _check_certificates(rendered)
    rule = _check_alerts(options, all_rendered["monitoring"])
    _check_monitored(all_rendered["monitoring"], all_rendered["trainer"], rule)
    versions = " and ".join(_KUBERNETES)
    print(
        f"{objects} objects of {len(all_rendered)} trees fit Kubernetes {versions}, and each other"
    )


if __name__ == "__main__":
    main()
