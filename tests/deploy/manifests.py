"""Reads a rendered tree, for the checks of deploy/kubernetes."""

import re

import yaml

_UNITS = {"": 1, "m": 1e-3, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def quantity(text):
    """A quantity of Kubernetes, such as 500m or 7Gi, as a number."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return float(number) * _UNITS[unit]


def size(text):
    """A size in the server's form, such as 512MB, in bytes. A KB has 1,024 bytes."""
    number, unit = re.fullmatch(r"(\d+)(KB|MB|GB|TB|)", text).groups()
    return int(number) << {"": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}[unit]


class Rendered:
    """The objects of a rendered kustomization."""

    def __init__(self, path):
        self.name = path.stem
        self.objects = list(yaml.safe_load_all(path.read_text()))

    def all(self, kind):
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind, name="systole"):
        (found,) = (o for o in self.all(kind) if o["metadata"]["name"] == name)
        return found

    def config(self, name):
        """The data of the config map with this name, whatever its hash is."""
        (found,) = (
            o for o in self.all("ConfigMap") if o["metadata"]["name"].startswith(name + "-")
        )
        return found["data"]

    def workloads(self):
        return self.all("Deployment") + self.all("Job")

    def server(self):
        return self.one("Deployment")["spec"]["template"]["spec"]["containers"][0]


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def containers_of(workload):
    pod = pod_of(workload)
    return pod.get("initContainers", []) + pod["containers"]


def flags_of(server):
    """The server's arguments that have a value. If a flag comes twice, its last value counts."""
    return dict(arg.split("=", 1) for arg in server["args"] if "=" in arg)


def config_field(text, field):
    """The value of `field`, which the server's config writes between quotes. None if absent."""
    found = re.search(rf'^{field}: "([^"]*)"', text, re.MULTILINE)
    return found and found[1]
