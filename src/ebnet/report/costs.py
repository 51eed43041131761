"""What a network costs, layer by layer, and how small it gets."""

from ebnet.cost.profile import LayerCost, Profile, profile
from ebnet.cost.table import megabytes, short
from ebnet.report.figure import Bars, Series

BOPS_PER_OP = 64
"""A 64-bit word holds as many binary multiply-accumulates as the usual count of OPs divides by."""


def cost_figures(costs: Profile) -> list[Bars]:
    """Operations and bytes of each layer."""
    layers = [layer for layer in costs.layers if layer.bops or layer.real_macs]
    names = [layer.name for layer in layers]
    parts = {
        "binary (BOPs / 64)": lambda layer: layer.bops / BOPS_PER_OP,
        "real multiply-accumulates": lambda layer: layer.real_macs,
        "elementwise": lambda layer: layer.elementwise,
    }
    operations = [
        Series(name, [value(layer) for layer in layers], [_operations(layer) for layer in layers])
        for name, value in parts.items()
    ]
    experts = costs.config.experts
    bits = [layer.binary_weights * experts / 8 for layer in layers]
    reals = [4.0 * layer.real_parameters for layer in layers]
    sizes = [
        f"{layer.name}\n{megabytes(round(b))} of bits, {megabytes(round(r))} of fp32 reals"
        for layer, b, r in zip(layers, bits, reals, strict=True)
    ]
    return [
        Bars(
            "cost-operations",
            f"Operations of each layer ({costs.input_size[0]} x {costs.input_size[1]})",
            f"Per image: {short(costs.bops)} binary and {short(costs.real_macs)} real multiply-accumulates, "
            f"{short(costs.elementwise)} elementwise operations. Only one expert works at a time, so experts add no "
            "binary operations.",
            names,
            operations,
            [short(round(sum(part.values[i] for part in operations))) for i in range(len(layers))],
        ),
        Bars(
            "cost-bytes",
            f"Bytes of each layer, {experts} expert{'s' if experts > 1 else ''}",
            f"In all {megabytes(costs.bytes_fp32)} with fp32 reals, {megabytes(costs.bytes_fp16)} with fp16 reals.",
            names,
            [Series("expert weights, 1 bit each", bits, sizes), Series("reals, fp32", reals, sizes)],
            [megabytes(round(b + r)) for b, r in zip(bits, reals, strict=True)],
        ),
    ]


def float_bytes(costs: Profile) -> int:
    """The plain network of the same structure: one expert, no gates, every weight a 32-bit float."""
    plain = profile(costs.config.with_experts(1), costs.input_size)
    return 4 * (plain.binary_weights + plain.real_parameters)


def _operations(layer: LayerCost) -> str:
    counts = {
        "BOPs": layer.bops,
        "real MACs": layer.real_macs,
        "elementwise": layer.elementwise,
    }
    shape = " x ".join(map(str, layer.output))
    return f"{layer.name} ({layer.kind})\noutput {shape}\n" + "\n".join(f"{n} {v:,}" for n, v in counts.items() if v)
