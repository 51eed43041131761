"""Every way a file can be wrong has its own name, and this page breaks a good file in each of these ways."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ebnet._native import ERRORS, Engine
from ebnet.errors import FormatError
from tests.runtime.tiny_file import (
    TinyFile,
    TinyInt8File,
    TinyUnitsFile,
    header_of,
    rewritten,
    tensor_bytes,
    with_header,
)

Damage = Callable[[TinyFile], bytes]


def header(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Change the parsed header."""

    def damage(file: TinyFile) -> bytes:
        content = file.content()
        parsed = header_of(content)
        change(parsed)
        return rewritten(content, parsed)

    return damage


def raw_header(text: bytes) -> Damage:
    return lambda file: with_header(file.content(), text)


def op(index: int, **fields: Any) -> Damage:
    """Set fields of one op (None removes one)."""

    def damage(file: TinyFile) -> bytes:
        for key, value in fields.items():
            file.ops[index][key] = value
            if value is None:
                del file.ops[index][key]
        return file.content()

    return damage


def ops(value: object) -> Damage:
    return meta(program=value)


def meta(**fields: Any) -> Damage:
    def damage(file: TinyFile) -> bytes:
        for key, value in fields.items():
            file.metadata[key] = value
        return file.content()

    return damage


def without_meta(key: str) -> Damage:
    return header(lambda parsed: parsed["__metadata__"].pop(key))


def preprocessing(**fields: Any) -> Damage:
    def damage(file: TinyFile) -> bytes:
        file.metadata["preprocessing"] |= fields
        return file.content()

    return damage


def tensor(name: str, array: np.ndarray | None) -> Damage:
    def damage(file: TinyFile) -> bytes:
        if array is None:
            del file.tensors[name]
        else:
            file.tensors[name] = array
        return file.content()

    return damage


def poisoned(value: float, dtype: type[np.floating] = np.float32) -> Damage:
    def damage(file: TinyFile) -> bytes:
        file.tensors["h.bias"] = file.tensors["h.bias"].astype(dtype)
        file.tensors["h.bias"][1] = value
        return file.content()

    return damage


def set_padding_bit(file: TinyFile) -> bytes:
    file.tensors["c.bits"][1, 3, -1] |= 0x80
    return file.content()


def overflowing(file: TinyFile) -> bytes:
    """A scale whose product with the step is beyond a float."""
    file.ops[2]["int8"] = [1e20, 0]
    file.tensors["b.norm"] = np.full((2, 2), 1e25, np.float32)
    return file.content()


def too_many_inputs(file: TinyFile) -> bytes:
    """Of one sum: they could overflow 32 bits."""
    file.ops[0] |= {"out": 1000}
    file.tensors["a.weight"] = np.zeros((1000, 3, 3, 3), np.int8)
    file.tensors["a.norm"] = np.zeros((2, 1000), np.float32)
    file.ops[2] |= {"kernel": 15, "pad": 7}
    return file.content()


def long_program(file: TinyFile) -> bytes:
    file.ops = [{"op": "global_pool", "in": [0]}] * 5000
    return file.content()


