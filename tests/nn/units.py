"""Binary units to try: one with random numbers, its specification in float64, and what both compute."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from ebnet.nn import ExpertBinaryConv2d, Precision, Ste
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.unit import binary_unit, refusal

FAR = 1e-5
"""From the places where a sign, an estimator or a PReLU jumps: nearer ones are rounded to either side."""

Numbers = dict[str, Tensor]


@dataclass
class Unit:
    """The layers of a unit, and an input."""

    norm: nn.BatchNorm2d | None
    conv: ExpertBinaryConv2d
    act: nn.PReLU | None
    x: Tensor
    skip: str = "x"

    def layers(self, dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(None if m is None else copy.deepcopy(m).to(dtype) for m in (self.norm, self.conv, self.act))

    def skip_of(self, x: Tensor, y: Tensor) -> Tensor | None:
        if self.skip == "other":
            return torch.linspace(-1, 1, y.numel(), dtype=x.dtype).view_as(y).requires_grad_()
        return x if self.skip == "x" else None

    def native(self) -> Numbers:
        norm, conv, act = self.layers(torch.float32)
        x = self.x.clone().requires_grad_()
        assert refusal(x, norm, conv, act) is None
        size = conv.geometry.output_size(x.shape[2:], conv.kernel_size)
        skip = self.skip_of(x, x.new_empty(len(x), conv.out_channels, *size))
        return numbers(binary_unit(x, skip, norm, conv, act), x, skip, norm, conv, act)

    def specified(self) -> Numbers | None:
        """Layer by layer in double precision; None where something lies too near to a jump to be told from it."""
        norm, conv, act = self.layers(torch.float64)
        x = self.x.double().requires_grad_()
        n = x if norm is None else norm(x)
        z = BinaryConv2d.forward(conv, n)
        far = [z.abs()[z != 0] > FAR] if act is not None else []
        if self.conv.precision.binary_input:
            far += [n.abs() > FAR, (n.abs() - 1).abs() > FAR]
        if conv.gate is not None:
            first, second = conv.gate.linear(n.mean((2, 3))).topk(2).values.T
            far.append(first - second > FAR)
        if not all(values.all() for values in far):
            return None
        y = z if act is None else act(z)
        skip = self.skip_of(x, y)
        return numbers(y if skip is None else y + skip, x, skip, norm, conv, act)


def numbers(y: Tensor, x: Tensor, skip: Tensor | None, *layers: Any) -> Numbers:
    """Output, every gradient, and the state left behind."""
    weight = torch.sin(torch.arange(y.numel(), dtype=y.dtype)).view_as(y)
    (y * weight).sum().backward()
    found = {"y": y.detach(), "dx": x.grad, "dskip": None if skip is None else skip.grad}
    for layer in filter(None, layers):
        found |= {f"d{type(layer).__name__}.{name}": p.grad for name, p in layer.named_parameters()}
        found |= {f"{type(layer).__name__}.{name}": buffer for name, buffer in layer.named_buffers()}
        found |= {"experts": layer.last_experts} if isinstance(layer, ExpertBinaryConv2d) else {}
    return {name: value for name, value in found.items() if value is not None}


def assert_equal(mine: Numbers, theirs: Numbers | None) -> None:
    assert theirs is not None
    assert mine.keys() == theirs.keys()
    assert torch.equal(mine["experts"], theirs["experts"])
    for name, expected in theirs.items():
        expected = expected.double()
        error = (mine[name].double() - expected).abs().max() if expected.numel() else 0.0
        assert error <= 3e-4 * expected.abs().max() + 1e-5, name


def made(
    channels: tuple[int, int] = (8, 8),
    kernel: tuple[int, int] = (3, 3),
    size: tuple[int, int] = (6, 6),
    batch: int = 5,
    experts: int = 4,
    normed: bool = True,
    activated: bool = True,
    training: bool = True,
    skip: str = "x",
    seed: int = 0,
    **options: Any,
) -> Unit:
    torch.manual_seed(seed)
    conv = ExpertBinaryConv2d(*channels, kernel, num_experts=experts, **options)
    norm, act = nn.BatchNorm2d(channels[0], eps=1e-4), nn.PReLU(channels[1])
    with torch.no_grad():
        conv.weight.normal_(std=0.8)
        conv.scale.uniform_(-1.5, 1.5)
        if conv.gate is not None:
            conv.gate.linear.weight.normal_()
            conv.gate.linear.bias.normal_(std=0.3)
        if conv.bias is not None:
            conv.bias.normal_()
        act.weight.uniform_(-0.3, 0.7)
        for values in (norm.weight, norm.bias, norm.running_mean):
            assert values is not None
            values.normal_()
        assert norm.running_var is not None
        norm.running_var.uniform_(0.5, 2)
    x = torch.randn(batch, channels[0], *size) + 0.3
    norm.train(training)
    return Unit(norm if normed else None, conv, act if activated else None, x, skip)


pairs = st.tuples
cases = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 3]),
        "channels": pairs(st.sampled_from([1, 2, 4, 5, 8, 16, 19, 33]), st.sampled_from([1, 3, 4, 8, 13, 17, 35])),
        "kernel": pairs(st.integers(1, 4), st.integers(1, 4)),
        "stride": pairs(st.integers(1, 3), st.integers(1, 3)),
        "padding": pairs(st.integers(0, 3), st.integers(0, 3)),
        "dilation": pairs(st.integers(1, 2), st.integers(1, 2)),
        "beyond": pairs(st.integers(0, 5), st.integers(0, 9)),
        "batch": st.integers(1, 7),
        "experts": st.integers(1, 8),
        "gate": st.sampled_from(["softmax", "sigmoid"]),
        "temperature": st.sampled_from([1.0, 0.5]),
        "scaling": st.booleans(),
        "bias": st.booleans(),
        "precision": st.sampled_from(list(Precision)),
        "ste": st.sampled_from(list(Ste)),
        "normed": st.booleans(),
        "activated": st.booleans(),
        "training": st.booleans(),
        "skip": st.sampled_from(["x", "other", "none"]),
        "seed": st.integers(0, 2**20),
    }
)
THE_PAPERS = {
    "groups": 1, "channels": (8, 8), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1),
    "beyond": (4, 4), "batch": 6, "experts": 4, "gate": "softmax", "temperature": 1.0, "scaling": True, "bias": False,
    "ste": Ste.CLIP, "normed": True, "activated": True, "training": True, "skip": "x", "seed": 1,
}  # fmt: skip
