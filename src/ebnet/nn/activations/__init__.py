"""How activations are quantized: one published idea a file, under the names that `network.activations` has for them."""

from collections.abc import Callable

from ebnet.errors import ConfigError
from ebnet.nn.activations.base import ActivationQuantizer as ActivationQuantizer
from ebnet.nn.activations.half_wave import HalfWave
from ebnet.nn.activations.interval_levels import IntervalLevels
from ebnet.nn.activations.learned_levels import LearnedLevels
from ebnet.nn.activations.multi_base import MultiBaseSign as MultiBaseSign
from ebnet.nn.activations.real import Real as Real
from ebnet.nn.activations.signs import ErrorDecaySign, LongTailedSign
from ebnet.nn.activations.signs import ShiftedSign as ShiftedSign
from ebnet.nn.activations.signs import Sign as Sign
from ebnet.nn.activations.unit_range import UnitRange
from ebnet.nn.sign import Ste

ACTIVATIONS: dict[str, Callable[[int], ActivationQuantizer]] = {
    "sign": lambda channels: Sign(Ste.CLIP),
    "sign-polynomial": lambda channels: Sign(Ste.POLYNOMIAL),
    "sign-ede": lambda channels: ErrorDecaySign(),
    "sign-long-tail": lambda channels: LongTailedSign(),
    "rsign": ShiftedSign,
    "abc-1": lambda channels: MultiBaseSign(1),
    "abc-5": lambda channels: MultiBaseSign(5),
    "hwgq": lambda channels: HalfWave(),
    "dorefa": lambda channels: UnitRange(),
    "lq": lambda channels: LearnedLevels(),
    "qil": lambda channels: IntervalLevels(),
    "real": lambda channels: Real(),
}
"""By name; each is made for some number of input channels."""


def activation_quantizer(name: str, channels: int) -> ActivationQuantizer:
    if name not in ACTIVATIONS:
        raise ConfigError(f"activations={name!r}: expected one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name](channels)