REALS = np.zeros((2, 4), np.float32)
TREE = b"[" * 40 + b"]" * 40
FAULTS: list[tuple[str, Damage]] = [
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
    ("FormatVersionUnsupported", meta(version="4")),
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

INT8_FAULTS: list[tuple[str, Damage]] = [
    ("FieldUnknown", meta(version="1")),
    ("FieldUnknown", op(1, int8=[0.1, 0])),
    ("FieldUnknown", op(4, int8=[0.1, 0])),
    ("FieldTypeWrong", op(2, int8=0.1)),
    ("FieldTypeWrong", op(2, int8=[0.1])),
    ("FieldTypeWrong", op(2, int8=[0.1, 0, 0])),
    ("FieldTypeWrong", op(2, int8=[0.1, "0"])),
    ("FieldTypeWrong", op(2, int8={})),
    ("FieldTypeWrong", op(2, int8=True)),
    ("FieldChoiceUnknown", op(0, int8="bytes")),
    ("ValueReferenceInvalid", op(2, int8="pixels")),
    ("FieldOutOfRange", op(2, int8=[0, 0])),
    ("FieldOutOfRange", op(2, int8=[-0.1, 0])),
    ("FieldOutOfRange", op(2, int8=[1e-40, 0])),
    ("FieldOutOfRange", op(2, int8=[1e300, 0])),
    ("FieldOutOfRange", op(2, int8=[0.1, -1])),
    ("FieldOutOfRange", op(2, int8=[0.1, 256])),
    ("FieldOutOfRange", op(2, int8=[0.1, 0.5])),
    ("TensorTypeWrong", op(2, int8=None)),
    ("TensorTypeWrong", tensor("b.weight", np.zeros((2, 4, 3, 3), np.float16))),
    ("TensorTypeWrong", tensor("b.weight", np.zeros((2, 4, 3, 3), np.uint8))),
    ("TensorTypeWrong", tensor("c.bits", np.zeros((2, 6, 4), np.int8))),
    ("TensorTypeWrong", tensor("b.norm", np.zeros((2, 2), np.int8))),
    ("TensorShapeWrong", tensor("b.weight", np.zeros((2, 4, 1, 1), np.int8))),
    ("TensorShapeWrong", tensor("h.scale", np.zeros(3, np.float16))),
    ("TensorMissing", tensor("h.scale", None)),
    ("TensorNotFinite", tensor("h.scale", np.full(4, np.nan, np.float16))),
    ("TensorNotFinite", tensor("b.norm", np.full((2, 2), np.inf, np.float32))),
    ("TensorOutOfRange", tensor("b.weight", np.full((2, 4, 3, 3), 65, np.int8))),
    ("TensorOutOfRange", tensor("b.weight", np.full((2, 4, 3, 3), -128, np.int8))),
    ("TensorOutOfRange", overflowing),
    ("FieldOutOfRange", too_many_inputs),
]


@pytest.mark.parametrize(
    ("name", "damage"), INT8_FAULTS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(INT8_FAULTS)]
)
def test_named_error_of_an_int8_file(name: str, damage: Damage) -> None:
    assert Engine.load_memory(TinyInt8File().content(), 1).classes == 4
    with pytest.raises(FormatError) as caught:
        Engine.load_memory(damage(TinyInt8File()), 1)
    assert caught.value.code == name, caught.value  # type: ignore[attr-defined]


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


UNIT_FAULTS: list[tuple[str, Damage]] = [
    ("FieldUnknown", meta(version="1")),
    ("FieldUnknown", meta(version="2")),
    ("FieldUnknown", op(0, shift=True)),
    ("FieldUnknown", op(10, act_last=True)),
    ("FieldTypeWrong", op(4, shift=1)),
    ("FieldTypeWrong", op(4, after="true")),
    ("FieldTypeWrong", op(4, act_last=[True])),
    ("FieldTypeWrong", op(4, expert_scales={})),
    ("FieldOutOfRange", op(7, expert_scales=True)),
    ("TensorShapeWrong", op(4, expert_scales=False)),
    ("TensorShapeWrong", tensor("c.scale", np.zeros(6, np.float32))),
    ("TensorShapeWrong", tensor("c.shift", np.zeros(5, np.float32))),
    ("TensorMissing", tensor("c.after", None)),
    ("TensorUnused", op(4, shift=None)),
    ("TensorNotFinite", tensor("c.shift", np.full(6, np.inf, np.float32))),
    ("TensorTypeWrong", tensor("c.after", np.zeros(6, np.uint8))),
]


@pytest.mark.parametrize(
    ("name", "damage"), UNIT_FAULTS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(UNIT_FAULTS)]
)
def test_named_error_of_a_file_with_other_units(name: str, damage: Damage) -> None:
    assert Engine.load_memory(TinyUnitsFile().content(), 1).classes == 4
    with pytest.raises(FormatError) as caught:
        Engine.load_memory(damage(TinyUnitsFile()), 1)
    assert caught.value.code == name, caught.value  # type: ignore[attr-defined]
