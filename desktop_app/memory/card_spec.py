"""A card as the estimate and the simulated device see it. Needs nothing but the standard library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CardSpec:
    """A card as the estimate and the simulated device see it. All sizes in bytes.

    ``total_bytes`` is what torch calls the total capacity; ``capacity_bytes`` is that minus what the driver keeps.
    """

    name: str
    capacity_bytes: int
    total_bytes: int
    architecture: str | None = None
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.capacity_bytes <= self.total_bytes:
            raise ValueError(f"capacity {self.capacity_bytes} must be in (0, {self.total_bytes}]")
