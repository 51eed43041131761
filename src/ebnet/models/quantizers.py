"""What counting and packing know of quantizers and units, without torch."""

from dataclasses import dataclass
from typing import Literal

WEIGHT_BITS = {
    "learned-scale": 1,
    "sign": 1,
    "channel-mean": 1,
    "layer-mean": 1,
    "lq": 1,
    "magnitude": 1,
    "libra": 1,
    "abc-1": 1,
    "abc-5": 5,
    "dsq": 1,
    "syq": 1,
    "ttq": 2,
    "qil": 2,
}
"""Bits of a weight, by `network.weights`."""

ACTIVATION_BITS = {
    "sign": 1,
    "sign-polynomial": 1,
    "sign-ede": 1,
    "sign-long-tail": 1,
    "rsign": 1,
    "abc-1": 1,
    "abc-5": 5,
    "hwgq": 2,
    "dorefa": 2,
    "lq": 2,
    "qil": 2,
    "real": 32,
}
"""Bits of an activation, by `network.activations`."""

REAL_BITS = 32


@dataclass(frozen=True)
class UnitKind:
    """The order of the layers around a binary convolution.

    Attributes:
        norm_first: batch norm before the quantizer, else after the convolution.
        activation: what follows; ``rprelu`` is PReLU with learned shifts before and after it.
        activation_last: after the skip is added, else before.
        skip: around each convolution (``unit``), or around all of a block (``block``).
    """

    norm_first: bool
    activation: Literal["none", "relu", "prelu", "rprelu"]
    activation_last: bool
    skip: Literal["unit", "block"]

    @property
    def slopes(self) -> int:
        """Learned numbers of the activation, per channel."""
        return {"none": 0, "relu": 0, "prelu": 1, "rprelu": 3}[self.activation]

    @property
    def operations(self) -> int:
        """Of the activation, per element."""
        return 1 if self.activation == "relu" else self.slopes


UNITS = {
    "real-to-binary": UnitKind(norm_first=True, activation="prelu", activation_last=False, skip="unit"),
    "xnor": UnitKind(norm_first=True, activation="none", activation_last=False, skip="block"),
    "xnor-relu": UnitKind(norm_first=True, activation="relu", activation_last=False, skip="unit"),
    "bi-real": UnitKind(norm_first=False, activation="none", activation_last=False, skip="unit"),
    "bi-real-prelu": UnitKind(norm_first=False, activation="prelu", activation_last=True, skip="unit"),
    "react": UnitKind(norm_first=False, activation="rprelu", activation_last=True, skip="unit"),
}
"""By `network.unit`.

real-to-binary: BN, sign, conv, scale, PReLU, skip (Martinez et al., 2020), what the paper builds on.
xnor: BN, sign, conv, without an activation between, a skip around two of them (XNOR-Net, Rastegari et al., 2016).
xnor-relu: BN, sign, conv, ReLU, skip (BNAS, Kim et al., 2020, in whose cells the skip adds up a node).
bi-real: sign, conv, BN, skip around each (Bi-Real Net, Liu et al., 2018, fig. 3).
bi-real-prelu: the same, then PReLU (CBCN, Liu et al., 2019, as its authors' code has it).
react: sign, conv, BN, skip, then RPReLU (ReActNet, Liu et al., 2020, fig. 5).
"""
