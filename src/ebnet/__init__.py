"""ebnet: design, train, search, compress and run expert binary networks.

The public names load on first use, so `import ebnet` needs neither torch nor time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ebnet.lazy import on_first_use

if TYPE_CHECKING:
    from ebnet.arch import Arch as Arch
    from ebnet.models.network import ExpertBinaryNetwork as ExpertBinaryNetwork
    from ebnet.models.official import import_official as import_official
    from ebnet.models.pretrained import load_pretrained as load_pretrained
    from ebnet.models.registry import create_model as create_model
    from ebnet.models.registry import list_models as list_models
    from ebnet.packing.file import pack as pack
    from ebnet.packing.unpack import unpack as unpack
    from ebnet.runtime.engine import Engine as Engine
    from ebnet.runtime.engine import load as load
    from ebnet.runtime.limits import Limits as Limits

__version__ = "0.1.0"

_PACKAGES = ("bulk", "cost", "data", "models", "nn", "recipe", "runs", "search", "train")

__all__, _find = on_first_use(
    __name__,
    {
        "ebnet.arch": ("Arch",),
        "ebnet.runtime.engine": ("Engine", "load"),
        "ebnet.models.network": ("ExpertBinaryNetwork",),
        "ebnet.runtime.limits": ("Limits",),
        "ebnet.models.registry": ("create_model", "list_models"),
        "ebnet.models.official": ("import_official",),
        "ebnet.models.pretrained": ("load_pretrained",),
        "ebnet.packing.file": ("pack",),
        "ebnet.packing.unpack": ("unpack",),
    },
)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    return import_module(f"ebnet.{name}") if name in _PACKAGES else _find(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
