"""Every way a file can be wrong has its own name, and this page breaks a good file in each of these ways."""

import json

import numpy as np
import pytest

from ebnet._native import ERRORS, Engine
from ebnet.errors import FormatError
from tests.runtime.damage import Damage, Faults, header, meta, op, ops, preprocessing, raw_header, tensor, without_meta
from tests.runtime.test_format_errors_later import INT8_FAULTS
from tests.runtime.tiny_file import TinyFile, header_of, tensor_bytes, with_header


def poisoned(value: float, dtype: type[np.floating] = np.float32) -> Damage:
    def damage(file: TinyFile) -> bytes:
        file.tensors["h.bias"] = file.tensors["h.bias"].astype(dtype)
        file.tensors["h.bias"][1] = value
        return file.content()

    return damage


def set_padding_bit(file: TinyFile) -> bytes:
    file.tensors["c.bits"][1, 3, -1] |= 0x80
    return file.content()


def long_program(file: TinyFile) -> bytes:
    file.ops = [{"op": "global_pool", "in": [0]}] * 5000
    return file.content()


REALS = np.zeros((2, 4), np.float32)
TREE = b"[" * 40 + b"]" * 40
FAULTS: Faults = [
    ("FileTooSmall", lambda file: b"\x01\x02\x03"),
    ("HeaderTooLarge", lambda file: (2**62).to_bytes(8, "little") + b"{}"),
    ("HeaderLengthInvalid", lambda file: (1000).to_bytes(8, "little") + b"{}"),
    ("JsonSyntax", raw_header(b'{"a": }')),
    ("JsonSyntax", raw_header(b"")),
    ("JsonSyntax", raw_header(b'{"a": "\x01"}')),
    ("JsonSyntax", raw_header(b'{"a": 1} 2')),
    ("JsonSyntax", raw_header(b'{"a": 1')),
    ("JsonSyntax", raw_header(b'{"a": "\\q"}')),
    ("JsonTooDeep", raw_header(b'{"a": ' + TREE + b"}")),
    ("JsonTooManyValues", raw_header(b'{"a": [' + b"0," * 200_000 + b"0]}")),
    ("JsonDuplicateKey", raw_header(b'{"a": 1, "a": 2}')),
    ("JsonInvalidUtf8", raw_header(b'{"\xc0\xaf": 1}')),
    ("JsonInvalidUtf8", raw_header(b'{"\\ud800": 1}')),
    ("JsonNumberInvalid", raw_header(b'{"a": 01}')),
    ("JsonNumberInvalid", raw_header(b'{"a": 1e999}')),
    ("JsonNumberInvalid", raw_header(b'{"a": 1.}')),
    ("FieldTypeWrong", raw_header(b"[]")),
    ("FieldTypeWrong", header(lambda h: h.update(__metadata__=[]))),
    ("FieldTypeWrong", header(lambda h: h["__metadata__"].update(format=1))),
    ("FieldTypeWrong", header(lambda h: h.update({"a.norm": 7}))),
    ("FieldTypeWrong", op(0, out=4.5)),
    ("FieldTypeWrong", op(0, out="4")),
    ("FieldTypeWrong", op(5, ceil=1)),
    ("FieldTypeWrong", op(0, name=3)),
    ("FieldTypeWrong", op(0, op=3)),
    ("FieldTypeWrong", ops({})),
    ("FieldTypeWrong", meta(labels={})),
    ("FieldTypeWrong", meta(labels=[1, 2, 3, 4])),
    ("FieldTypeWrong", meta(network=[])),
    ("FieldTypeWrong", preprocessing(mean=["a", "b", "c"])),
    ("FieldMissing", without_meta("format")),
    ("FieldMissing", without_meta("version")),
    ("FieldMissing", without_meta("program")),
    ("FieldMissing", without_meta("labels")),
    ("FieldMissing", without_meta("preprocessing")),
    ("FieldMissing", without_meta("network")),
    ("FieldMissing", op(0, kernel=None)),
    ("FieldMissing", op(0, op=None)),
    ("FieldMissing", header(lambda h: h["a.norm"].pop("dtype"))),
    ("FieldUnknown", op(0, colour=1)),
    ("FieldUnknown", op(1, name="x")),
    ("FieldUnknown", header(lambda h: h["a.norm"].update(extra=1))),
    ("FieldOutOfRange", op(0, kernel=0)),
    ("FieldOutOfRange", op(0, kernel=10_000)),
    ("FieldOutOfRange", op(0, out=0)),
    ("FieldOutOfRange", op(0, out=2**40)),
    ("FieldOutOfRange", op(0, stride=0)),
    ("FieldOutOfRange", op(0, pad=-1)),
    ("FieldOutOfRange", op(4, dilation=0)),
    ("FieldOutOfRange", op(4, groups=0)),
    ("FieldOutOfRange", op(4, experts=0)),
    ("FieldOutOfRange", op(4, squeeze=-1)),
    ("FieldOutOfRange", op(0, name="")),
    ("FieldOutOfRange", preprocessing(size=0)),
    ("FieldChoiceUnknown", op(0, act="gelu")),
    ("FormatNameWrong", meta(format="onnx")),
    ("FormatVersionUnsupported", meta(version="5")),
    ("TensorTypeUnknown", tensor("h.bias", np.zeros(4, np.float64))),
    ("TensorOffsetsInvalid", header(lambda h: h["a.norm"].update(data_offsets=[8, 4]))),
    ("TensorOffsetsInvalid", header(lambda h: h["a.norm"].update(data_offsets=[0, 2**50]))),
    ("TensorOffsetsInvalid", header(lambda h: h["a.norm"].update(data_offsets=[-4, 28]))),
    ("TensorOffsetsInvalid", header(lambda h: h["a.norm"].update(data_offsets=[0]))),
    ("TensorOffsetsInvalid", header(lambda h: h["a.norm"].update(data_offsets=[0, 1.5]))),
    ("TensorOffsetsInvalid", lambda file: file.content()[:-1]),
    ("TensorSizeMismatch", header(lambda h: h["a.norm"].update(shape=[2, 5]))),
    ("TensorSizeMismatch", header(lambda h: h["a.norm"].update(shape=[0, 4]))),
    ("TensorSizeMismatch", header(lambda h: h["a.norm"].update(shape=[2**32, 2**32]))),
    ("TensorSizeMismatch", header(lambda h: h["a.norm"].update(shape=[1] * 9))),
    ("TensorSizeMismatch", header(lambda h: h["a.norm"].update(shape=[-2, -4]))),
    ("TensorsOverlapOrGap", header(lambda h: h["a.norm"].update(data_offsets=[4, 36]))),
    ("TensorsOverlapOrGap", header(lambda h: h.pop("a.norm"))),
    ("TensorsOverlapOrGap", lambda file: file.content() + b"more"),
    ("TensorMissing", tensor("a.norm", None)),
    ("TensorMissing", op(0, act="prelu")),
    ("TensorMissing", op(7, experts=2)),
    ("TensorTypeWrong", tensor("a.norm", REALS.astype(np.uint8))),
    ("TensorTypeWrong", tensor("e.bits", np.zeros((1, 10, 7), np.float32))),
    ("TensorShapeWrong", tensor("a.norm", REALS.T.copy())),
    ("TensorShapeWrong", tensor("e.bits", np.zeros((1, 10, 8), np.uint8))),
    ("TensorShapeWrong", op(0, kernel=5, pad=2)),
    ("TensorNotFinite", poisoned(np.nan)),
    ("TensorNotFinite", poisoned(np.inf)),
    ("TensorNotFinite", poisoned(-np.inf, np.float16)),
    ("TensorUnused", tensor("z", REALS)),
    ("TensorUnused", op(2, act="relu")),
    ("TensorUsedTwice", op(11, name="g")),
    ("TensorPaddingNotZero", set_padding_bit),
    ("ProgramEmpty", ops([])),
    ("ProgramTooLong", long_program),
    ("OpUnknown", op(0, op="attention")),
    ("ValueReferenceInvalid", op(1, **{"in": [2]})),
    ("ValueReferenceInvalid", op(1, **{"in": [-1]})),
    ("ValueReferenceInvalid", op(1, **{"in": [0.5]})),
    ("ValueReferenceInvalid", op(1, **{"in": []})),
    ("ValueReferenceInvalid", op(1, **{"in": [0, 1]})),
    ("ValueReferenceInvalid", op(4, skip=99)),
    ("ValueKindWrong", op(11, **{"in": [9]})),
    ("ValueUnused", op(6, stride=2, **{"in": [5]})),
    ("ChannelsMismatch", op(4, skip=1)),
    ("GroupsInvalid", op(4, groups=4)),
    ("WindowInvalid", op(0, pad=3)),
    ("WindowInvalid", op(1, pad=2)),
    ("ProgramResultWrong", lambda file: setattr(file, "ops", file.ops[:10]) or file.content()),
    ("LabelsMismatch", meta(labels=["only one"])),
    ("PreprocessingInvalid", preprocessing(mean=[0.5])),
    ("PreprocessingInvalid", preprocessing(std=[0, 1, 1])),
    ("PreprocessingInvalid", preprocessing(mean=[1e300, 0, 0])),
    ("PreprocessingInvalid", preprocessing(crop=10)),
    ("FieldOutOfRange", preprocessing(size=2000, resize=2000, crop=2000)),
    ("NotAPackedNetwork", lambda file: b"\x89PNG\r\n\x1a\n" + bytes(100)),
    ("NotAPackedNetwork", lambda file: b"# A text that somebody named net.ebn"),
    ("TextUnprintable", meta(labels=["zero", "one", "\x1b[2J", "three"])),
    ("TextUnprintable", meta(labels=["zero", "one", "\u202etxt.exe", "three"])),
    ("TextUnprintable", meta(network={"arch": "\x9b31m"})),
    ("TextUnprintable", meta(network={"\n": 1})),
    ("TextUnprintable", op(0, name="\x1b]0;title\x07")),
    ("FieldOutOfRange", meta(labels=["zero", "one", "x" * 1000, "three"])),
    ("FieldOutOfRange", meta(network={"experts": 10**9})),
    ("FieldOutOfRange", meta(network={str(i): i for i in range(100)})),
    ("FieldTypeWrong", meta(network={"experts": "abc"})),
    ("FieldTypeWrong", meta(network={"arch": 7})),
    ("FieldTypeWrong", meta(network={"arch": {"a": 1}})),
    ("FieldTypeWrong", meta(network={"widths": [[1]]})),
]


