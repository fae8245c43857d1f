"""Makes decode.tfrecord: what TensorFlow makes of JPEG, PNG and raw bytes.

usage: make_decode.py OUT    (with TensorFlow and NumPy; tests/golden/tensorflow/README.md)

Each record is a case as in geometry.tfrecord: `output`, applied to `stored`, gives `want_uint8` or
`want_floats` of `want_shape`. If a record has `decode_and_crop` in place of `output`, our result
may differ in the first and the last column, and everywhere in crops of 4 columns or fewer. The PNG
files are written here, because no encoder writes every kind. They go to tests/fuzz/corpus/png as
well. The JPEG files are those of tests/fuzz/corpus/jpeg.
"""

import os
import struct
import sys
import zlib
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

RANDOM = np.random.RandomState(21)
CORPUS = Path(__file__).resolve().parents[2] / "fuzz/corpus"
# Maps each kind to PNG's number for the kind and the samples per pixel.
KINDS = {"grey": (0, 1), "rgb": (2, 3), "palette": (3, 1), "grey_alpha": (4, 2), "rgba": (6, 4)}
DEPTHS = {"grey": (1, 2, 4, 8, 16), "palette": (1, 2, 4, 8), "rgb": (8, 16)}
# Adam7: for each pass the first column and row, and the steps to the next ones.
PASSES = [
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
]


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def rows(samples, depth):
    """The filtered rows of a pass; the filter changes from row to row."""
    packed = []
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            packed.append(b"".join(struct.pack(">H", value) for value in row))
        elif depth == 8:
            packed.append(bytes(row.tolist()))
        else:
            bits = "".join(f"{value:0{depth}b}" for value in row)
            bits += "0" * (-len(bits) % 8)
            packed.append(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)))
    pixel_bytes = max(1, samples.shape[2] * depth // 8)
    out = b""
    before = bytes(len(packed[0])) if packed else b""
    for y, row in enumerate(packed):
        kind = y % 3  # None, Sub, Up.
        if kind == 1:
            left = bytes(pixel_bytes) + row
            filtered = bytes((a - b) % 256 for a, b in zip(row, left, strict=False))
        elif kind == 2:
            filtered = bytes((a - b) % 256 for a, b in zip(row, before, strict=True))
        else:
            filtered = row
        out += bytes([kind]) + filtered
        before = row
    return out


def png(kind, depth, height, width, *, interlaced=False, transparent=False, chunks=b"", late=b""):
    """Returns a PNG file. `chunks` stand before the palette, `late` after it."""
    colour_type, channels = KINDS[kind]
    samples = RANDOM.randint(0, 2**depth, (height, width, channels))
    if kind == "rgb":
        samples[:, ::3] = samples[:, ::3, :1]  # Some pixels are grey.
    if interlaced:
        parts = [samples[y::dy, x::dx] for x, y, dx, dy in PASSES]
        data = b"".join(rows(part, depth) for part in parts if part.size)
    else:
        data = rows(samples, depth)
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, interlaced)
    )
    out += chunks
    if kind == "palette":
        out += chunk(b"PLTE", RANDOM.randint(0, 256, 3 * 2**depth, dtype=np.uint8).tobytes())
    if transparent:
        of_kind = {"palette": b"\x00\x80", "grey": b"\x00\x01", "rgb": b"\x00\x01" * 3}
        out += chunk(b"tRNS", of_kind[kind])
    out += late
    out += chunk(b"tEXt", b"Comment\0made for a test")
    compressed = zlib.compress(data)
    half = len(compressed) // 2
    out += chunk(b"IDAT", compressed[:half]) + chunk(b"IDAT", compressed[half:])
    return out + chunk(b"IEND", b"")


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def case(writer, transforms, stored, want, *, dtype, shape="", output="output"):
    spec = f"name: 'x' feature: 'x' dtype: {dtype} {shape} {transforms}"
    want = np.asarray(want)
    features = {
        output: bytes_feature(spec.encode()),
        "stored": bytes_feature(stored),
        "want_shape": tf.train.Feature(int64_list=tf.train.Int64List(value=want.shape)),
    }
    if want.dtype == np.uint8:
        features["want_uint8"] = bytes_feature(want.tobytes())
    else:
        features["want_floats"] = tf.train.Feature(
            float_list=tf.train.FloatList(value=want.ravel().tolist())
        )
    example = tf.train.Example(features=tf.train.Features(feature=features))
    writer.write(example.SerializeToString())


