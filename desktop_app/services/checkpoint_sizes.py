"""Checkpoints that become larger: something is saved that should not be, or is saved twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from desktop_app.core.units import format_bytes

# The same model and optimizer give the same size to a few KiB. A third more is no new layer: resuming has added a copy
# of something (reported: + 80 % with each interruption, and + 10 % of memory).
NOTABLE_GROWTH: Final = 1.3


@dataclass(frozen=True, slots=True)
class Growth:
    """Sizes of a checkpoint and of the one before it, in bytes."""

    before_bytes: int
    after_bytes: int

    @property
    def line(self) -> str:
        """For people."""
        share = self.after_bytes / self.before_bytes - 1.0
        return (
            f"The checkpoint has grown by {share:.0%}, from {format_bytes(self.before_bytes)} to "
            f"{format_bytes(self.after_bytes)}: it holds something twice, and the run may need more memory with each "
            "resume."
        )


def growth(before: Path, after: Path) -> Growth | None:
    """What has grown between two checkpoints of one run; ``None`` when nothing notable has, or a file is not there."""
    sizes = size_of(before), size_of(after)
    return grown(*sizes)


def grown(before_bytes: int | None, after_bytes: int | None) -> Growth | None:
    """As ``growth``, of sizes."""
    if not before_bytes or after_bytes is None or after_bytes < NOTABLE_GROWTH * before_bytes:
        return None
    return Growth(before_bytes, after_bytes)


def size_of(path: Path) -> int | None:
    """Bytes of a file; ``None`` when it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return None
