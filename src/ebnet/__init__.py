"""ebnet: design, train, search, compress and run expert binary networks.

The public names load on first use, so `import ebnet` needs neither torch nor time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebnet.arch import Arch as Arch
    from ebnet.models.network import ExpertBinaryNetwork as ExpertBinaryNetwork
    from ebnet.models.official import import_official as import_official
    from ebnet.models.pretrained import load_pretrained as load_pretrained
    from ebnet.models.registry import create_model as create_model
    from ebnet.models.registry import list_models as list_models
    from ebnet.packing.file import pack as pack
    from ebnet.runtime.engine import Engine as Engine
    from ebnet.runtime.engine import load as load
    from ebnet.runtime.limits import Limits as Limits

__version__ = "0.1.0"

_HOME = {
    "Arch": "ebnet.arch",
    "Engine": "ebnet.runtime.engine",
    "ExpertBinaryNetwork": "ebnet.models.network",
    "Limits": "ebnet.runtime.limits",
    "create_model": "ebnet.models.registry",
    "import_official": "ebnet.models.official",
    "list_models": "ebnet.models.registry",
    "load": "ebnet.runtime.engine",
    "load_pretrained": "ebnet.models.pretrained",
    "pack": "ebnet.packing.file",
}
_PACKAGES = ("bulk", "cost", "data", "models", "nn", "recipe", "runs", "search", "train")

__all__ = [
    "Arch",
    "Engine",
    "ExpertBinaryNetwork",
    "Limits",
    "__version__",
    "create_model",
    "import_official",
    "list_models",
    "load",
    "load_pretrained",
    "pack",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"ebnet.{name}")
    raise AttributeError(f"module 'ebnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
