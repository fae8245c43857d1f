"""Writes archives with webdataset, and what webdataset reads back from them.

usage: make_samples.py FOLDER    (with webdataset; README.md says which)

samples.txt has a line for each feature that a sample should have:
  <archive> <number of the sample> <feature, hex> bytes|int64|float <value>
The value is a number for int64, else the bytes or the float in hex. "-" stands for no bytes.
"""

import io
import json
import struct
import sys
import tarfile

import webdataset as wds

folder = sys.argv[1]
LONG = "a-long-name-of-a-folder/" * 7


def content(number, size):
    return bytes((i * (number + 3) // 7 + number) % 251 for i in range(size))


def write_samples(name, prefix, samples, **options):
    with wds.TarWriter(f"{folder}/{name}", mtime=1_700_000_000, **options) as writer:
        for number in range(samples):
            writer.write(
                {
                    "__key__": f"{prefix}{number:04}",
                    # Sizes around a block's end, and an empty file.
                    "jpg": content(number, [0, 1, 511, 512, 513, 1500][number % 6]),
                    "cls": number * 7 - 3,
                    "txt": f"sample {number}: \u00e4\u2192\U0001f337",
                    "json": {
                        "width": number,
                        "score": number / 8,
                        "name": f'"{number}"\n\u00e4\U0001f337',
                        "flag": number % 2 == 0,
                        "none": None,
                        "list": [1, {"deep": 2}],
                        "a/b": -(2**63) + number,
                        "big": 10**19,
                    },
                    "seg.png": content(number + 1, 100),
                }
            )


def write_odd(name):
    """What other tools put into archives."""
    with tarfile.open(f"{folder}/{name}", "w", format=tarfile.USTAR_FORMAT) as archive:

        def add(path, data=b"", kind=tarfile.REGTYPE):
            info = tarfile.TarInfo(path)
            info.type = kind
            info.size = len(data) if kind == tarfile.REGTYPE else 0
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = "a/1.txt"
            archive.addfile(info, io.BytesIO(data))

        add("a", kind=tarfile.DIRTYPE)
        add("__meta__/a.txt", b"metadata")
        add("__info__", b"metadata")
        add("a/README", b"no extension")
        add("a/.hidden.txt", b"begins with a dot, in a folder without one")
        add("a.b/.hidden.txt", b"begins with a dot, in a folder with one")
        add(".hidden.txt", b"begins with a dot, in no folder")
        add("a/1.TXT", b"upper case")
        add("a/link.txt", kind=tarfile.SYMTYPE)
        add("a/1.Seg.PNG", b"two parts")
        add("a.b/1.txt", b"a dot in the folder")
        add("a.b/noext", b"a dot in the folder alone")
        add("a/1.txt", b"the first key again")
        add("2.", b"an empty extension")
        add("2.cls", b" +12\n")
        add("2.json", b'[1, "no object"]')
        add("__x__y/3.txt", b"no metadata")
        add("3/4.__x__", b"no metadata either")


write_samples("ustar.tar", "train/", 13)
write_samples("pax.tar", LONG + "\u00e4\u2192/", 5, format="PAX_FORMAT")
write_samples("gnu.tar", LONG, 5, format="GNU_FORMAT")
write_samples("compressed.tar.gz", "", 13, compress=True)
write_odd("odd.tar")


def features_of(sample):
    for feature, data in sample.items():
        last = feature.rpartition(".")[2]
        if feature in ("__url__", "__local_path__"):
            continue
        if feature == "__key__":
            yield feature, "bytes", data.encode().hex()
        elif last == "cls":
            yield feature, "int64", str(int(data))
        else:
            yield feature, "bytes", data.hex()
        if last != "json" or not isinstance(json.loads(data), dict):
            continue
        for member, value in json.loads(data).items():
            if isinstance(value, str):
                yield f"{feature}/{member}", "bytes", value.encode().hex()
            elif isinstance(value, int) and value < 2**63:
                yield f"{feature}/{member}", "int64", str(int(value))
            elif isinstance(value, (int, float)):
                yield f"{feature}/{member}", "float", struct.pack("<f", value).hex()


lines = []
for name in ("ustar.tar", "pax.tar", "gnu.tar", "compressed.tar.gz", "odd.tar"):
    for number, sample in enumerate(wds.WebDataset(f"{folder}/{name}", shardshuffle=False)):
        for feature, kind, value in features_of(sample):
            feature = feature.encode().hex() or "-"
            lines.append(f"{name} {number} {feature} {kind} {value or '-'}\n")

with open(f"{folder}/samples.txt", "w") as file:
    file.writelines(lines)
