"""Structure-aware mutations of a good file: each gives a named error or an engine that runs."""

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebnet._native import Engine
from ebnet.errors import EbnetError, FormatError
from tests.runtime.tiny_file import TinyFile, TinyInt8File, header_of, rewritten

GOOD, INT8 = TinyFile().content(), TinyInt8File().content()
FILES = st.sampled_from([GOOD, INT8])
NUMBERS = st.one_of(
    st.integers(-2, 12), st.sampled_from([2**15, 2**31 - 1, 2**31, 2**53, -(2**31)]), st.floats(allow_nan=False)
)
WORDS = [
    "conv",
    "binary",
    "maxpool",
    "avgpool",
    "concat",
    "sum",
    "global_pool",
    "linear",
    "relu",
    "prelu",
    "F16",
    "I8",
    "pixels",
]
PLAIN = st.one_of(st.booleans(), st.none(), st.text(max_size=4), st.sampled_from(WORDS))
VALUES = st.one_of(NUMBERS, PLAIN, st.lists(NUMBERS, max_size=3), st.just({}))
IMAGE = np.zeros((2, 3, 6, 5), np.float32)


def survives(content: bytes) -> bool:
    """True where the file was accepted; it then runs, or its shapes do not fit the image."""
    try:
        engine = Engine.load_memory(content, 1)
    except FormatError:
        return False
    try:
        logits, experts = engine.run(IMAGE)
    except EbnetError:
        return True
    assert logits.shape[0] == experts.shape[1] == 2
    return True


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path] * bool(path) + [p for key, child in children for p in places(child, (*path, key))]


def change(root: Any, data: st.DataObject) -> None:
    """Replace, delete or duplicate at one place."""
    path = data.draw(st.sampled_from(places(root)))
    parent = root
    for key in path[:-1]:
        parent = parent[key]
    action = data.draw(st.sampled_from(["replace", "nudge", "delete", "copy"]))
    old = parent[path[-1]]
    if action == "delete":
        del parent[path[-1]]
    elif action == "copy":
        parent[path[-1]] = data.draw(st.sampled_from(list(parent.values() if isinstance(parent, dict) else parent)))
    elif action == "nudge" and isinstance(old, int):
        parent[path[-1]] = old + data.draw(st.sampled_from([-1, 1, 2, 8]))
    else:
        parent[path[-1]] = data.draw(VALUES)


@settings(max_examples=400)
@given(st.data())
def test_mutated_metadata(data: st.DataObject) -> None:
    good = data.draw(FILES)
    header = header_of(good)
    field = data.draw(st.sampled_from(["program", "program", "program", "preprocessing", "labels", "network"]))
    value = json.loads(header["__metadata__"][field])
    if places(value):
        for _ in range(data.draw(st.integers(1, 3))):
            if places(value):
                change(value, data)
    header["__metadata__"][field] = json.dumps(value)
    survives(rewritten(good, header))


@settings(max_examples=200)
@given(st.data())
def test_mutated_tensor_table(data: st.DataObject) -> None:
    good = data.draw(FILES)
    header = header_of(good)
    for _ in range(data.draw(st.integers(1, 2))):
        change(header, data)
    survives(rewritten(good, header))


@settings(max_examples=300)
@given(FILES, st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_flipped_bytes(good: bytes, flips: list[tuple[int, int]]) -> None:
    content = bytearray(good)
    for position, byte in flips:
        content[position % len(good)] ^= byte
    survives(bytes(content))


@settings(max_examples=100)
@given(FILES, st.integers(0, len(GOOD)), st.binary(max_size=64), st.integers(0, 64))
def test_spliced_bytes(good: bytes, position: int, inserted: bytes, removed: int) -> None:
    survives(good[:position] + inserted + good[position + removed :])


def test_the_good_file_survives() -> None:
    assert survives(GOOD)
    assert survives(INT8)
