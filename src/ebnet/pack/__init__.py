"""A trained Stage II network -> one file that the engine runs.

`ebnet.pack` is both this package and the function `ebnet.pack(model, path)`: importing a package binds its name in its
parent, so the package itself has to be callable.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ebnet.models.network import ExpertBinaryNetwork


class _CallablePackage(ModuleType):
    def __call__(
        self,
        model: "ExpertBinaryNetwork",
        path: str | Path,
        reals: Literal["fp32", "fp16"] = "fp32",
        preprocessing: dict[str, Any] | None = None,
        labels: list[str] | None = None,
    ) -> Path:
        """Write a Stage II network as one file; see `ebnet.pack.file.pack`."""
        from ebnet.pack.file import pack

        return pack(model, path, reals, preprocessing, labels)


sys.modules[__name__].__class__ = _CallablePackage
