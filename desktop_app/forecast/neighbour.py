"""Cause ``neighbour``: other processes take the card's memory that the run has still to get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import Surroundings
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.headroom import HeadroomCause


class NeighbourCause(HeadroomCause):
    """Follows ``Surroundings.others_bytes``; where only the card's whole use is known, what is not this process's."""

    cause = Cause.NEIGHBOUR
    action: ClassVar[str] = "close_neighbour"
    figure: ClassVar[str] = "others_bytes"

    def __init__(self) -> None:
        super().__init__()
        self._pid: int | None = None

    def take_surroundings(self, sample: Surroundings, view: View) -> None:
        """Take what others hold now."""
        self._pid = sample.largest_neighbour_pid
        if sample.others_bytes is not None:
            self.note(sample.t_s, float(sample.others_bytes), view)

    def details(self) -> Mapping[str, float]:
        """The largest neighbour's pid; a memory whose owner nobody lists is said so."""
        return {"pid": float(self._pid)} if self._pid is not None else {"owner_unknown": 1.0}
