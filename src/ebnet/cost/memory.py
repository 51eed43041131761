"""What a convolution, an EBConv and a CondConv allocate at run time (appendix, "Memory usage analysis")."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Table
from torch import nn
from torch.profiler import ProfilerActivity, profile

from ebnet.nn.cond_conv import CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision


@dataclass(frozen=True)
class LayerMemory:
    """Bytes a layer allocates in one forward pass, in total and by the operators that allocate most."""

    name: str
    allocated: int
    output: int
    operators: dict[str, int]

    @property
    def extra(self) -> int:
        """What it allocates besides its output."""
        return self.allocated - self.output

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"extra": self.extra}


def measure(channels: int = 512, size: int = 16, experts: int = 4, batch: int = 1) -> list[LayerMemory]:
    """Profile the paper's three layers in the paper's setting: real weights and inputs, inference."""
    shape = (channels, channels, 3, 1, 1)
    layers: dict[str, nn.Module] = {
        "convolution": nn.Conv2d(channels, channels, 3, padding=1, bias=False),
        f"EBConv, {experts} experts": ExpertBinaryConv2d(*shape, num_experts=experts, precision=Precision.REAL),
        f"CondConv, {experts} experts": CondBinaryConv2d(*shape, num_experts=experts, precision=Precision.REAL),
    }
    images = torch.randn(batch, channels, size, size)
    return [_measure_layer(name, layer, images) for name, layer in layers.items()]


def _measure_layer(name: str, layer: nn.Module, images: torch.Tensor) -> LayerMemory:
    # The paper profiles the convolution with its gate or mixture, without the scale that follows.
    def run() -> torch.Tensor:
        if isinstance(layer, nn.Conv2d):
            return layer(images)
        return layer.convolve(images, images.mean((2, 3)))  # type: ignore[operator]

    with torch.inference_mode():
        output = run()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            run()
    operators: dict[str, int] = {}
    for event in recorded.key_averages():
        if event.self_cpu_memory_usage > 0:
            operators[event.key] = event.self_cpu_memory_usage
    ordered = dict(sorted(operators.items(), key=lambda item: -item[1]))
    return LayerMemory(name, sum(ordered.values()), output.numel() * output.element_size(), ordered)


def memory_table(rows: list[LayerMemory]) -> Table:
    table = Table(title="Memory allocated by one forward pass")
    for name in ("layer", "output", "extra", "by operator"):
        table.add_column(name, justify="left" if name in ("layer", "by operator") else "right")
    for row in rows:
        most = ", ".join(f"{op.removeprefix('aten::')} {_size(n)}" for op, n in list(row.operators.items())[:4])
        table.add_row(row.name, _size(row.output), _size(row.extra), most)
    return table


def _size(count: int) -> str:
    if count >= 1 << 20:
        return f"{count / (1 << 20):.2f} MB"
    return f"{count / (1 << 10):.2f} kB" if count >= 1 << 10 else f"{count} B"
