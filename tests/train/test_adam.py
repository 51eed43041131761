"""The native Adam against torch's."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ebnet.nn import native
from ebnet.train.adam import Adam


def parameters(sizes: list[int], dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(size).to(dtype)) for size in sizes]


def steps(optimizer: torch.optim.Optimizer, values: list[nn.Parameter], count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        torch.manual_seed(number)
        for value in values:
            value.grad = torch.randn(value.shape).to(value.dtype) * 10.0 ** (number % 3 - 2)
        optimizer.step()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=6),
    st.floats(1e-5, 1e-1),
    st.sampled_from([0.0, 1e-5, 0.1]),
    st.integers(1, 6),
)
def test_equals_torch_in_float64(sizes: list[int], rate: float, decay: float, count: int) -> None:
    own, exact = parameters(sizes), parameters(sizes, torch.float64)
    with torch.no_grad():
        for mine, theirs in zip(own, exact, strict=True):
            theirs.copy_(mine)
    mine, theirs = Adam(own, rate, decay), torch.optim.Adam(exact, rate, weight_decay=decay)
    steps(mine, own, count)
    steps(theirs, exact, count)
    for a, b in zip(own, exact, strict=True):
        assert torch.allclose(a.double(), b, rtol=1e-5, atol=1e-5 * rate + 1e-6)


def test_groups_have_their_own_rates_and_a_parameter_without_gradient_stays() -> None:
    first, second, third = parameters([5, 7, 3])
    groups = [{"params": [first, third]}, {"params": [second], "lr": 1e-4, "weight_decay": 0.5}]
    reference = [nn.Parameter(p.detach().clone()) for p in (first, second, third)]
    same = [{"params": [reference[0], reference[2]]}, {"params": [reference[1]], "lr": 1e-4, "weight_decay": 0.5}]
    mine, theirs = Adam(groups, 1e-2, 1e-3), torch.optim.Adam(same, 1e-2, weight_decay=1e-3)
    for optimizer, values in ((mine, [first, second]), (theirs, reference[:2])):
        steps(optimizer, values, 3)
        optimizer.param_groups[0]["lr"] = 1e-3
        steps(optimizer, values, 2, first=3)
    for a, b in zip((first, second, third), reference, strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    assert torch.equal(third, reference[2])
    assert mine.state[first]["step"].item() == 5


def test_state_is_torchs_and_a_restart_goes_on_bit_by_bit() -> None:
    whole = parameters([300, 11])
    optimizer = Adam(whole, 1e-2, 1e-4)
    steps(optimizer, whole, 3)
    state = copy.deepcopy(optimizer.state_dict())
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    parts = [nn.Parameter(p.detach().clone()) for p in whole]
    again = Adam(parts, 1e-2, 1e-4)
    steps(again, parts, 1)  # whose state is then replaced
    with torch.no_grad():
        for p, q in zip(parts, whole, strict=True):
            p.copy_(q)
    again.load_state_dict(copy.deepcopy(state))
    steps(optimizer, whole, 2, first=3)
    steps(again, parts, 2, first=3)
    assert all(map(torch.equal, parts, whole))
    torchs = torch.optim.Adam([nn.Parameter(p.detach().clone()) for p in whole], 1e-2, weight_decay=1e-4)
    torchs.load_state_dict(state)
    assert torchs.state[torchs.param_groups[0]["params"][0]]["step"].item() == 3


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    def run(count: int) -> list[Tensor]:
        values = parameters([40_000, 3, 50_000])
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            steps(Adam(values, 1e-2, 1e-4), values, 2)
        finally:
            torch.set_num_threads(before)
        return [value.detach() for value in values]

    assert all(map(torch.equal, run(1), run(threads)))


def test_other_types_take_torchs_step(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    assert native.kernels is not None
    monkeypatch.setattr(native.kernels, "adam", lambda *arguments: calls.append(arguments))
    values = parameters([4], torch.float64)
    before = values[0].detach().clone()
    steps(Adam(values, 1e-2), values, 1)
    assert not torch.equal(values[0], before)
    assert calls == []
