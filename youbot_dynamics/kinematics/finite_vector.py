"""Check a short vector at the price of a few hundred nanoseconds, for functions that nodes call in their loops."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array


def finite_vector(thing: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return `value` (n,) as float64 numbers, n = `size`; an array that is right already is passed on as it is.

    Same verdict and message as `arrays.array`, which handles all that is no such array.

    Raises:
        InputError: it is not numeric, has another shape, or holds NaN or infinity.
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (size,):
        numbers: NDArray[np.float64] = value
        if all(map(isfinite, numbers.tolist())):
            return numbers
    return array(thing, value, (size,))
