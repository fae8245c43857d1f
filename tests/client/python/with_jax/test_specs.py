"""Specs: every form of one, and the classes made from feed.proto."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import systole
from conftest import ROOT, spec_text
from systole import _spec, _systole
from systole._message import spec_bytes

TYPED = systole.FeedSpec(
    dataset="flowers",
    seed=5,
    epochs=2,
    shuffle=systole.Shuffle("global"),
    global_batch=16,
    num_cores=4,
    tail="PAD",
    outputs={
        "image": systole.Image(
            "image",
            random_resized_crop=(40, 32),
            flip=True,
            normalize={"mean": [127], "stddev": [63]},
            dtype="bfloat16",
        ),
        "label": systole.Output(feature="label", dtype="int32"),
        "id": systole.Output(feature="record_id", dtype="INT64"),
    },
)


def test_every_form_of_a_spec_is_the_same(write_spec, tmp_path):
    text = write_spec(spec_text())
    wanted = spec_bytes(text)
    as_json = tmp_path / "spec.json"
    as_json.write_text(_systole.spec_to_json(wanted))

    class Protobuf:  # What protobuf's own message offers.
        def SerializeToString(self) -> bytes:
            return wanted

    for form in (
        Path(text),
        str(as_json),
        json.loads(as_json.read_text()),
        TYPED,
        Protobuf(),
    ):
        assert spec_bytes(form) == wanted


def test_str_is_textproto_and_reads_back(tmp_path):
    path = tmp_path / "typed.textproto"
    path.write_text(str(TYPED))
    assert spec_bytes(path) == spec_bytes(TYPED)
    assert 'dataset: "flowers"' in str(TYPED)
    assert repr(TYPED).startswith("FeedSpec(dataset='flowers'")


def test_every_message_and_operation_of_the_proto_has_a_class():
    text = (ROOT / "proto/systole/v1/feed.proto").read_text()
    names = [line.split()[1] for line in text.splitlines() if line.startswith("message ")]
    assert len(names) > 10
    for name in names:
        if name != "Transform":
            assert issubclass(getattr(systole, name), _spec.Message)
            assert getattr(systole, name).__doc__
    oneof = text[text.index("oneof kind {") : text.index("}", text.index("oneof kind {"))]
    kinds = [line.split()[1] for line in oneof.splitlines()[1:] if "=" in line]
    assert kinds == list(_spec.OPERATIONS)


def test_image_applies_keywords_in_the_order_written():
    image = systole.Image(
        "image",
        brightness={"delta_min": -0.1, "delta_max": 0.1},
        resize=systole.Resize(8, 8, key="other"),
        random_flip=False,
        normalize=True,
        transforms=[systole.RoundToUint8()],
        dtype="uint8",
    )
    assert [list(t)[0] for t in image.to_dict()["transforms"]] == [
        "decode_jpeg",
        "brightness",
        "resize",
        "normalize",
        "round_to_uint8",
    ]
    assert image.to_dict()["transforms"][2]["key"] == "other"


def test_a_decode_that_is_written_is_the_one():
    image = systole.Image("image", decode_jpeg={"dct": "ifast", "channels": 1}, resize=(8, 8))
    assert image.to_dict()["transforms"][0] == {"decode_jpeg": {"dct": "IFAST", "channels": "1"}}


def test_a_number_where_a_list_is_wanted_is_a_list_of_one():
    assert systole.Normalize(mean=127.5, stddev=2).to_dict() == {
        "normalize": {"mean": [127.5], "stddev": ["2"]}
    }
    assert systole.Output(feature="x", shape=3).to_dict()["shape"] == ["3"]


def test_only_sizes_are_given_by_position():
    assert systole.Resize(8, 9).to_dict() == {"resize": {"height": "8", "width": "9"}}
    with pytest.raises(TypeError, match="positional"):
        systole.Normalize(127.5, 63.75)
    with pytest.raises(TypeError, match="positional"):
        systole.Image("image", normalize=(127.5, 63.75))


def test_numbers_of_numpy_and_large_seeds_keep_their_value():
    spec = systole.FeedSpec(
        dataset="d",
        seed=2**64 - 1,
        global_batch=np.int64(2**40),
        outputs={"x": systole.Image("x", normalize={"scale": np.float64(1 / 255)})},
    )
    text = str(spec)
    assert "seed: 18446744073709551615" in text
    assert "global_batch: 1099511627776" in text
    assert "scale: 0.00392156862745098" in text


def test_what_is_wrong_is_named(shards, write_spec):
    with pytest.raises(systole.InvalidSpec, match="did you mean 'global_batch'"):
        spec_bytes({"dataset": "d", "global_bach": 3})
    with pytest.raises(systole.InvalidSpec, match=r"spec\.textproto:1"):
        spec_bytes(write_spec("datset: 'x'"))
    with pytest.raises(systole.NotFound, match="nowhere"):
        spec_bytes("/nowhere/spec.textproto")
    with pytest.raises(TypeError, match="want a path"):
        spec_bytes(17)
    with pytest.raises(TypeError, match="no operation 'sharpen'"):
        systole.Image("image", sharpen=True)
    with pytest.raises(systole.InvalidSpec, match="global_batch"):
        systole.LocalFeed(shards, {"dataset": "flowers", "num_cores": 2, "global_batch": 3})


def test_messages_compare_by_value():
    assert systole.Resize(8, 8) == systole.Resize(height=8, width=8)
    assert systole.Resize(8, 8) != systole.Resize(8, 9)
    assert len({systole.Resize(8, 8), systole.Resize(8, 8)}) == 1
