"""Checks what self-contained wheels say of themselves.

usage: check_wheel.py WHEEL..                  (it needs Debian's package database, and binutils)
       check_wheel.py --aarch64 ROOT WHEEL..   (ROOT: the folder of deploy/aarch64/make_root.sh)

* A wheel is for glibc 2.31 and newer, and for the Pythons that its name says.
* No file in the wheel needs a newer version of glibc, or the system's libstdc++. No file defines a
  symbol that readelf shows as UNIQUE. The loader keeps such a symbol only once in a process, so
  another library's symbol could take its place.
* The wheel has the licence of every library, with all texts that the licence names.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TAG = r"-(cp310-cp310|cp311-cp311|cp312-abi3)-manylinux_2_31_{}\.whl$"
COMMON_LICENSES = Path("/usr/share/common-licenses")


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def owners(machine: str, root: str) -> dict[str, set[str]]:
    """The Debian packages that have a library, by the library's name up to `.so`."""
    query = ("dpkg-query", f"--root={root}", "--search", f"*/{machine}-linux-gnu/*.so.*")
    found: dict[str, set[str]] = {}
    for line in output_of(*query).splitlines():
        packages, path = line.split(": ", 1)
        found.setdefault(Path(path).name.split(".so")[0], set()).add(packages.split(":")[0])
    return found


def check_licenses(archive: zipfile.ZipFile, packages: dict[str, set[str]]) -> int:
    licenses = {
        name.rpartition("/")[2]: archive.read(name).decode()
        for name in archive.namelist()
        if ".dist-info/licenses/" in name and not name.endswith("/")
    }
    for library in archive.namelist():
        if not library.startswith("systole.libs/lib") or "libsystole-glibc" in library:
            continue  # libsystole-glibc is our own: LICENSE has it.
        # auditwheel puts a part of the file's hash before the first dot.
        name = re.sub(r"-[0-9a-f]{8}\.", ".", Path(library).name, count=1).split(".so")[0]
        name = name.removesuffix("-systole")
        assert any(f"{package}.txt" in licenses for package in packages[name]), library
    for needed in ("LICENSE", "libcli11-dev.txt", "nanobind.txt", "robin-map.txt"):
        assert "opyright" in licenses[needed], needed
    for name, text in licenses.items():
        for named in re.findall(rf"{COMMON_LICENSES}/([A-Za-z0-9.-]*[A-Za-z0-9])", text):
            wanted = (COMMON_LICENSES / named).read_text()
            assert licenses[f"{named}.txt"] == wanted, f"{name} names {named}"
    return len(licenses)


def check_symbols(folder: Path) -> int:
    paths = [path for path in folder.rglob("*") if ".so" in path.name or path.parent.name == "bin"]
    for path in paths:
        symbols = output_of("readelf", "--wide", "--dyn-syms", "--version-info", path)
        for version in re.findall(r"\bGLIBC_2\.(\d+)", symbols):
            assert int(version) <= 31, f"{path} needs glibc 2.{version}"
        assert not re.search(r"GLIBCXX_|CXXABI_|\bUNIQUE\b", symbols), path
        assert "[libstdc++.so.6]" not in output_of("readelf", "--dynamic", path), path
    return len(paths)


def main(machine: str, root: str, wheels: list[Path]) -> None:
    packages = owners(machine, root)
    for wheel in wheels:
        assert re.search(TAG.format(machine), wheel.name), wheel.name
        with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
            licenses = check_licenses(archive, packages)
            archive.extractall(folder)
            files = check_symbols(Path(folder))
        print(f"{wheel.name}: {files} programs and libraries, {licenses} texts of licences")


if __name__ == "__main__":
    if sys.argv[1] == "--aarch64":
        main("aarch64", sys.argv[2], [Path(argument) for argument in sys.argv[3:]])
    else:
        main("x86_64", "/", [Path(argument) for argument in sys.argv[1:]])
