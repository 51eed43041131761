"""Networks by name: any notation, and the names used in the paper."""

import fnmatch
from typing import Any

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.methods import METHODS, RESNET18
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.precision import Precision

NAMED: dict[str, dict[str, Any]] = {method.name: method.settings for method in METHODS} | {
    "sbaseline": RESNET18,
    "ebnet-1242": {"arch": "1242-2-4:4:8:16", "experts": 4},
    "ebnet-1282": {"arch": "1282-2-4:4:8:16", "experts": 4},
    "ebnet-1262-official": {"arch": "1262-2-4:8:8:16", "experts": 4, "scaling": True},
}
"""The methods of the paper's comparison, its baseline and its best networks."""


def list_models(pattern: str = "*") -> list[str]:
    """The named networks that fit a pattern; every notation such as ``1262-2-4:8:8:16`` or ``bnas-15x68`` is one too.

    Example: `list_models("xnor*")`
    """
    return sorted(fnmatch.filter(NAMED, pattern))


def network_config(name: str, **settings: Any) -> NetworkConfig:
    """The configuration of a named network or a notation, with `settings` on top."""
    return NetworkConfig.from_dict(NAMED.get(name, {"arch": name}) | settings)


def create_model(arch: Any, precision: Precision | str = Precision.REAL, **settings: Any) -> ExpertBinaryNetwork:
    """Build a network from a notation or a name.

    Examples:
        >>> model = create_model("1262-2-4:8:8:16", experts=4)
        >>> small = create_model("1111-0.25-1:1:2:2", experts=4, num_classes=10, stem="cifar")

    Args:
        arch: the notation, an `Arch`, or one of `list_models()`.
        precision: where it starts: real (the teacher), binary_input (Stage I) or binary (Stage II).
        settings: fields of `NetworkConfig`: experts, num_classes, in_channels, stem, shortcut, aggregation, scaling ...
    """
    if not isinstance(precision, str):
        raise ConfigError(f"precision={precision!r}: expected one of {', '.join(Precision)}")
    return ExpertBinaryNetwork(network_config(str(arch), **settings), precision)
