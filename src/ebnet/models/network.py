"""The paper's residual network for every notation (appendix, "Network architecture naming convention")."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, overload

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError, NonFiniteError, ShapeError
from ebnet.models.block import BinaryUnit, Block
from ebnet.models.config import NetworkConfig
from ebnet.models.layout import layout
from ebnet.models.stem import make_stem
from ebnet.names import layer_name
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision, set_precision

Level = Literal["block", "stage"]


class Head(nn.Module):
    """An extra real layer between the pooled features and the classifier."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, width)
        self.act = nn.PReLU(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.linear(x))


class ExpertBinaryNetwork(nn.Module):
    """Stem, four stages of binary blocks, global average pool, classifier. First and last layers stay real."""

    def __init__(self, config: NetworkConfig, precision: Precision | str = Precision.REAL) -> None:
        super().__init__()
        self.config = config
        precision = Precision.parse(precision)
        structure = layout(config)
        self.stem = make_stem(config.stem, structure.stem)
        self.stages = nn.ModuleList(
            nn.Sequential(*(Block(block, config, precision) for block in stage)) for stage in structure.stages
        )
        self.head = None if config.head_width is None else Head(structure.features, config.head_width)
        self.classifier = nn.Linear(config.head_width or structure.features, config.num_classes)
        self._precision = precision

    @overload
    def forward(self, images: Tensor, features: None = None) -> Tensor: ...

    @overload
    def forward(self, images: Tensor, features: Level) -> tuple[Tensor, list[Tensor]]: ...

    def forward(self, images: Tensor, features: Level | None = None) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Logits; with `features`, also the maps after each block or each stage, for attention transfer."""
        if features not in (None, "block", "stage"):
            raise ConfigError(f"features={features!r}: expected 'block', 'stage' or None")
        x, maps = self._body(images, features)
        logits = self.classifier(self._pooled(x))
        return logits if features is None else (logits, maps)

    def embed(self, images: Tensor) -> Tensor:
        """The features before the classifier, [batch, channels]."""
        return self._pooled(self._body(images, None)[0])

    def experts(self, images: Tensor) -> Tensor:
        """The expert chosen by each binary layer, in forward order, for each image: [layers, batch]."""
        if self.config.conv != "expert":
            raise ConfigError(f"a network of conv={self.config.conv!r} mixes its experts and chooses none")
        training = self.training
        self.eval()
        try:
            with torch.no_grad():
                self._body(images, None)
        finally:
            self.train(training)
        chosen = [
            layer.last_experts for layer in self.binary_layers().values() if isinstance(layer, ExpertBinaryConv2d)
        ]
        return torch.stack([row for row in chosen if row is not None])

    def binary_layers(self) -> dict[str, BinaryConv2d]:
        """The binary convolutions by name, in forward order."""
        return {name: unit.conv for name, unit in self.units()}

    def units(self) -> Iterator[tuple[str, BinaryUnit]]:
        """The binary units by the name of their convolution, in forward order."""
        for block in self.named_blocks():
            yield from block

    def named_blocks(self) -> Iterator[list[tuple[str, BinaryUnit]]]:
        """The units of each block, as `units` names them."""
        for i, stage in enumerate(self.stages):
            assert isinstance(stage, nn.Sequential)
            for j, block in enumerate(stage):
                assert isinstance(block, Block)
                yield [(layer_name(i, j, k), unit) for k, unit in enumerate(block.units)]  # type: ignore[misc]

    def through_torch(self) -> dict[str, list[str]]:
        """The binary units that the native core did not serve in the last forward pass: their names by the reason."""
        names: dict[str, list[str]] = {}
        for name, module in self.named_modules():
            if isinstance(module, BinaryUnit) and module.refusal is not None:
                names.setdefault(module.refusal, []).append(name)
        return names

    @property
    def precision(self) -> Precision:
        return self._precision

    def set_precision(self, precision: Precision | str) -> "ExpertBinaryNetwork":
        """Move all binary layers to another stage of training; see `ebnet.nn.Precision`."""
        precision = Precision.parse(precision)
        set_precision(self, precision)
        self._precision = precision
        return self

    def replicate(self, experts: int) -> "ExpertBinaryNetwork":
        """Grow one trained expert per layer to `experts` equal ones (optimization policy, step 2)."""
        if self.config.conv != "expert":
            raise ConfigError(f"only conv='expert' can be replicated, this network has conv={self.config.conv!r}")
        for layer in self.binary_layers().values():
            assert isinstance(layer, ExpertBinaryConv2d)
            layer.replicate(experts)
        self.config = self.config.with_experts(experts)
        return self

    def save_pretrained(self, directory: str | Path) -> Path:
        """Write `config.json` and `model.safetensors`; `ebnet.load_pretrained` reads them back."""
        from ebnet.models.pretrained import save_pretrained

        return save_pretrained(self, directory)

    def _body(self, images: Tensor, level: Level | None) -> tuple[Tensor, list[Tensor]]:
        self._check(images)
        x = self.stem(images)
        maps = []
        for stage in self.stages:
            assert isinstance(stage, nn.Sequential)
            for block in stage:
                x = block(x)
                if level == "block":
                    maps.append(x)
            if level == "stage":
                maps.append(x)
        return x, maps

    def _pooled(self, x: Tensor) -> Tensor:
        x = x.mean((2, 3))
        return x if self.head is None else self.head(x)

    def _check(self, images: Tensor) -> None:
        channels = self.config.in_channels
        if images.dim() != 4 or images.shape[1] != channels:
            raise ShapeError(f"expected images [batch, {channels}, height, width], got a tensor {tuple(images.shape)}")
        if not images.is_floating_point():
            raise ShapeError(f"expected floating-point images, got {images.dtype}; scale and normalise them first")
        # One pass, and a second only in doubt: a sum of numbers is seldom too large to be one.
        if not torch.compiler.is_compiling() and not images.sum().isfinite() and not images.isfinite().all():
            raise NonFiniteError("the images hold NaN or infinity")
