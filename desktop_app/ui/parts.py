"""The parts of the pages of the middle, for those who send somebody there."""

from __future__ import annotations

from enum import IntEnum


class Part(IntEnum):
    """Of the memory page, in the order of the small window's tabs."""

    STEP = 0
    MODULES = 1
    BLOCKS = 2
    PEAK = 3


class GpuPart(IntEnum):
    """Of the GPU page, in the order of its tabs."""

    FIELDS = 0
    CARDS = 1
    COMPARE = 2
