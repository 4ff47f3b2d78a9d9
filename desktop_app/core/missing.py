"""The two ways in which a value can be missing from a row.

*Not there*: it was asked for and could not be had. Stored as NaN, drawn as a gap.
*Not measured*: nobody asked in this row (a slow field on a fast tick, the loss between log steps). Stored as one
particular NaN, ``ABSENT``, so that readers of rows see NaN as ever; a curve leaves it out and its line goes on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A quiet NaN whose payload no arithmetic makes. It only ever travels by copy, which keeps every bit.
_ABSENT_BITS: Final = 0x7FF8_0000_00AB_5E17
ABSENT: Final = float(np.array(_ABSENT_BITS, np.uint64).view(np.float64))
# In what is drawn every value is finite or a gap (NaN), so +inf is free to say "not measured".
NOT_MEASURED: Final = np.inf
_LARGEST: Final = float(np.finfo(np.float32).max)


def is_absent(values: Floats) -> NDArray[np.bool_]:
    """Which of the stored ``values`` were not measured in their row."""
    return np.equal(values.view(np.uint64), _ABSENT_BITS)


def drawable(values: Floats) -> Floats:
    """A copy of stored ``values`` as they are drawn: NaN for a gap (infinities too), ``NOT_MEASURED`` for absent.

    Finite values beyond float32, which no panel could show, are drawn at its limit.
    """
    drawn = values.clip(-_LARGEST, _LARGEST)
    finite = np.isfinite(values)
    if not finite.all():
        drawn[~finite] = np.nan
        drawn[is_absent(values)] = NOT_MEASURED
    return drawn
