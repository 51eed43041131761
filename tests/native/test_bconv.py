"""Every binary convolution kernel equals the reference to the last bit, and the reference equals numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebnet._native import kernels
from tests.native.binary_case import (
    STREAM_TYPES,
    Case,
    Runner,
    Shape,
    assert_equal,
    make_case,
    narrowed,
    native,
    pack_planes,
    plain_shapes,
    run_case,
    shapes,
    widened,
    with_another_unit,
)
from tests.native.emulated import build, runner

RUNS_HERE = dict(kernels.names())
EMULATED = ["avx512-popcount", "avx512-carry-save", "amx-int8"]
"""Kernels whose arithmetic is tested on any CPU, their instructions emulated."""
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# Where a kernel is made for some shapes only, or has code of its own for them.
SPECIAL = {
    "avx2-pair-lut-2": shapes(least_out=33),
    "avx2-pair-lut-4": shapes(least_out=97, sizes=(1, 5)),
    "avx512-popcount": shapes() | plain_shapes(),
    "avx512-carry-save": plain_shapes(),
}

# The layers of 1262-2-4:8:8:16, cropped in height: in, out, groups, kernel, stride, height, width.
NETWORK = [
    (64, 128, 4, 3, 1, 4, 56),
    (128, 128, 4, 3, 1, 4, 56),
    (128, 128, 1, 1, 1, 3, 56),
    (128, 256, 8, 3, 2, 5, 56),
    (256, 256, 8, 3, 1, 3, 28),
    (256, 512, 8, 3, 2, 3, 28),
    (512, 512, 8, 3, 1, 3, 14),
    (512, 512, 1, 1, 1, 2, 14),
    (512, 1024, 16, 3, 2, 3, 14),
    (1024, 1024, 16, 3, 1, 2, 7),
    (1024, 1024, 1, 1, 1, 2, 7),
]
# Narrow groups and widths that fill no vector.
NARROW = [
    (64, 32, 4, 3, 1, 4, 32),
    (32, 32, 4, 3, 1, 4, 32),
    (16, 16, 4, 3, 2, 5, 32),
    (11, 11, 1, 3, 1, 4, 32),
    (11, 22, 1, 3, 2, 5, 32),
    (15, 15, 1, 3, 1, 4, 16),
    (34, 17, 1, 1, 1, 4, 16),
    (88, 44, 2, 3, 1, 4, 16),
]
# So large that kernels cut them into strips of rows, with few and with many weights a group.
STRIPS = [
    (128, 72, 1, 1, 1, 9, 56),
    (64, 34, 2, 3, 1, 24, 56),
    (128, 64, 4, 3, 2, 41, 56),
    (1024, 144, 1, 1, 1, 20, 7),
]


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("emulated"))


@pytest.fixture(params=[*(name for name in RUNS_HERE if name != "reference"), *(f"{n} (emulated)" for n in EMULATED)])
def kernel(request: pytest.FixtureRequest) -> tuple[str, Runner]:
    """A kernel's name and the way to run it."""
    name = request.param
    if name.endswith(" (emulated)"):
        return name, runner(request.getfixturevalue("emulated"), name.removesuffix(" (emulated)"))
    if not RUNS_HERE[name]:
        pytest.skip(f"this CPU has not the instructions of {name}; its arithmetic is tested as {name} (emulated)")
    return name, native(name)


def supports(kernel: str, shape: Shape) -> bool:
    return kernels.supports(kernel.removesuffix(" (emulated)"), shape.numbers())


def shapes_for(kernel: str) -> st.SearchStrategy[Shape]:
    """Shapes that a kernel supports."""
    return SPECIAL.get(kernel.removesuffix(" (emulated)"), shapes()).filter(lambda shape: supports(kernel, shape))


