"""A learned scale (XNOR-Net++, Bulat & Tzimiropoulos, 2019), the way of the expert binary networks."""

from ebnet.nn.weights.plain_sign import PlainSign


class LearnedScale(PlainSign):
    """sign(w), with the layer's scale per output channel learned by gradient instead of computed from w.

    XNOR-Net++ (eq. 4) fuses the scales of weights and activations into one learned Gamma. Of its forms this is the
    first, one factor per output channel: the others also depend on the place in a map of one fixed size.
    """

    learns_scale = True
