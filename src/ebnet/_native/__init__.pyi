"""ebnet's native core"""

from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray
from torch import Tensor

from ebnet._native import kernels as kernels
from ebnet._native import train as train

Scalar = TypeVar("Scalar", bound=numpy.generic)
Array = NDArray[Scalar] | Tensor  # in C order, on the CPU, of exactly this type

class Engine:
    """A packed network, ready to run."""

    @staticmethod
    def load(path: bytes, threads: int, stream: str, work: int = 0, memory: int = 0, side: int = 0) -> Engine: ...
    @staticmethod
    def load_memory(
        data: bytes, threads: int, stream: str = "fp32", work: int = 0, memory: int = 0, side: int = 0
    ) -> Engine: ...
    def run(self, images: Array[Any]) -> tuple:
        """(logits [batch, classes], experts [layers, batch])"""

    def trace(self, images: Array[Any]) -> tuple:
        """run's results and every op's value as [batch, pixels * channels]"""

    def profile(self, images: Array[Any]) -> list:
        """Per op: name, kind, kernel, multiply-accumulates, seconds, shape"""

    def plan(self, arg0: int, arg1: int, arg2: int, /) -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def stream(self) -> str: ...
    @property
    def classes(self) -> int: ...
    @property
    def in_channels(self) -> int: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def isa(self) -> str: ...
    @property
    def session_bytes(self) -> list[int]: ...
    @property
    def kernels(self) -> list[str]: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def program(self) -> str: ...
    @property
    def preprocessing(self) -> str: ...
    @property
    def network(self) -> str: ...

ERRORS: dict = ...
