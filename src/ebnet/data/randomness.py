"""Random numbers that are a function of what they are for, not of who asks first.

Every random choice of the data side is a hash of (seed, epoch, index, draw). No generator is carried along, so the same
picture gets the same augmentation whatever the number of worker processes, ranks or restarts. The hash is the finaliser
of SplitMix64 (Steele, Lea & Flood 2014), written with wrapping 64-bit integers: the numbers are the same on every
machine and with every version of numpy, which numpy's own generators do not promise.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ORDER = 0x6F72646572  # "order": keeps the shuffle apart from the augmentation of the same (seed, epoch, index)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _absorb(key: NDArray[np.uint64], word: ArrayLike) -> NDArray[np.uint64]:
    """Mix one more word into a key; unlike addition, swapping two words changes the outcome."""
    return _mix(key * np.uint64(0xD1342543DE82EF95) + np.atleast_1d(np.asarray(word, dtype=np.uint64)) + _GOLDEN)


def _key(*words: ArrayLike) -> NDArray[np.uint64]:
    key = np.zeros(1, np.uint64)
    for word in words:
        key = _absorb(key, word)
    return key


def uniforms(seed: int, epoch: int, indices: ArrayLike, draws: int) -> NDArray[np.float64]:
    """Numbers in [0, 1): one row of `draws` for each index."""
    keys = _key(seed, epoch, indices)[:, None]
    bits = _mix(keys + np.arange(1, draws + 1, dtype=np.uint64) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(seed: int, epoch: int, length: int, stream: int = 0) -> NDArray[np.int64]:
    """The order of `length` things in one epoch. Different `stream`s are independent orders of the same epoch."""
    keys = _key(_ORDER, stream, seed, epoch, np.arange(length, dtype=np.uint64))
    return np.argsort(keys, kind="stable").astype(np.int64)
