"""Tests every form of a spec, and the classes made from feed.proto."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
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

    class Protobuf:  # Stands for a message of Google's protobuf package.
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


def test_an_explicit_decode_replaces_the_default_decode():
    image = systole.Image("image", decode_jpeg={"dct": "ifast", "channels": 1}, resize=(8, 8))
    assert image.to_dict()["transforms"][0] == {"decode_jpeg": {"dct": "IFAST", "channels": "1"}}


def test_a_number_where_a_list_is_wanted_is_a_list_of_one():
    assert systole.Normalize(mean=127.5, stddev=2).to_dict() == {
        "normalize": {"mean": [127.5], "stddev": ["2"]}
    }
    assert systole.Output(feature="x", shape=3).to_dict()["shape"] == ["3"]


def test_dtypes_of_numpy_jax_and_ml_dtypes_are_accepted():
    for dtype, name in (
        (np.int32, "INT32"),
        (np.dtype("uint8"), "UINT8"),
        (np.dtype(">i8"), "INT64"),
        (ml_dtypes.bfloat16, "BFLOAT16"),
        (np.dtype(ml_dtypes.bfloat16), "BFLOAT16"),
        (jnp.bfloat16, "BFLOAT16"),
        (jnp.float32, "FLOAT32"),
        (jnp.zeros(1).dtype, "FLOAT32"),
    ):
        assert systole.Output(feature="x", dtype=dtype).to_dict()["dtype"] == name
        assert systole.Image("x", dtype=dtype).to_dict()["dtype"] == name
        spec = {"dataset": "d", "outputs": [{"name": "x", "dtype": dtype}]}
        assert f"dtype: {name}" in _systole.spec_to_text(spec_bytes(spec))
    assert systole.Cast(dtype=np.float32).to_dict() == {"cast": {"dtype": "FLOAT32"}}


def test_an_unsupported_dtype_is_refused_with_the_supported_ones():
    for dtype in (np.float64, "float64", float):
        with pytest.raises(
            systole.InvalidSpec, match="want UINT8, INT32, INT64, FLOAT32, BFLOAT16"
        ):
            spec_bytes(systole.FeedSpec(outputs={"x": systole.Output(feature="x", dtype=dtype)}))


def test_omitted_cores_dtypes_and_layouts_get_defaults(shards):
    flip = systole.RandomFlip()
    spec = systole.FeedSpec(
        dataset="flowers",
        global_batch=4,
        outputs={
            "plain": systole.Image("image", random_crop=(8, 8), transforms=[flip]),
            "float": systole.Image("image", resize=(8, 8)),
            "label": systole.Output(feature="label"),
        },
    )
    with systole.LocalFeed(shards, spec) as feed:
        assert feed.cores == (0, 1)
        dtypes = {name: str(array.dtype) for name, array in feed.element_spec.items()}
        assert dtypes == {"plain": "uint8", "float": "float32", "label": "int64", "valid": "uint8"}
        assert next(feed)["plain"].shape == (4, 8, 8, 3)


def test_every_form_of_a_selection_gives_the_same_spec():
    wanted = [{"interleave": {"cycle_length": "2"}}, {"shard": {"count": "2", "index": "1"}}]
    for select in (
        [systole.Interleave(cycle_length=2), systole.Part(2, 1)],
        [
            systole.Select(interleave=systole.Interleave(cycle_length=2)),
            systole.Select(shard=systole.Part(count=2, index=1)),
        ],
        [{"interleave": {"cycle_length": 2}}, {"shard": {"count": 2, "index": 1}}],
        [{"interleave": systole.Interleave(cycle_length=2)}, {"shard": systole.Part(2, 1)}],
    ):
        for spec in (
            systole.FeedSpec(dataset="d", select=select),
            systole.Member("d", select=select),
        ):
            assert spec.to_dict()["select"] == wanted
    assert systole.FeedSpec(select=[{"skip": 40}]).to_dict() == {"select": [{"skip": "40"}]}


def test_conditions_as_classes_or_dicts_give_the_same_spec():
    wanted = [
        {"where": {"any": [{"feature": "label", "in": ["3"]}, {"feature": "width", "less": 0.5}]}}
    ]
    for where in (
        systole.Where(
            any=[systole.Where(feature="label", in_=3), systole.Where(feature="width", less=0.5)]
        ),
        systole.Where(any=[{"feature": "label", "in": [3]}, {"feature": "width", "less": 0.5}]),
    ):
        assert systole.FeedSpec(dataset="d", select=[where]).to_dict()["select"] == wanted


def test_dicts_stand_for_messages():
    classes = systole.FeedSpec(
        dataset="d",
        shuffle=systole.Shuffle("global"),
        outputs={"x": systole.Output(feature="x", transforms=[systole.Cast(dtype="FLOAT32")])},
    )
    dicts = systole.FeedSpec(
        dataset="d",
        shuffle={"mode": "GLOBAL"},
        outputs={"x": {"feature": "x", "transforms": [{"cast": {"dtype": "FLOAT32"}}]}},
    )
    assert dicts == classes
    assert spec_bytes(dicts) == spec_bytes(classes)


def test_user_functions_as_transforms_are_refused_with_the_alternatives():
    def brighten(image):
        return image

    for transform, name in ((lambda image: image, "<lambda>"), (brighten, "brighten")):
        for spec in (
            {"outputs": [{"name": "x", "transforms": [transform]}]},
            systole.FeedSpec(outputs={"x": systole.Output(feature="x", transforms=[transform])}),
        ):
            with pytest.raises(
                TypeError, match=r"transforms\[0\] is a function of your own"
            ) as told:
                spec_bytes(spec)
            assert name in str(told.value)
            assert "RandomFlip" in str(told.value)
    with pytest.raises(TypeError, match=r"is the class RandomFlip: write RandomFlip\(..\)"):
        spec_bytes(systole.FeedSpec(outputs={"x": systole.Output(transforms=[systole.RandomFlip])}))


def test_only_sizes_and_the_main_fields_of_a_member_may_be_positional():
    assert systole.Resize(8, 9).to_dict() == {"resize": {"height": "8", "width": "9"}}
    member = systole.Member("d", [systole.Select(take=4)], 3)
    named = systole.Member(dataset="d", select=[systole.Select(take=4)], weight=3)
    assert member.to_dict() == named.to_dict()
    with pytest.raises(TypeError, match="positional"):
        systole.Member("d", [], 3, "prefix/")
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


def test_message_fields_are_attributes_and_unknown_names_are_refused():
    spec = systole.FeedSpec(dataset="d", epochs=2)
    spec.epochs = 3
    assert spec.epochs == 3 and spec.seed is None
    assert spec.to_dict()["epochs"] == "3"
    spec.epochs = None
    assert "epochs" not in spec.to_dict()
    with pytest.raises(systole.InvalidSpec, match="FeedSpec has no 'epoch'; did you mean 'epochs'"):
        spec.epoch = 3
    with pytest.raises(AttributeError, match="did you mean 'epochs'"):
        print(spec.epoch)
    resize = systole.Resize(8, 9)
    resize.key = "other"
    assert resize.to_dict() == {"resize": {"height": "8", "width": "9"}, "key": "other"}
    assert copy.deepcopy(resize) == pickle.loads(pickle.dumps(resize)) == resize


def test_numbers_and_arrays_of_numpy_are_numbers():
    spec = systole.FeedSpec(
        dataset="d",
        shuffle={"mode": "WINDOW", "block_records": np.array(8), "window_records": np.uint8(4)},
        outputs={
            "x": systole.Image(
                "x",
                normalize={
                    "scale": np.float32(0.5),
                    "mean": np.array([1, 2, 3], np.float32),
                    "stddev": [np.float32(2.5), np.float16(1.5), ml_dtypes.bfloat16(4)],
                },
            )
        },
    )
    text = str(spec)
    for field in ("scale: 0.5", "mean: 3", "stddev: 2.5", "stddev: 1.5", "block_records: 8"):
        assert field in text
    resize = systole.Resize(8, 8, antialias=np.True_)
    assert resize.to_dict()["resize"]["antialias"] is True


def test_short_forms_of_other_libraries_are_taken():
    for short, mode in (("global", "GLOBAL"), (True, "GLOBAL"), (False, "NONE")):
        assert systole.FeedSpec(shuffle=short).to_dict() == {"shuffle": {"mode": mode}}
    assert systole.Output("label") == systole.Output(feature="label")
    assert systole.Image("x", resize=32) == systole.Image("x", resize=(32, 32))
    as_dict = {"dataset": "d", "shuffle": True, "outputs": {"label": {"feature": "label"}}}
    assert spec_bytes(as_dict) == spec_bytes(systole.FeedSpec(**as_dict))


def test_an_unknown_name_is_refused_with_the_name_to_use():
    for call, message in (
        (lambda: systole.Normalize(std=2), "did you mean 'stddev'.* It has scale, mean, stddev"),
        (lambda: systole.Image("x", hflip=True), "did you mean 'flip'"),
        (lambda: systole.Image("x", normalize={"std": 2}), "did you mean 'stddev'"),
        (lambda: systole.FeedSpec(batch_size=3), "did you mean 'global_batch'"),
        (lambda: systole.FeedSpec("d"), "write dataset=.."),
    ):
        with pytest.raises(systole.InvalidSpec, match=message) as told:
            call()
        assert isinstance(told.value, TypeError)


def test_an_invalid_list_element_is_refused_with_its_index():
    label = systole.Output("label")
    for spec, message in (
        ({"outputs": ["image", label]}, r"outputs\[0\] is 'image', want systole.Output"),
        ({"outputs": [label, "image"]}, r"outputs\[1\] is 'image'"),
        (
            {"mixture": [systole.Member("a", weight="x"), systole.Member("b", weight=1)]},
            r"mixture\[0\].weight is 'x', want a number",
        ),
        (
            {"mixture": [{"dataset": "a", "weight": "x"}, {"dataset": "b", "weight": 1}]},
            r"mixture\[0\].weight is 'x', want a number",
        ),
        (
            {"outputs": {"x": systole.Output("x", transforms=["decode_jpeg"])}},
            r"transforms\[0\] is 'decode_jpeg', want systole.DecodeJpeg\(..\)",
        ),
        (
            {"outputs": {"x": systole.Output("x", transforms=["ToTensor"])}},
            r"transforms\[0\] is 'ToTensor', want an operation .*RandomFlip",
        ),
    ):
        for form in (spec, systole.FeedSpec(**spec)):
            with pytest.raises(systole.InvalidSpec, match=message):
                spec_bytes(form)


def test_a_spec_text_in_place_of_a_path_is_refused():
    with pytest.raises(systole.InvalidSpec, match="the spec is a text.*want the path"):
        spec_bytes(spec_text())


def test_spec_errors_name_the_wrong_field_line_path_or_type(shards, write_spec):
    with pytest.raises(systole.InvalidSpec, match="did you mean 'global_batch'"):
        spec_bytes({"dataset": "d", "global_bach": 3})
    with pytest.raises(systole.InvalidSpec, match=r"spec\.textproto:1"):
        spec_bytes(write_spec("datset: 'x'"))
    with pytest.raises(systole.NotFound, match="nowhere"):
        spec_bytes("/nowhere/spec.textproto")
    with pytest.raises(TypeError, match="want a path"):
        spec_bytes(17)
    with pytest.raises(TypeError, match="Image.. has no 'sharpen'"):
        systole.Image("image", sharpen=True)
    with pytest.raises(systole.InvalidSpec, match="global_batch"):
        systole.LocalFeed(shards, {"dataset": "flowers", "num_cores": 2, "global_batch": 3})


def test_messages_compare_by_value():
    assert systole.Resize(8, 8) == systole.Resize(height=8, width=8)
    assert systole.Resize(8, 8) != systole.Resize(8, 9)
    assert len({systole.Resize(8, 8), systole.Resize(8, 8)}) == 1