def whole(image):
    """A transform that changes nothing in an image of this size. It gives the output its shape."""
    return f"transforms {{ crop_or_pad {{ height: {image.shape[0]} width: {image.shape[1]} }} }}"


def png_cases(writer):
    folder = CORPUS / "png"
    folder.mkdir(exist_ok=True)
    for kind in KINDS:
        for depth in DEPTHS.get(kind, (8, 16)):
            for interlaced in (False, True):
                for transparent in (
                    (False, True) if kind in ("palette", "grey", "rgb") else (False,)
                ):
                    size = (13, 11) if interlaced else (5, 9)
                    file = png(kind, depth, *size, interlaced=interlaced, transparent=transparent)
                    name = f"{kind}{depth}{'_interlaced' * interlaced}{'_clear' * transparent}"
                    (folder / name).write_bytes(file)
                    for channels in (1, 3):
                        want = tf.io.decode_png(file, channels=channels).numpy()
                        for op in ("decode_png", "decode_image"):
                            decode = f"transforms {{ {op} {{ channels: {channels} }} }} "
                            case(writer, decode + whole(want), file, want, dtype="UINT8")


def profile(size=400, *, intent=0, space=b"RGB ", tag=(144, 12)):
    """An ICC profile that libpng accepts. Only its header has a meaning."""
    data = bytearray(RANDOM.randint(64, 192, size, dtype=np.uint8).tobytes())
    data[:132] = bytes(132)
    data[0:4] = struct.pack(">I", size)
    data[8] = 2
    data[12:24] = b"mntr" + space + b"XYZ "
    data[36:40] = b"acsp"
    data[64:68] = struct.pack(">I", intent)
    data[128:144] = struct.pack(">I", 1) + b"desc" + struct.pack(">II", *tag)
    return data


def forged(size, intent, adler, crc):
    """A profile with the checksums of one that libpng knows to be sRGB."""
    data = profile(size, intent=intent)
    # First Adler-32. It consists of a sum of the bytes, and of a sum weighted by their distance
    # from the end.
    begin, furthest = 200, 900
    missing = ((adler & 0xFFFF) - (zlib.adler32(data) & 0xFFFF) + 32760) % 65521 - 32760
    for i in range(abs(missing)):
        data[begin + i % 1000] += 1 if missing > 0 else -1
    weighted = ((adler >> 16) - (zlib.adler32(data) >> 16)) % 65521
    while weighted:
        distance = min(weighted, furthest)
        data[begin] += 1
        data[begin + distance] -= 1
        weighted -= distance
        begin += 1
    assert zlib.adler32(data) == adler
    # Then CRC-32. Adding 1, -2, 1 to neighbours does not change Adler-32. CRC-32 is linear, so
    # linear equations say which neighbours to change.
    rows = []
    for i in range(64):
        changed = bytearray(data)
        for offset, difference in enumerate((1, -2, 1)):
            changed[1300 + 4 * i + offset] += difference
        rows.append((zlib.crc32(changed) ^ zlib.crc32(data), 1 << i))
    want, chosen = zlib.crc32(data) ^ crc, 0
    for bit in range(32):
        pivot = next(row for row in rows if row[0] >> bit & 1)
        rows.remove(pivot)
        rows = [(a ^ pivot[0], b ^ pivot[1]) if a >> bit & 1 else (a, b) for a, b in rows]
        if want >> bit & 1:
            want, chosen = want ^ pivot[0], chosen ^ pivot[1]
    for i in range(64):
        for offset, difference in enumerate((1, -2, 1)) if chosen >> i & 1 else ():
            data[1300 + 4 * i + offset] += difference
    assert (zlib.adler32(data), zlib.crc32(data)) == (adler, crc)
    return data


def gama(value):
    return chunk(b"gAMA", struct.pack(">I", value))


def srgb(intent=0):
    return chunk(b"sRGB", bytes([intent]))


def iccp(data):
    return chunk(b"iCCP", b"a name\0\0" + zlib.compress(bytes(data)))