@pytest.mark.parametrize(("name", "damage"), FAULTS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(FAULTS)])
def test_named_error(name: str, damage: Damage) -> None:
    with pytest.raises(FormatError) as caught:
        Engine.load_memory(damage(TinyFile()), 1)
    assert caught.value.code == name, caught.value  # type: ignore[attr-defined]
    assert str(caught.value).startswith(f"{name}: ")


def test_the_undamaged_file_loads() -> None:
    for dtype in (np.float32, np.float16):
        assert Engine.load_memory(TinyFile(dtype).content(), 1).classes == 4


def test_no_format_error_is_left_untested() -> None:
    """Files (unreadable, truncated, too large, changed) have a page of their own, test_files.py."""
    elsewhere = {"FileMissing", "FileUnreadable", "FileTooLarge", "FileTruncated", "FileChanged"}
    format_errors = {name for name, number in ERRORS.items() if 0 < number < ERRORS["InputSizeInvalid"]}
    assert format_errors == {name for name, _ in FAULTS + INT8_FAULTS} | elsewhere


def test_messages_name_the_place() -> None:
    with pytest.raises(FormatError, match=r"GroupsInvalid: op 4 \(binary\): 4 groups do not divide 6 and 6 channels"):
        Engine.load_memory(op(4, groups=4)(TinyFile()), 1)
    with pytest.raises(FormatError, match=r"tensor 'a.norm' has shape \[4, 2\], expected \[2, 4\]"):
        Engine.load_memory(tensor("a.norm", REALS.T.copy())(TinyFile()), 1)


def test_every_truncation_is_an_error() -> None:
    content = TinyFile().content()
    for length in range(0, len(content), 7):
        with pytest.raises(FormatError):
            Engine.load_memory(content[:length], 1)


def test_hostile_names_are_printable_in_messages() -> None:
    content = TinyFile().content()
    parsed = header_of(content) | {"\x1b[31m\n" + "x" * 5000: {}}
    with pytest.raises(FormatError) as caught:
        Engine.load_memory(with_header(content, json.dumps(parsed).encode()), 1)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    assert len(tensor_bytes(content)) > 0
