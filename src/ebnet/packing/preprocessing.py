"""How a picture becomes the network's input, as the packed file says it."""

from typing import Any

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig

FIELDS = ("size", "resize", "crop", "mean", "std", "in_channels")
DEFAULT_SIZES = {"imagenet": 224, "conv7x7": 224, "conv3x3": 224, "cifar": 32}
"""Side of the pictures each stem is made for."""


def complete_preprocessing(given: dict[str, Any] | None, config: NetworkConfig) -> dict[str, Any]:
    """All fields: the central crop / resize of the shorter side, scaled to size x size, then (x / 255 - mean) / std."""
    given = dict(given or {})
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise ConfigError(f"unknown preprocessing {', '.join(unknown)}; known are {', '.join(FIELDS)}")
    size = int(given.get("size") or DEFAULT_SIZES[config.stem])
    crop = int(given.get("crop") or size)
    resize = int(given.get("resize") or crop)
    mean = [float(value) for value in given.get("mean") or [0.0] * config.in_channels]
    std = [float(value) for value in given.get("std") or [1.0] * config.in_channels]
    if not 1 <= crop <= resize or size < 1:
        raise ConfigError(f"preprocessing={given!r}: size and crop are at least 1, and resize is not below crop")
    if {len(mean), len(std), given.get("in_channels", config.in_channels)} != {config.in_channels}:
        raise ConfigError(f"preprocessing={given!r} does not fit the network's {config.in_channels} input channels")
    if min(std) <= 0:
        raise ConfigError(f"preprocessing std={std}: expected positive numbers")
    values = (size, resize, crop, mean, std, config.in_channels)
    return dict(zip(FIELDS, values, strict=True))
