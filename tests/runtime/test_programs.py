"""Any program the format allows: every op's value equals the specification's, whatever the plan shares or reuses."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ebnet._native import Engine
from tests.runtime.numpy_reference import evaluate
from tests.runtime.tiny_file import TinyFile


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
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max(), err_msg=str(op))
        if chosen is not None:
            np.testing.assert_array_equal(experts[layer], chosen)
            layer += 1


def pictures(batch: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, 3, height, width), dtype=np.float32)


def test_every_op() -> None:
    for batch, height, width in ((1, 8, 8), (3, 7, 10), (2, 1, 1), (9, 5, 6)):
        for threads in (1, 2):
            check(TinyFile(), pictures(batch, height, width), threads)


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
        self.channels.append(out or sum(self.channels[i] for i in inputs))

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
def programs(draw: st.DrawFn) -> Growing:
    file = Growing()
    for _ in range(draw(st.integers(2, 12))):
        values = list(range(len(file.channels)))
        value = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["conv", "binary", "binary", "binary", "maxpool", "avgpool", "concat"]))
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
        else:
            file.add(kind, [value], kernel=3, pad=1)
    file.finish()
    return file


@settings(max_examples=60)
@given(programs(), st.sampled_from([(1, 5, 4), (3, 3, 7)]), st.sampled_from([1, 2]))
def test_generated_programs(file: Growing, shape: tuple[int, int, int], threads: int) -> None:
    check(file, pictures(*shape), threads)
