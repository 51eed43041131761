"""Any program the format allows: every op's value equals the specification's, whatever the plan shares or reuses."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebnet._native import Engine
from tests.runtime.numpy_reference import MEAN, STD, coded, evaluate
from tests.runtime.tiny_file import TinyFile, TinyInt8File, TinyUnitsFile


def check(file: TinyFile, images: np.ndarray, threads: int) -> None:
    """Each op is recomputed from the values the engine itself recorded, so one wrong op shows as exactly that one."""
    engine = Engine.load_memory(file.content(), threads)
    _, experts, flat = engine.trace(images)
    shapes = [op["shape"] for op in engine.profile(images[:1])]
    values = [images.transpose(0, 2, 3, 1)]
    values += [value.reshape(-1, *shape) for value, shape in zip(flat, shapes, strict=True)]
    layer = 0
    for index, op in enumerate(file.ops):
        skip = values[op["skip"]] if "skip" in op else None
        expected, chosen = evaluate(op, [values[i] for i in op["in"]], skip, file.tensors)
        found = values[index + 1]
        assert found.shape == expected.shape, op
        require_close(found, expected, file.ops, op)
        if chosen is not None:
            np.testing.assert_array_equal(experts[layer], chosen)
            layer += 1


def require_close(found: np.ndarray, expected: np.ndarray, ops: list[dict[str, Any]], op: dict[str, Any]) -> None:
    """A value that int8 layers alone read may be kept as their bytes, and shows as what these stand for."""
    codes = [other["int8"] for other in ops if other.get("int8", "pixels") != "pixels"]
    kept = [np.multiply(*coded(expected, code)) for code in codes]
    bound = 1e-4 * np.abs(expected).max()
    if any(np.allclose(found, value, rtol=1e-4, atol=1e-4 * np.abs(value).max()) for value in kept):
        return
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=bound, err_msg=str(op))


def photographs(batch: int, height: int, width: int) -> np.ndarray:
    """Normalised pixels."""
    pixels = np.random.default_rng(batch).integers(0, 256, (batch, 3, height, width))
    return ((pixels / 255 - MEAN) / STD).astype(np.float32)


def pictures(batch: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, 3, height, width), dtype=np.float32)


def test_every_op() -> None:
    for batch, height, width in ((1, 8, 8), (3, 7, 10), (2, 1, 1), (9, 5, 6)):
        for threads in (1, 2):
            check(TinyFile(), pictures(batch, height, width), threads)


def test_every_op_in_int8() -> None:
    for batch, height, width in ((1, 8, 8), (3, 7, 10), (2, 1, 1), (9, 5, 6)):
        for threads in (1, 2):
            check(TinyInt8File(), photographs(batch, height, width), threads)


def test_every_op_in_other_units() -> None:
    for batch, height, width in ((1, 8, 8), (3, 7, 10), (2, 1, 1), (9, 5, 6)):
        for threads in (1, 2):
            check(TinyUnitsFile(), pictures(batch, height, width), threads)


def test_pixels_are_the_same_as_bytes_and_as_reals() -> None:
    engine = Engine.load_memory(TinyInt8File().content(), 1)
    reals = photographs(3, 9, 7)
    pixels = np.rint((reals.transpose(0, 2, 3, 1) * STD + MEAN) * 255).astype(np.uint8)
    assert engine.run(reals)[0].tobytes() == engine.run(np.ascontiguousarray(pixels))[0].tobytes()


class Growing(TinyFile):
    """A file that starts empty and grows op by op, all maps of one size."""

    def __init__(self) -> None:
        super().__init__()
        self.ops, self.tensors, self.metadata["labels"] = [], {}, []
        self.channels = [3]
        self.used: set[int] = set()

    def add(self, kind: str, inputs: list[int], out: int | None = None, **fields: Any) -> None:
        op: dict[str, Any] = {"op": kind, "in": inputs, **fields}
        if out is not None:
            op |= {"name": f"n{len(self.ops)}", "out": out}
        self.used |= {*inputs, *([fields["skip"]] if "skip" in fields else [])}
        self.ops.append(op)
        self.channels.append(out or sum(self.channels[i] for i in inputs[: 1 if kind == "sum" else None]))

    def conv(self, value: int, out: int, kernel: int, act: str) -> None:
        self.add("conv", [value], out, kernel=kernel, pad=kernel // 2, act=act)
        name = self.ops[-1]["name"]
        self._reals(f"{name}.weight", out, self.channels[value], kernel, kernel)
        self._reals(f"{name}.norm", 2, out)
        if act == "prelu":
            self._reals(f"{name}.slope", out)

    def binary(self, value: int, out: int, kernel: int, groups: int, experts: int, squeeze: int, **skip: int) -> None:
        cin = self.channels[value]
        fields = {"kernel": kernel, "pad": kernel // 2, "groups": groups, "experts": experts, "squeeze": squeeze}
        self.add("binary", [value], out, **fields, **skip)
        name = self.ops[-1]["name"]
        self._binary(name, cin, out, kernel * kernel * cin // groups, experts)
        if squeeze:
            self._reals(f"{name}.squeeze", squeeze, cin)
            self._reals(f"{name}.excite", out, squeeze)

    def activate(self, op: dict[str, Any], act: str) -> None:
        op["act"] = act
        if act == "prelu":
            self._reals(f"{op['name']}.slope", op["out"])

    def finish(self) -> None:
        """Everything not used yet goes to the classifier."""
        loose = [value for value in range(len(self.channels)) if value not in self.used]
        self.add("concat", loose[-16:])
        self.add("global_pool", [len(self.ops)])
        value = len(self.ops)
        self.add("linear", [value], 4)
        self._reals(f"{self.ops[-1]['name']}.weight", 4, self.channels[value])
        self._reals(f"{self.ops[-1]['name']}.bias", 4)


@st.composite
def int8_programs(draw: st.DrawFn) -> Growing:
    """Some of the layers in int8, of few codes, so that now and then all readers of a value agree."""
    file = draw(programs())
    file.metadata["version"] = "2"
    for op in file.ops:
        if op["op"] not in ("conv", "linear") or draw(st.integers(0, 3)) == 0:
            continue
        codes = [[0.02, 0], [0.05, 128]] + ["pixels"] * (op["in"] == [0])
        file.make_int8(op, draw(st.sampled_from(codes)))
    return file


@st.composite
def unit_programs(draw: st.DrawFn) -> Growing:
    """Binary ops with some of the steps that units of other papers have, activations among them."""
    file = draw(programs())
    file.metadata["version"] = "3"
    for op in file.ops:
        if op["op"] != "binary":
            continue
        fields = {name: draw(st.booleans()) for name in ("shift", "after", "act_last")}
        file.make_unit(op, fields | {"expert_scales": op["experts"] > 1 and draw(st.booleans())})
        file.activate(op, draw(st.sampled_from(["none", "relu", "prelu"])))
    return file


@st.composite
def sum_programs(draw: st.DrawFn) -> Growing:
    file = draw(programs(sums=True))
    file.metadata["version"] = "4"
    return file


@st.composite
def programs(draw: st.DrawFn, sums: bool = False) -> Growing:
    file = Growing()
    kinds = ["conv", "binary", "binary", "binary", "maxpool", "avgpool", "concat", *["sum"] * 4 * sums]
    for _ in range(draw(st.integers(2, 12))):
        values = list(range(len(file.channels)))
        value = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(kinds))
        out = draw(st.sampled_from([2, 4, 6, 33, 64]))
        kernel = draw(st.sampled_from([1, 3]))
        if kind == "conv":
            file.conv(value, out, kernel, draw(st.sampled_from(["none", "relu", "prelu"])))
        elif kind == "binary":
            fitting = [v for v in values if file.channels[v] == out]
            skip = {"skip": draw(st.sampled_from(fitting))} if fitting and draw(st.booleans()) else {}
            divisors = [g for g in (1, 2, 3) if file.channels[value] % g == 0 and out % g == 0]
            groups, experts = draw(st.sampled_from(divisors)), draw(st.sampled_from([1, 3]))
            file.binary(value, out, kernel, groups, experts, draw(st.sampled_from([0, 2])), **skip)
        elif kind == "concat":
            chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
            file.add("concat", chosen)
        elif kind == "sum":
            fitting = [v for v in values if file.channels[v] == file.channels[value]]
            chosen = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4))
            file.add("sum", chosen, factors=[draw(st.sampled_from([1, 0.25, -1.5])) for _ in chosen])
        else:
            file.add(kind, [value], kernel=3, pad=1)
    file.finish()
    return file


@settings(max_examples=60)
@given(programs(), st.sampled_from([(1, 5, 4), (3, 3, 7)]), st.sampled_from([1, 2]))
def test_generated_programs(file: Growing, shape: tuple[int, int, int], threads: int) -> None:
    check(file, pictures(*shape), threads)


@settings(max_examples=60)
@given(sum_programs(), st.sampled_from([(1, 5, 4), (3, 3, 7)]), st.sampled_from([1, 2]))
def test_generated_programs_with_sums(file: Growing, shape: tuple[int, int, int], threads: int) -> None:
    check(file, pictures(*shape), threads)


@settings(max_examples=60)
@given(int8_programs(), st.sampled_from([(1, 5, 4), (3, 3, 7)]), st.sampled_from([1, 2]))
def test_generated_int8_programs(file: Growing, shape: tuple[int, int, int], threads: int) -> None:
    check(file, photographs(*shape), threads)


@settings(max_examples=60)
@given(unit_programs(), st.sampled_from([(1, 5, 4), (3, 3, 7)]), st.sampled_from([1, 2]))
def test_generated_programs_of_other_units(file: Growing, shape: tuple[int, int, int], threads: int) -> None:
    check(file, pictures(*shape), threads)
