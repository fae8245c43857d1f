"""Prepares a wheel for `auditwheel repair`, which adds the libraries that the wheel needs.

usage: gather.py WHEEL REPLACEMENT FOLDER [ROOT]

The libraries come from this machine. For a wheel for aarch64, they come from ROOT, the folder that
deploy/aarch64/make_root.sh has made.

REPLACEMENT is the library made from newer_glibc.c. It has functions that an older glibc lacks.
FOLDER gets a copy of each library that the wheel needs, and the changed wheel. The copies, and the
files in the wheel, are changed so that they run with an older glibc (symbol_versions.py). The wheel
also gets the licences of all that is in it. auditwheel must find the copies before the originals
(AUDITWHEEL_LD_LIBRARY_PATH).
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

from auditwheel.wheeltools import InWheel
from symbol_versions import Glibc, change_versions

GLIBC = r"ld-linux-.*|lib(c|m|dl|rt|util|pthread|resolv)"
# Libraries that every system has on which such a wheel can be installed (PEP 600).
_PROVIDED = rf"{GLIBC}|lib(gcc_s|z|expat)"
# PEP 600 says that systems have libstdc++, too, but the release may be older than ours. Ours gets
# another name, so that auditwheel adds it to the wheel.
_STDCXX, _OWN_STDCXX = "libstdc++.so.6", "libstdc++-systole.so.6"

# Headers whose functions become part of the programs. Boost is not in this list, because its
# licence need not come with programs.
_HEADERS = ["usr/include/CLI/CLI.hpp"]
_COMMON_LICENSES = "usr/share/common-licenses"


def main(wheel: Path, replacement: Path, folder: Path, debian: Debian) -> None:
    with InWheel(wheel, folder / wheel.name) as root:
        files = [path for path in Path(root).rglob("*") if path.is_file() and _is_elf(path)]
        originals = debian.find_libraries(files, _PROVIDED)
        for name, original in originals.items():
            files.append(folder / (_OWN_STDCXX if name == _STDCXX else name))
            shutil.copyfile(original, files[-1])
        files.append(folder / replacement.name)
        shutil.copyfile(replacement, files[-1])
        change(files, replacement, debian)
        [information] = Path(root).glob("*.dist-info")
        headers = [debian.root / header for header in _HEADERS]
        _add_licenses(information / "licenses", [*originals.values(), *headers], debian)


class Debian:
    """The system whose libraries a wheel gets: this machine, or the folder of an aarch64 system."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root.resolve() if root else Path("/")
        self._list_libraries: list[str | Path] = ["ldd"]
        if root:
            loader = self.root / "lib/ld-linux-aarch64.so.1"
            self._list_libraries = ["qemu-aarch64-static", "-L", self.root, loader, "--list"]

    def python(self) -> Path:
        """The system's Python."""
        python = Path(sys.executable) if self.root == Path("/") else self.root / "usr/bin/python3"
        return python.resolve()

    def find_libraries(self, files: list[Path], provided: str) -> dict[str, Path]:
        """All libraries that these files need, directly or through another library, by name.
        Leaves out names that match `provided`. Raises FileNotFoundError if a library is missing.
        """
        found = {}
        lines = "".join(_run(*self._list_libraries, file) for file in files)
        # If the loader itself is listed with a path as its name, the pattern leaves the loader out.
        for name, path in re.findall(r"^\s*([^\s/]+) => (\S+)", lines, re.MULTILINE):
            if path == "not":
                raise FileNotFoundError(f"the loader does not find {name}")
            if not re.fullmatch(rf"({provided})\.so\.\d+", name):
                found[name] = self._in_root(path).resolve()
        return found

    def find_packages(self, files: list[Path]) -> set[str]:
        """The names of the packages that own these files."""
        owners = {}
        for line in self.query("--search", *(f"*/{file.name}" for file in files)).splitlines():
            package, path = line.split(": ", 1)
            owners[self._in_root(path).resolve()] = package.split(":")[0]
        return {owners[file] for file in files}

    def query(self, *arguments: str) -> str:
        """What dpkg-query prints about the system's packages."""
        return _run("dpkg-query", f"--root={self.root}", *arguments)

    def _in_root(self, path: str) -> Path:
        return self.root / path.removeprefix("/")


def change(files: list[Path], replacement: Path, debian: Debian) -> None:
    """Changes programs and libraries so that they run with an older glibc. Most of the changed
    files need `replacement`, so the loader must find that library by its name.
    """
    of_glibc = debian.find_libraries([debian.python()], provided=r"(?!lib[cm]\.so).*")
    glibc = Glibc(list(of_glibc.values()), replacement)
    for path in files:
        options = ["--replace-needed", _STDCXX, _OWN_STDCXX]
        if change_versions(path, glibc) and path.name != replacement.name:
            # patchelf puts the replacement before libc, so the loader takes __libc_start_main from
            # the replacement.
            options += ["--add-needed", replacement.name]
        if path.name == _OWN_STDCXX:
            options += ["--set-soname", _OWN_STDCXX]
        _run("patchelf", *options, path)


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _add_licenses(folder: Path, files: list[Path], debian: Debian) -> None:
    """Adds Debian's copyright file of each package that owns one of the files, and the licences
    that these copyright files name."""
    folder.mkdir()
    shutil.copyfile(Path(__file__).parents[3] / "LICENSE", folder / "LICENSE")
    named = set()
    packages = sorted(debian.find_packages(files))
    for package in packages:
        text = (debian.root / f"usr/share/doc/{package}/copyright").read_text()
        (folder / f"{package}.txt").write_text(text)
        named.update(re.findall(rf"/{_COMMON_LICENSES}/([A-Za-z0-9.-]*[A-Za-z0-9])", text))
    for name in sorted(named):
        shutil.copyfile(debian.root / _COMMON_LICENSES / name, folder / f"{name}.txt")
    versions = debian.query("--show", "--showformat=${Package} ${Version}\n", *packages)
    (folder / "debian-packages.txt").write_text(versions)
    for file in importlib.metadata.files("nanobind") or []:
        if file.name == "LICENSE":
            (folder / "nanobind.txt").write_text(file.read_text())
        if file.name == "robin_map.h":  # Its licence is the comment that it begins with.
            (folder / "robin-map.txt").write_text(file.read_text().split("*/")[0])


if __name__ == "__main__":
    # InWheel changes the working directory.
    arguments = [Path(argument).resolve() for argument in sys.argv[1:]]
    main(*arguments[:3], Debian(*arguments[3:]))
