"""The methods of the paper's comparison as networks: what each paper published, and what it takes to build it here.

Rows are those of the paper's Table 4 and its appendix: ResNet-18 on ImageNet, 224 x 224. A row is a preset of
`create_model`. Where a paper leaves something open, `decided` says what was done.
"""

from dataclasses import dataclass, field
from typing import Any

RESNET18: dict[str, Any] = {"arch": "2222-1-1:1:1:1", "stem": "conv7x7", "shortcut": "none"}
"""ResNet-18 as binary networks have it: a real 7x7 stem, classifier and 1x1 shortcuts."""


@dataclass(frozen=True)
class Method:
    """A row. Accuracy in %, BOPs in 1e9, FLOPs in 1e8, size in MB; None where the paper's tables print none."""

    name: str
    title: str
    paper: str
    year: int
    bits: str
    """Weights / activations."""
    settings: dict[str, Any] = field(hash=False)
    training: dict[str, Any] = field(default_factory=dict, hash=False, kw_only=True)
    """Settings of a recipe beside the network's."""
    top1: float | None = None
    top5: float | None = None
    bops: float | None = None
    flops: float | None = None
    megabytes: float | None = None
    decided: str = ""
    """What the paper leaves open, or is otherwise here."""
    differs: str = ""
    """Why its published costs are not those we count."""

    @property
    def one_bit(self) -> bool:
        """Whether it is a sum of one-bit convolutions, which the engine runs."""
        return self.bits.startswith(("1/1", "(1/1)"))


def _resnet(weights: str, activations: str, unit: str, **more: Any) -> dict[str, Any]:
    return RESNET18 | {"weights": weights, "activations": activations, "unit": unit} | more


_NORM = "Batch norm right before the quantizer, as its levels assume; a skip around two convolutions."
_BINARY_SHORTCUTS = "1.3e8 FLOPs and 3.5 MB come out with binary shortcuts; ours are real: 0.19e8 and 0.69 MB more."
_SHORTCUT = "Shortcuts that shrink are an average pool and a real 1x1 convolution, as Bi-Real Net's."