def sbit(*bits):
    return chunk(b"sBIT", bytes(bits))


def grey_cases(writer):
    """Files with chunks that give their gamma, most of them coloured, decoded as grey."""
    damaged = bytearray(gama(70000))
    damaged[-1] ^= 1
    good = profile()
    bad = profile()
    bad[36] ^= 1
    gammas = [16, 1000, 30000, 45455, 55555, 94999, 95000, 95238, 95239, 100000, 105000, 105001]
    gammas += [105263, 105264, 180000, 220000, 3 * 10**8, 625000000]
    chunks = {f"gama_{value}": gama(value) for value in gammas}
    # Chunks that libpng ignores, chunks that override others, and chunks after which libpng ignores
    # all others.
    chunks |= {
        "gama_0": gama(0),
        "gama_15_srgb": gama(15) + srgb(),
        "gama_large_srgb": gama(625000001) + srgb(),
        "gama_damaged_srgb": bytes(damaged) + srgb(),
        "gama_short_gama": chunk(b"gAMA", b"123") + gama(70000),
        "gama_twice": gama(70000) + gama(50000),
        "srgb": srgb(),
        "srgb_gama": srgb() + gama(70000),
        "srgb_near_gama": srgb() + gama(44000),
        "srgb_less_near_gama": srgb() + gama(43000),
        "gama_srgb": gama(44000) + srgb(1),
        "srgb_twice_gama": srgb() + srgb() + gama(44000),
        "srgb_4_gama": srgb(4) + gama(70000),
        "srgb_135_gama": srgb(135) + gama(70000),
        "iccp": iccp(good),
        "iccp_gama": iccp(good) + gama(70000),
        "iccp_srgb": iccp(good) + srgb(),
        "srgb_iccp_gama": srgb() + iccp(good) + gama(44000),
        "iccp_bad_gama": iccp(bad) + gama(70000),
        "iccp_bad_srgb": iccp(bad) + srgb(),
        "iccp_grey_gama": iccp(profile(space=b"GRAY")) + gama(70000),
        "iccp_tag_gama": iccp(profile(tag=(144, 257))) + gama(70000),
        "iccp_longer_gama": iccp(good + b"more") + gama(70000),
        "iccp_short_gama": chunk(b"iCCP", b"a\0\0" + bytes(88)) + gama(70000),
        "iccp_no_zlib_gama": chunk(b"iCCP", b"a\0\0" + bytes(89)) + gama(70000),
        "iccp_known": iccp(forged(3144, 0, 0xF784F3FB, 0x182EA552)),
        "iccp_known_gama": iccp(forged(3144, 1, 0x0398F3FC, 0xF29E526D)) + gama(70000),
        "iccp_known_old": iccp(forged(3024, 1, 0xA054D762, 0x5D5129CE)),
        "gama_iccp_known": gama(70000) + iccp(forged(3144, 0, 0xF784F3FB, 0x182EA552)),
        "iccp_almost_known": iccp(profile(3144)),
    }
    for name, before in chunks.items():
        for kind, depth in (("rgb", 8), ("rgb", 16)):
            grey_case(writer, f"{name}_{kind}{depth}", kind, depth, chunks=before)
    for kind, depth in (("palette", 8), ("palette", 2), ("rgba", 8), ("rgba", 16), ("grey", 8)):
        grey_case(writer, f"gama_{kind}{depth}", kind, depth, chunks=gama(70000))
    grey_case(writer, "gama_late_palette8", "palette", 8, late=gama(70000))
    grey_case(
        writer, "gama_late_rgb8", "rgb", 8, chunks=chunk(b"PLTE", bytes(30)), late=gama(70000)
    )
    # sBIT says how many of the 16 bits of a sample are significant.
    for bits in ((5, 5, 5), (5, 10, 7), (16, 8, 8), (0, 5, 5), (17, 5, 5), (5, 5, 5, 5)):
        name = "_".join(str(number) for number in bits)
        grey_case(writer, f"sbit_{name}_rgb16", "rgb", 16, chunks=sbit(*bits) + gama(45455))
    grey_case(writer, "sbit_5_6_7_16_rgba16", "rgba", 16, chunks=sbit(5, 6, 7, 16) + gama(45455))
    grey_case(writer, "sbit_twice", "rgb", 16, chunks=sbit(9, 9, 9) + sbit(5, 5, 5) + gama(45455))


