"""Which real layers of a network an int8 file makes int8.

A weight of a byte instead of two saves a byte, and 2^18 multiply-accumulates in int8 a microsecond or so. But the signs
and gates of a small network are decided by little: rounding its first layers changed the class of 4 % to 10 % of the
images of two of the zoo's networks, on which this rule was chosen (docs/engine-measured.md). So a layer of which int8
would save neither stays real.
"""

LEAST_WEIGHTS = 2048
LEAST_MACS = 1 << 18


def worth_int8(weights: int, macs: int) -> bool:
    """Whether a layer of so many weights and, for one image, multiply-accumulates is int8."""
    return weights >= LEAST_WEIGHTS or macs >= LEAST_MACS
