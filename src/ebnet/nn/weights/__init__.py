"""How weights are quantized: one published idea a file, under the names that `network.weights` has for them."""

from collections.abc import Callable

from ebnet.errors import ConfigError
from ebnet.nn.weights.base import WeightQuantizer as WeightQuantizer
from ebnet.nn.weights.channel_mean import ChannelMean
from ebnet.nn.weights.fitted import Fitted
from ebnet.nn.weights.interval_ternary import IntervalTernary
from ebnet.nn.weights.layer_mean import LayerMean
from ebnet.nn.weights.learned_scale import LearnedScale as LearnedScale
from ebnet.nn.weights.libra import Libra
from ebnet.nn.weights.magnitude import Magnitude
from ebnet.nn.weights.multi_base import MultiBase
from ebnet.nn.weights.pixel_scale import PixelScale
from ebnet.nn.weights.plain_sign import PlainSign as PlainSign
from ebnet.nn.weights.soft_sign import SoftSign
from ebnet.nn.weights.ternary import TrainedTernary

WEIGHTS: dict[str, Callable[[tuple[int, int]], WeightQuantizer]] = {
    "learned-scale": lambda kernel: LearnedScale(),
    "sign": lambda kernel: PlainSign(),
    "channel-mean": lambda kernel: ChannelMean(),
    "layer-mean": lambda kernel: LayerMean(),
    "lq": lambda kernel: Fitted(),
    "magnitude": lambda kernel: Magnitude(),
    "libra": lambda kernel: Libra(),
    "abc-1": lambda kernel: MultiBase(1),
    "abc-5": lambda kernel: MultiBase(5),
    "dsq": lambda kernel: SoftSign(),
    "syq": PixelScale,
    "ttq": lambda kernel: TrainedTernary(),
    "qil": lambda kernel: IntervalTernary(),
}
"""By name; each is made for a kernel of some height and width."""


def weight_quantizer(name: str, kernel: tuple[int, int]) -> WeightQuantizer:
    if name not in WEIGHTS:
        raise ConfigError(f"weights={name!r}: expected one of {', '.join(WEIGHTS)}")
    return WEIGHTS[name](kernel)