def grey_case(writer, name, kind, depth, **chunks):
    file = png(kind, depth, 16, 24, **chunks)
    if depth == 16:  # The fuzzer needs each chunk only once.
        (CORPUS / "png" / name).write_bytes(file)
    want = tf.io.decode_png(file, channels=1).numpy()
    transforms = "transforms { decode_png { channels: 1 } } " + whole(want)
    case(writer, transforms, file, want, dtype="UINT8")


def jpeg_cases(writer):
    names = ["410", "411", "420", "420_progressive", "420_restarts", "422", "422_progressive"]
    names += ["440", "444", "444_progressive", "cmyk", "grey", "grey_progressive", "rgb"]
    names += ["ycck_420", "ycck_444"]
    for name in names:
        file = (CORPUS / f"jpeg/{name}.jpg").read_bytes()
        for dct in ("IFAST", "ISLOW"):
            method = f"INTEGER_{'FAST' if dct == 'IFAST' else 'ACCURATE'}"
            for plain in (False, True):
                for channels in (1, 3):
                    try:
                        want = tf.io.decode_jpeg(
                            file, channels=channels, dct_method=method, fancy_upscaling=not plain
                        ).numpy()
                    except tf.errors.InvalidArgumentError:
                        print(f"TensorFlow refuses {name} with {channels} channels")
                        continue
                    fields = f"dct: {dct} channels: {channels}"
                    decodes = [f"decode_jpeg {{ {fields}{' plain_upscaling: true' * plain} }}"]
                    if not plain:
                        decodes.append(f"decode_image {{ {fields} }}")
                    for decode in decodes:
                        transforms = f"transforms {{ {decode} }} {whole(want)}"
                        case(writer, transforms, file, want, dtype="UINT8")


def crop_cases(writer):
    """What tf.io.decode_and_crop_jpeg makes of files with every kind of colour subsampling."""
    names = ["410", "411", "420", "420_coarse", "420_progressive", "422", "440", "444", "grey"]
    for name in [*names, "ycck_420"]:
        file = (CORPUS / f"jpeg/{name}.jpg").read_bytes()
        for y, x, height, width in (
            (2, 3, 11, 7),
            (5, 4, 8, 9),
            (0, 0, 18, 12),
            (1, 8, 13, 11),
            (0, 16, 18, 3),
        ):
            want = tf.io.decode_and_crop_jpeg(
                file, [y, x, height, width], channels=3, dct_method="INTEGER_ACCURATE"
            ).numpy()
            crop = f"height: {height} width: {width} offset_height: {y} offset_width: {x}"
            transforms = f"transforms {{ decode_jpeg {{ }} }} transforms {{ crop {{ {crop} }} }}"
            case(writer, transforms, file, want, dtype="UINT8", output="decode_and_crop")


def raw_cases(writer):
    data = RANDOM.randint(0, 256, 48, dtype=np.uint8).tobytes()
    floats = np.array([0, 1.5, -2.25, 3e38, 1e-40, 7], np.float32).tobytes()
    for stored, file, cast in (
        ("UINT8", data, ""),
        ("UINT16", data, "transforms { cast { dtype: FLOAT32 } }"),
        ("FLOAT32", floats, ""),
    ):
        want = tf.io.decode_raw(file, tf.dtypes.as_dtype(stored.lower())).numpy()
        want = want.reshape(2, -1)
        dtype = "UINT8" if stored == "UINT8" else "FLOAT32"
        if stored == "UINT16":
            want = want.astype(np.float32)
        transforms = f"transforms {{ decode_raw {{ stored: {stored} }} }} {cast}"
        shape = f"shape: 2 shape: {want.shape[1]}"
        case(writer, transforms, file, want, dtype=dtype, shape=shape)


def main(path):
    with tf.io.TFRecordWriter(path) as writer:
        version = tf.train.Features(
            feature={"tensorflow": bytes_feature(tf.version.VERSION.encode())}
        )
        writer.write(tf.train.Example(features=version).SerializeToString())
        png_cases(writer)
        jpeg_cases(writer)
        raw_cases(writer)
        grey_cases(writer)
        crop_cases(writer)


main(sys.argv[1])
