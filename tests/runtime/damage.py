"""Ways to break a packed file: each gives the bytes of a file that was good."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.runtime.tiny_file import TinyFile, header_of, rewritten, with_header

Damage = Callable[[TinyFile], bytes]
Faults = list[tuple[str, Damage]]
"""The name of the error, and what causes it."""


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
