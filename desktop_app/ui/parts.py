"""The parts of the memory page, for those who send somebody there."""

from __future__ import annotations

from enum import IntEnum


class Part(IntEnum):
    """What one can go to, in the order of the small window's tabs."""

    STEP = 0
    MODULES = 1
    BLOCKS = 2
    PEAK = 3
