"""The rows of the paper's comparison that are networks of cells (`ebnet.models.genotype`)."""

from typing import Any

from ebnet.models.method import Method

_PAPER = "Kim et al., Learning Architectures for Binary Networks"
_AS_THEIRS = (
    "Cells, channels and order of layers are those of the authors' code. The stem's first map is read after its ReLU, "
    "and a max pool that several nodes ask for is computed once."
)


def _bnas(cells: int, channels: int) -> dict[str, Any]:
    """Cells behind DARTS's stem; XNOR-Net's weights, and ReLU after each convolution."""
    structure = {"arch": f"bnas-{cells}x{channels}", "stem": "conv3x3", "stem_width": channels}
    return structure | {"weights": "channel-mean", "activations": "sign", "unit": "xnor-relu"}


CELLS = (
    Method(
        "bnas-f",
        "BNAS-F",
        _PAPER,
        2020,
        "1/1",
        _bnas(15, 68),
        58.9,
        80.9,
        1.7,
        1.5,
        decided=_AS_THEIRS,
        differs="1.7e9 BOPs are ResNet-18's. 1.7e9 / 64 + 1.5e8 is 1.77e8; our BOPs / 64, stem and classifier are "
        "1.76e8. So 1.5e8 leaves out the real skips of reduction cells, 2.3e8 MACs, and the elementwise work.",
    ),
    Method(
        "bnas-g",
        "BNAS-G",
        _PAPER,
        2020,
        "1/1",
        _bnas(11, 74),
        62.2,
        83.9,
        3.6,
        1.5,
        decided="As BNAS-F with 11 cells of 74 channels. Its authors publish 59.8 and 81.6; 83.9 is their BNAS-H's.",
        differs="Ours without the real skips, 2.7e8 MACs, and without elementwise work are 1.3e8 FLOPs.",
    ),
    Method(
        "bnas-h",
        "BNAS-H",
        _PAPER,
        2020,
        "1/1",
        _bnas(16, 128),
        decided="Not a row of the comparison. As BNAS-F with 16 cells of 128 channels; its authors publish 63.5, 83.9.",
    ),
)
