"""The same of what later versions of the file brought: int8 layers, the units of other papers, sums."""

import numpy as np
import pytest

from ebnet._native import Engine
from ebnet.errors import FormatError
from tests.runtime.damage import Damage, Faults, meta, op, tensor
from tests.runtime.tiny_file import TinyFile, TinyInt8File, TinySumsFile, TinyUnitsFile


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


INT8_FAULTS: Faults = [
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

UNIT_FAULTS: Faults = [
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

SUM_FAULTS: Faults = [
    ("OpUnknown", meta(version="3")),
    ("FieldUnknown", op(9, name="s")),
    ("FieldMissing", op(9, factors=None)),
    ("FieldTypeWrong", op(9, factors=0.5)),
    ("FieldTypeWrong", op(9, factors=[0.5, "1", 2])),
    ("FieldOutOfRange", op(9, factors=[0.5, 1.0])),
    ("FieldOutOfRange", op(9, factors=[1e60, 1, 1])),
    ("ChannelsMismatch", op(9, **{"in": [9, 8, 5]})),
    ("ValueReferenceInvalid", op(9, **{"in": []})),
    ("ValueReferenceInvalid", op(9, **{"in": [9] * 17, "factors": [1] * 17})),
]

OF_FILES = [(TinyInt8File, *fault) for fault in INT8_FAULTS] + [(TinyUnitsFile, *fault) for fault in UNIT_FAULTS]
OF_FILES += [(TinySumsFile, *fault) for fault in SUM_FAULTS]


@pytest.mark.parametrize(
    ("file", "name", "damage"), OF_FILES, ids=[f"{i}-{fault[1]}" for i, fault in enumerate(OF_FILES)]
)
def test_named_error(file: type[TinyFile], name: str, damage: Damage) -> None:
    assert Engine.load_memory(file().content(), 1).classes == 4
    with pytest.raises(FormatError) as caught:
        Engine.load_memory(damage(file()), 1)
    assert caught.value.code == name, caught.value  # type: ignore[attr-defined]
