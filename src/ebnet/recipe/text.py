"""Recipes as text: reading and writing TOML, `--set` overrides, and errors that say what was meant."""

import json
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ebnet.errors import ConfigError


def read_toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from error


def write_toml(values: dict[str, Any]) -> str:
    """A table of scalars, lists and tables. JSON writes a TOML value for each kind a recipe has."""
    return "\n".join(_lines(values, ())).lstrip("\n") + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if path and plain:
        yield f"\n[{'.'.join(path)}]"
    for key, value in plain.items():
        yield f"{key} = {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _lines(value, (*path, key))


def split_override(item: str) -> tuple[str, Any]:
    """`a.b=VALUE` taken apart. What is no TOML value is text as it stands: `arch=1262-2-4:8:8:16` needs no quotes."""
    key, equals, text = (part.strip() for part in item.partition("="))
    if not equals or not key:
        raise ConfigError(f"{item!r}: expected KEY=VALUE, for example network.experts=8")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def set_value(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `a.b.c` in nested tables."""
    *tables, last = key.split(".")
    for name in tables:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{key}: {name} is a value, not a table")
        values = inner
    values[last] = value


def explain(error: ValidationError, root: type[BaseModel]) -> str:
    """Every fault in one line each: place, what is wrong, what was probably meant."""
    return "; ".join(dict.fromkeys(_fault(fault, root) for fault in error.errors()))


def _fault(fault: Any, root: type[BaseModel]) -> str:
    steps = [str(step) for step in fault["loc"] if step != "[key]"]
    place = ".".join(steps)
    if fault["type"] == "missing":
        return f"{place} is missing"
    if fault["type"] == "extra_forbidden" or (fault["type"] == "literal_error" and "[key]" in fault["loc"]):
        return f"unknown setting {place}{_suggestion(steps, root)}"
    message = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    given = f" = {fault['input']!r}" if place and not isinstance(fault["input"], dict) else ""
    return f"{place}{given}: {message}" if place else message


def _suggestion(steps: list[str], root: type[BaseModel]) -> str:
    """The nearest key of the same table; failing that, the table that has this key."""
    *tables, key = steps
    known = _keys(root, tables)
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {'.'.join([*tables, near[0]])}?"
    elsewhere = [path for path in _paths(root) if path.rsplit(".", 1)[-1] == key]
    if elsewhere:
        return f"; did you mean {' or '.join(elsewhere)}?"
    return f"; known here: {', '.join(known)}"


def _keys(model: type[BaseModel], tables: list[str]) -> list[str]:
    if not tables:
        return list(model.model_fields)
    inner, names = _table(model, tables[0])
    if names:
        return _keys(inner, tables[2:]) if inner and len(tables) > 1 else names
    return _keys(inner, tables[1:]) if inner else []


def _paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for key in model.model_fields:
        inner, names = _table(model, key)
        if inner is None:
            yield prefix + key
        else:
            yield from _paths(inner, f"{prefix}{key}.{'NAME.' if names else ''}")


def _table(model: type[BaseModel], key: str) -> tuple[Any, list[str]]:
    """The table a key holds (None for a plain value), and the names it may have where it is a table of tables."""
    kind = model.model_fields[key].annotation if key in model.model_fields else None
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, []
    arguments = get_args(kind)
    if len(arguments) == 2 and isinstance(arguments[1], type) and issubclass(arguments[1], BaseModel):
        return arguments[1], list(get_args(arguments[0]))
    return None, []