def numpy_dots(case: Case) -> np.ndarray:
    """The convolution of signs, zero where padded, in numpy."""
    s = case.shape
    signs = np.where(case.input, 1, -1).astype(np.int32)
    signs = np.pad(signs, ((s.pad_h, s.pad_h), (s.pad_w, s.pad_w), (0, 0)))
    weights = np.where(case.weights, 1, -1).astype(np.int32)
    grouped = weights.reshape(s.groups, s.out_channels // s.groups, s.kernel_h, s.kernel_w, -1)
    dots = np.zeros((s.out_h, s.out_w, s.groups, s.out_channels // s.groups), np.int32)
    for ky in range(s.kernel_h):
        for kx in range(s.kernel_w):
            top, left = ky * s.dilation_h, kx * s.dilation_w
            tap = signs[top:, left:][:: s.stride_h, :: s.stride_w][: s.out_h, : s.out_w]
            dots += np.einsum("yxgc,goc->yxgo", tap.reshape(s.out_h, s.out_w, s.groups, -1), grouped[:, :, ky, kx])
    return dots.reshape(s.out_h, s.out_w, s.out_channels)


@FEW
@given(shape=shapes(most=40), seed=st.integers(0, 2**32 - 1))
def test_the_reference_is_the_convolution_of_signs(shape: Shape, seed: int) -> None:
    case = make_case(shape, seed)
    result = run_case(native("reference"), case)
    dots = numpy_dots(case)
    np.testing.assert_array_equal(result.dots, dots)
    value = dots.astype(np.float32) * case.scale
    value = np.where(np.signbit(value), case.slope * value, value) + case.skip
    np.testing.assert_array_equal(result.stream, value)
    np.testing.assert_allclose(result.row_sums, value.sum(axis=1, dtype=np.float64), rtol=1e-4, atol=1e-3)
    bits = case.bn_scale * value + case.bn_shift >= 0
    np.testing.assert_array_equal(result.bits, pack_planes(bits, case.next_groups))


@FEW
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_a_kernel_equals_the_reference(kernel: tuple[str, Runner], seed: int, data: st.DataObject) -> None:
    name, run = kernel
    shape = data.draw(shapes_for(name))
    case = make_case(shape, seed)
    split = data.draw(st.integers(0, shape.out_h))
    expected = run_case(native("reference"), case)
    result = run_case(run, case, split)
    assert result.kernel == name, "another kernel ran"
    assert_equal(result, expected)
    body = run_case(run, case, split, want_dots=False)
    body.dots = expected.dots
    assert_equal(body, expected)


@FEW
@given(shape=shapes(most=40), seed=st.integers(0, 2**32 - 1))
def test_the_references_steps_of_other_units(shape: Shape, seed: int) -> None:
    case = with_another_unit(make_case(shape, seed), seed)
    value = numpy_dots(case).astype(np.float32) * case.scale
    if case.shift is not None:
        value = value + case.shift
    if not case.act_last:
        value = np.where(np.signbit(value), case.slope * value, value)
    value = value + case.skip
    if case.act_last:
        value = np.where(np.signbit(value), case.slope * value, value)
    if case.after is not None:
        value = value + case.after
    result = run_case(native("reference"), case)
    np.testing.assert_array_equal(result.stream, value)
    bits = case.bn_scale * value + case.bn_shift >= 0
    np.testing.assert_array_equal(result.bits, pack_planes(bits, case.next_groups))


SEED_AND_STREAMS = st.tuples(st.integers(0, 2**32 - 1), *2 * [st.sampled_from(STREAM_TYPES)])


@FEW
@given(data=st.data())
def test_a_kernel_equals_the_reference_in_other_units(kernel: tuple[str, Runner], data: st.DataObject) -> None:
    (name, run), (seed, *types) = kernel, data.draw(SEED_AND_STREAMS)
    case = with_another_unit(make_case(data.draw(shapes_for(name)), seed), seed)
    options = {"skip_type": types[0], "stream_type": types[1]}
    assert_equal(run_case(run, case, **options), run_case(native("reference"), case, **options))


@FEW
@given(data=st.data())
def test_a_narrow_stream_is_rounded_where_it_is_stored(kernel: tuple[str, Runner], data: st.DataObject) -> None:
    """Of a narrow skip what is read is exact; sums and signs are those of the values before they are rounded."""
    (name, run), (seed, skip_type, stream_type) = kernel, data.draw(SEED_AND_STREAMS)
    dots = data.draw(st.booleans())
    case = make_case(data.draw(shapes_for(name)), seed)
    case.skip *= np.float32(10) ** np.random.default_rng(seed).integers(-9, 6, case.skip.shape).astype(np.float32)
    result = run_case(run, case, want_dots=dots, skip_type=skip_type, stream_type=stream_type)
    case.skip = widened(narrowed(case.skip, skip_type), skip_type)
    expected = run_case(native("reference"), case)
    expected.stream = narrowed(expected.stream, stream_type)
    result.dots = result.dots if dots else expected.dots
    assert_equal(result, expected)


@pytest.mark.parametrize("layer", NETWORK + NARROW + STRIPS, ids=str)
def test_a_kernel_equals_the_reference_on_the_network(kernel: tuple[str, Runner], layer: tuple[int, ...]) -> None:
    name, run = kernel
    inputs, outputs, groups, size, stride, height, width = layer
    shape = Shape(inputs, outputs, groups, size, size, stride, stride, size // 2, size // 2, 1, 1, height, width)
    if not supports(name, shape):
        pytest.skip(f"{name} is not made for this layer")
    case = make_case(shape, seed=len(str(layer)))
    case.next_groups = groups
    expected = run_case(native("reference"), case)
    result = run_case(run, case, want_dots=False)
    result.dots = expected.dots
    assert result.kernel == name
    assert_equal(result, expected)


def test_padding_counts_as_zero_not_as_minus_one(kernel: tuple[str, Runner]) -> None:
    name, run = kernel
    sizes = ((32, 32), (32, 64), (20, 128))
    choices = (Shape(*channels, 1, 3, 3, 1, 1, 1, 1, 1, 1, 4, 8) for channels in sizes)
    shape = next(shape for shape in choices if supports(name, shape))
    case = make_case(shape, seed=0)
    case.input[:], case.weights[:] = True, True
    taps = np.outer([2, 3, 3, 2], [2, 3, 3, 3, 3, 3, 3, 2])
    expected = np.repeat(shape.in_channels * taps[..., None], shape.out_channels, axis=2)
    np.testing.assert_array_equal(run_case(run, case).dots, expected)


@pytest.mark.parametrize(
    ("isa", "wide_isa"),
    [(isa, isa) for isa in ("reference", "portable", "avx512")] + [("avx2", "portable"), ("amx", "avx512")],
)
def test_selection_gives_an_isa_its_own_kernel_or_one_of_the_next_below(isa: str, wide_isa: str) -> None:
    small = Shape(64, 64, 1, 3, 3, 1, 1, 1, 1, 1, 1, 8, 8)
    assert kernels.select(small.numbers(), isa).startswith(isa)
    wide = Shape(40_000, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1)  # dot products leave 16 bits, weight tiles the scratch
    assert kernels.select(wide.numbers(), isa).startswith(wide_isa)


def test_the_environment_forces_an_isa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBNET_ISA", "portable")
    assert kernels.requested_isa() == "portable"
    monkeypatch.setenv("EBNET_ISA", "mmx")
    with pytest.raises(ValueError, match=r"EBNET_ISA=mmx.*portable"):
        kernels.requested_isa()
    monkeypatch.delenv("EBNET_ISA")
    runs = [name for name, here in kernels.names() if here]
    assert runs[-1].startswith(kernels.requested_isa())


def test_numbers_take_the_widest_vectors_unless_a_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the binary kernels run a narrower set: not every CPU with AVX-512 counts bits in it."""
    monkeypatch.delenv("EBNET_ISA", raising=False)
    widest = tuple([name for name, here in of if here][-1] for of in (kernels.dense_levels(), kernels.int8_levels()))
    assert kernels.requested_levels() == widest
    monkeypatch.setenv("EBNET_ISA", "portable")
    assert kernels.requested_levels() == ("scalar", "scalar")
    if dict(kernels.dense_levels()).get("avx2"):
        monkeypatch.setenv("EBNET_ISA", "avx2")
        assert kernels.requested_levels() == ("avx2", "avx2")


def test_tiles_need_the_cpu_and_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them the best of the other sets runs and nothing is said; who asks for them by name is told what runs."""
    if RUNS_HERE.get("amx-int8"):
        monkeypatch.setenv("EBNET_ISA", "amx")
        assert kernels.requested_isa() == "amx"
        return
    monkeypatch.delenv("EBNET_ISA", raising=False)
    best = kernels.requested_isa()
    assert best != "amx"
    monkeypatch.setenv("EBNET_ISA", "amx")
    with pytest.raises(ValueError, match=rf"EBNET_ISA=amx cannot run here; this CPU runs: .*{best}$"):
        kernels.requested_isa()


def test_wrong_sizes_are_refused() -> None:
    shape = Shape(8, 8, 1, 1, 1, 1, 1, 0, 0, 1, 1, 2, 2)
    case = make_case(shape, seed=0)
    with pytest.raises(ValueError, match="input of the wrong size"):
        kernels.run("portable", shape.numbers(), case.canonical(), np.zeros(3, np.uint64))
    with pytest.raises(ValueError, match="no kernel is called nothing"):
        kernels.run("nothing", shape.numbers(), case.canonical(), pack_planes(case.input, 1))
