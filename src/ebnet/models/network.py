"""The paper's residual network for every notation (appendix, "Network architecture naming convention"), and networks of
cells."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, overload

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError, NonFiniteError, ShapeError
from ebnet.models.block import BinaryUnit, Block
from ebnet.models.cell import Cell, Pair
from ebnet.models.cell_layout import CellLayout
from ebnet.models.config import NetworkConfig
from ebnet.models.group import GroupBlock, Grouped
from ebnet.models.layout import BlockLayout, layout
from ebnet.models.stem import make_stem
from ebnet.names import layer_name, member_prefix
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision, set_precision

Level = Literal["block", "stage"]
AnyBlock = Block | GroupBlock | Cell


class Head(nn.Module):
    """An extra real layer between the pooled features and the classifier."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, width)
        self.act = nn.PReLU(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.linear(x))


class ExpertBinaryNetwork(nn.Module):
    """Stem, stages of binary blocks or cells, global average pool, classifier. First and last layers stay real.

    An ensemble (Zhu et al., CVPR 2019) is the first of its members and holds the `others`; its logits are the mean of
    theirs.
    """

    def __init__(self, config: NetworkConfig, precision: Precision | str = Precision.REAL) -> None:
        super().__init__()
        self.config = config
        precision = Precision.parse(precision)
        self._precision = precision
        structure = layout(config)
        self.stem = make_stem(config.stem, structure.stem)
        self.stages = nn.ModuleList(
            nn.Sequential(*(self._block(block, number == 0 == at) for at, block in enumerate(stage)))
            for number, stage in enumerate(structure.stages)
        )
        self.head = None if config.head_width is None else Head(structure.features, config.head_width)
        self.classifier = nn.Linear(config.head_width or structure.features, config.num_classes)
        one = replace(config, members=1)
        self.others = nn.ModuleList(ExpertBinaryNetwork(one, precision) for _ in range(config.members - 1))

    @property
    def members(self) -> list["ExpertBinaryNetwork"]:
        """Those of an ensemble; a single network is the only member of its own."""
        return [self, *self.others]

    def named_members(self) -> Iterator[tuple[str, "ExpertBinaryNetwork"]]:
        """The members, each with what the names of its layers begin with."""
        return ((member_prefix(number), member) for number, member in enumerate(self.members))

    @overload
    def forward(self, images: Tensor, features: None = None, bags: Sequence[Tensor] | None = None) -> Tensor: ...

    @overload
    def forward(
        self, images: Tensor, features: Level, bags: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]: ...

    def forward(
        self, images: Tensor, features: Level | None = None, bags: Sequence[Tensor] | None = None
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Logits; with `features`, also the maps after each block or each stage, for attention transfer.

        Args:
            bags: which of the images each member sees. Then the rows of all results are those of the members, one
                after another, each for its own images: what bagging trains on.
        """
        if features not in (None, "block", "stage"):
            raise ConfigError(f"features={features!r}: expected 'block', 'stage' or None")
        logits, maps = self._together(images, features, bags) if self.others else self._alone(images, features)
        return logits if features is None else (logits, maps)

    def embed(self, images: Tensor) -> Tensor:
        """The features before the classifier, [batch, channels]; those of an ensemble's members side by side."""
        return torch.cat([member._pooled(member._body(images, None)[0]) for member in self.members], 1)

    def classify(self, features: Tensor) -> Tensor:
        """The logits of what `embed` gives."""
        parts = zip(self.members, features.chunk(len(self.members), 1), strict=True)
        return torch.stack([member.classifier(part) for member, part in parts]).mean(0)

    def experts(self, images: Tensor) -> Tensor:
        """The expert chosen by each binary layer, in forward order, for each image: [layers, batch]."""
        if self.config.conv != "expert":
            raise ConfigError(f"a network of conv={self.config.conv!r} mixes its experts and chooses none")
        training = self.training
        self.eval()
        try:
            with torch.no_grad():
                self.embed(images)
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
        """The binary units by the name of their convolution, in forward order, all members' of an ensemble."""
        for prefix, member in self.named_members():
            for _, branches in member.named_blocks():
                yield from ((prefix + name, unit) for branch in branches for name, unit in branch)

    def named_blocks(self) -> Iterator[tuple[AnyBlock, list[list[tuple[str, BinaryUnit]]]]]:
        """Each block with the units of its branches, by the names of their convolutions; of this member alone."""
        for i, stage in enumerate(self.stages):
            assert isinstance(stage, nn.Sequential)
            for j, block in enumerate(stage):
                assert isinstance(block, AnyBlock)
                branches = block.branches if isinstance(block, GroupBlock) else [block]
                yield (
                    block,
                    [
                        [(layer_name(i, j, k, number), unit) for k, unit in enumerate(branch.units)]  # type: ignore
                        for number, branch in enumerate(branches)
                    ],
                )

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
        for member in self.members:
            member._precision = precision
        return self

    def replicate(self, experts: int) -> "ExpertBinaryNetwork":
        """Grow one trained expert per layer to `experts` equal ones (optimization policy, step 2)."""
        if self.config.conv != "expert":
            raise ConfigError(f"only conv='expert' can be replicated, this network has conv={self.config.conv!r}")
        for layer in self.binary_layers().values():
            assert isinstance(layer, ExpertBinaryConv2d)
            layer.replicate(experts)
        for member in self.members:
            member.config = member.config.with_experts(experts)
        return self

    def save_pretrained(self, directory: str | Path) -> Path:
        """Write `config.json` and `model.safetensors`; `ebnet.load_pretrained` reads them back."""
        from ebnet.models.pretrained import save_pretrained

        return save_pretrained(self, directory)

    def _together(
        self, images: Tensor, features: Level | None, bags: Sequence[Tensor] | None
    ) -> tuple[Tensor, list[Tensor]]:
        seen = [images] * len(self.members) if bags is None else [images[bag] for bag in bags]
        results = [member._alone(own, features) for member, own in zip(self.members, seen, strict=True)]
        every, maps = zip(*results, strict=True)
        if bags is not None:
            return torch.cat(every), [torch.cat(place) for place in zip(*maps, strict=True)]
        # The maps of one image are those of all members; attention does not ask how many channels there are.
        return torch.stack(every).mean(0), [torch.cat(place, 1) for place in zip(*maps, strict=True)]

    def _block(self, block: BlockLayout | CellLayout, first: bool) -> AnyBlock:
        if isinstance(block, CellLayout):
            return Cell(block, self.config, self._precision)
        if len(block.branches) == 1:
            return Block(block.branches[0], self.config, self._precision)
        return GroupBlock(block, self.config, self._precision, first)

    def _alone(self, images: Tensor, features: Level | None) -> tuple[Tensor, list[Tensor]]:
        x, maps = self._body(images, features)
        return self.classifier(self._pooled(x)), maps

    def _body(self, images: Tensor, level: Level | None) -> tuple[Tensor, list[Tensor]]:
        self._check(images)
        x: Tensor | Grouped | Pair = self.stem(images)
        maps = []
        for stage in self.stages:
            assert isinstance(stage, nn.Sequential)
            for block in stage:
                x = block(x)
                if level == "block":
                    maps.append(_map(x))
            if level == "stage":
                maps.append(_map(x))
        return _map(x), maps

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


def _map(x: Tensor | Grouped | Pair) -> Tensor:
    """The one map of what blocks hand on."""
    if isinstance(x, Grouped):
        return x.fused
    return x.newer if isinstance(x, Pair) else x