METHODS = (
    Method(
        "bwn",
        "BWN",
        "Rastegari et al., XNOR-Net: ImageNet Classification Using Binary CNNs",
        2016,
        "1/32",
        _resnet("channel-mean", "real", "xnor"),
        60.8,
        83.0,
        decided=_SHORTCUT,
    ),
    Method(
        "dsq",
        "DSQ",
        "Gong et al., Differentiable Soft Quantization",
        2019,
        "1/32",
        _resnet("dsq", "real", "xnor"),
        63.7,
        decided="One bit: bounds -u and u, u and alpha learned; u starts at the mean size of the weights.",
    ),
    Method(
        "ttq",
        "TTQ",
        "Zhu et al., Trained Ternary Quantization",
        2017,
        "2/32",
        _resnet("ttq", "real", "xnor"),
        66.6,
        87.2,
        decided="The two values start at the means of the weights they stand for.",
    ),
    Method(
        "qil",
        "QIL",
        "Jung et al., Learning to Quantize Deep Networks by Optimizing Quantization Intervals",
        2019,
        "2/2",
        _resnet("qil", "qil", "xnor"),
        65.7,
        decided="Intervals start where they prune and clip nothing, [0, 2] for activations. " + _NORM,
    ),
    Method(
        "hwgq",
        "HWGQ",
        "Cai et al., Deep Learning with Low Precision by Half-wave Gaussian Quantization",
        2017,
        "1/2",
        _resnet("channel-mean", "hwgq", "xnor"),
        59.6,
        82.2,
        decided=_NORM,
    ),
    Method(
        "lq-net",
        "LQ-Net",
        "Zhang et al., LQ-Nets: Learned Quantization",
        2018,
        "1/2",
        _resnet("lq", "lq", "xnor"),
        59.6,
        82.2,
        decided="At one bit the fit of the weights is their mean size, of this step alone. " + _NORM,
        differs="The comparison prints HWGQ's accuracy in this row too.",
    ),
    Method(
        "syq",
        "SYQ",
        "Faraone et al., SYQ: Learning Symmetric Quantization",
        2018,
        "1/2",
        _resnet("syq", "dorefa", "xnor"),
        55.4,
        78.6,
        decided="A scale for each place of the kernel; activations between 0 and 1 as DoReFa-Net's. " + _NORM,
    ),
    Method(
        "dorefa",
        "DoReFa-Net",
        "Zhou et al., DoReFa-Net: Training Low Bitwidth CNNs with Low Bitwidth Gradients",
        2016,
        "1/2",
        _resnet("layer-mean", "dorefa", "xnor"),
        62.6,
        84.4,
        decided="Gradients stay real. " + _NORM,
    ),
    Method(
        "abc-net-1",
        "ABC-Net (M, N = 1)",
        "Lin et al., Towards Accurate Binary Convolutional Neural Network",
        2017,
        "1/1",
        _resnet("abc-1", "abc-1", "xnor"),
        42.2,
        67.6,
        decided="One base is the sign of centred weights. " + _NORM,
    ),
    Method(
        "abc-net-5",
        "ABC-Net (M, N = 5)",
        "Lin et al., Towards Accurate Binary Convolutional Neural Network",
        2017,
        "(1/1)x25",
        _resnet("abc-5", "abc-5", "xnor"),
        65.0,
        85.9,
        42.5,
        1.3,
        37.1,
        decided="Shifts of activations start evenly from -0.5 to 1.5, their scales at 1/5. " + _NORM,
        differs="42.5 is 25 times 1.7, rounded before; 37.1 MB counts the weights 25 times, where 5 bases are stored.",
    ),
    Method(
        "group-net",
        "Group-Net (Struct. Approx.)",
        "Zhuang et al., Structured Binary Neural Networks for Accurate Image Classification",
        2019,
        "(1/1)x4",
        _resnet("layer-mean", "sign-polynomial", "bi-real", branches=4),
        66.3,
        86.6,
        megabytes=7.7,
        decided="Four branches a block, with soft connections between blocks. Bi-Real Net's unit: without the ReLU "
        "between convolution and batch norm, padded with zeros, not ones. Each branch has its own shortcuts.",
        differs="7.7 MB is 0.1 less than ours with one binary shortcut for all branches; ours are real, and four.",
    ),
    Method(
        "cbcn",
        "CBCN",
        "Liu et al., Circulant Binary Convolutional Networks",
        2019,
        "(1/1)x4",
        _resnet("layer-mean", "sign-polynomial", "bi-real-prelu", orientations=4)
        | {"arch": "2222-4-1:1:1:1", "stem_width": 256},
        61.4,
        82.8,
        decided="ResNet-18 of its authors' code: 64 to 512 learned filters a stage, each in 4 orientations, so 256 to "
        "2048 channels. Weights get the identity's gradient, not the polynomial's. Without its centre loss.",
        differs="The file holds every turned filter; a quarter of these bits is learned.",
    ),
    Method(
        "benn",
        "Ensemble (BENN)",
        "Zhu et al., Binary Ensemble Neural Network: More Bits per Network or More Networks per Bit?",
        2019,
        "(1/1)x6",
        _resnet("channel-mean", "sign", "xnor", members=6),
        61.0,
        None,
        10.6,
        7.8,
        21.0,
        decided="Six XNOR-Nets on bootstrap samples, trained side by side from fresh weights; logits are averaged. By "
        "the authors' notes the published accuracy is of boosting, which `ebnet.train.boosting` does.",
        differs="7.8e8 FLOPs and 21 MB are six times XNOR-Net's published 1.3e8 and 3.5 MB, with binary shortcuts; "
        "10.6e9 BOPs are not six times its 1.7e9.",
    ),
    Method(
        "bnn",
        "BNN",
        "Courbariaux et al., Binarized Neural Networks",
        2016,
        "1/1",
        _resnet("sign", "sign", "xnor"),
        42.2,
        69.2,
        1.7,
        1.3,
        3.5,
        decided="ResNet-18 is not in its paper: XNOR-Net's order of layers, without any scale.",
        differs=_BINARY_SHORTCUTS,
    ),
    Method(
        "xnor-net",
        "XNOR-Net",
        "Rastegari et al., XNOR-Net: ImageNet Classification Using Binary CNNs",
        2016,
        "1/1",
        _resnet("channel-mean", "sign", "xnor"),
        51.2,
        73.2,
        1.7,
        1.3,
        3.5,
        decided="Without K, the map of scales of the activations, which later work found to add nothing.",
        differs=_BINARY_SHORTCUTS,
    ),
    Method(
        "ccnn",
        "CCNN",
        "Xu & Cheung, Accurate and Compact CNNs with Trained Binarization",
        2019,
        "1/1",
        _resnet("learned-scale", "sign-long-tail", "xnor"),
        54.2,
        77.9,
        1.7,
        1.3,
        decided="Trained scales are the layer's, per output channel; the estimator is its long-tailed one.",
        differs=_BINARY_SHORTCUTS,
    ),
    Method(
        "bi-real",
        "Bi-Real Net",
        "Liu et al., Bi-Real Net: Enhancing the Performance of 1-bit CNNs",
        2018,
        "1/1",
        _resnet("magnitude", "sign-polynomial", "bi-real"),
        56.4,
        79.5,
        1.7,
        1.5,
    ),
    Method(
        "rethinking-bnn",
        "Rethinking BNN",
        "Helwegen et al., Latent Weights Do Not Exist: Rethinking BNN Optimization",
        2019,
        "1/1",
        _resnet("sign", "sign-polynomial", "bi-real"),
        56.6,
        79.4,
        1.7,
        1.3,
        training={"optimizer": "bop"},
        decided="Bi-Real Net's structure; Stage II is Bop's, from the signs of Stage I, gamma falling with the rate.",
        differs=_BINARY_SHORTCUTS,
    ),
    Method(
        "xnor-net-pp",
        "XNOR-Net++",
        "Bulat & Tzimiropoulos, XNOR-Net++: Improved Binary Neural Networks",
        2019,
        "1/1",
        _resnet("learned-scale", "sign", "xnor"),
        57.1,
        79.9,
        1.7,
        1.4,
        decided="Scales per output channel; its best form also has one per row and column of a map of fixed size.",
        differs="1.4e8 FLOPs lies between binary and real shortcuts.",
    ),
    Method(
        "ir-net",
        "IR-Net",
        "Qin et al., Forward and Backward Information Retention for Accurate BNNs",
        2020,
        "1/1",
        _resnet("libra", "sign-ede", "bi-real"),
        58.1,
        80.0,
        1.7,
        1.3,
        decided="On Bi-Real Net's structure, as its ImageNet rows; without its Hardtanh.",
        differs=_BINARY_SHORTCUTS,
    ),
    Method(
        "reactnet-18",
        "ReActNet (ResNet-18)",
        "Liu et al., ReActNet: Towards Precise BNN with Generalized Activation Functions",
        2020,
        "1/1",
        _resnet("magnitude", "rsign", "react"),
        decided="Not a row of the comparison. Its units on ResNet-18; without its distributional loss.",
    ),
    Method(
        "real-to-bin",
        "Real-to-Bin",
        "Martinez et al., Training Binary Neural Networks with Real-to-Binary Convolutions",
        2020,
        "1/1",
        RESNET18 | {"scaling": True},
        65.4,
        86.2,
        1.7,
        1.5,
        4.0,
        decided="Published with its progressive teachers; `imagenet-distilled` is a recipe with them.",
        differs="4.0 MB lies between ours with fp32 and with fp16 reals.",
    ),
    Method(
        "ebnet-1262",
        "Expert binary network",
        "Bulat et al., High-Capacity Expert Binary Networks",
        2021,
        "1/1",
        {"arch": "1262-2-4:8:8:16", "experts": 4},
        67.5,
        87.5,
        1.7,
        1.1,
        7.8,
        decided="70.0 with a teacher, 71.2 with the improved training scheme.",
        differs="7.8 MB is with fp16 reals.",
    ),
)
"""In the order of the paper's tables."""
