"""What the tank shows, worked out from the parts of the workspace. No Qt, no text: numbers and reasons only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from desktop_app.core.forecasts import Estimate, Forecast
from desktop_app.core.steps import Category, MemoryStats, RunState
from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.ui.answers import is_searching


class Segment(StrEnum):
    """The layers of the water, from the bottom up."""

    OTHERS = "others"
    CONTEXT = "context"
    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    WORKSPACE = "workspace"
    IDLE = "idle"


class TankSource(StrEnum):
    """Where the levels come from."""

    NO_CARD = "no_card"
    EMPTY = "empty"  # a card, and nothing known of a run
    ESTIMATE = "estimate"  # traced before the first step
    RUN = "run"  # measured


# Which categories of live bytes make up a layer. Batches wait among the activations; what lives for an operation only
# and what nobody owns are workspace.
_LAYERS: Final = {
    Segment.PARAMETERS: (Category.PARAMETERS,),
    Segment.GRADIENTS: (Category.GRADIENTS,),
    Segment.OPTIMIZER: (Category.OPTIMIZER_STATE,),
    Segment.ACTIVATIONS: (Category.ACTIVATIONS, Category.INPUTS),
    Segment.WORKSPACE: (Category.WORKSPACE, Category.TEMPORARIES, Category.OTHER),
}


@dataclass(frozen=True, slots=True)
class Level:
    """One layer: its size, or ``None`` with the reason why it is not known."""

    segment: Segment
    size_bytes: int | None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What was said before the first step, for the card under the tank. All bytes; ``p95`` ends the range."""

    state: EstimateState
    p50_bytes: int | None = None
    p95_bytes: int | None = None
    others_bytes: int = 0  # what other processes held then
    largest_batch: int | None = None
    searching: bool = False  # the largest batch is not known yet
    batch_size: int | None = None
    error_code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TankState:
    """Everything the tank draws. All bytes; ``None`` is unknown. ``levels`` from the bottom up, unknown ones too."""

    source: TankSource
    said: Said
    card_name: str = ""
    simulated: bool = False
    shared_memory: bool = False
    capacity_bytes: int | None = None
    capacity_reason: Reason | None = None
    levels: tuple[Level, ...] = ()
    free_bytes: int | None = None
    free_reason: Reason | None = None
    flood_low_bytes: int | None = None
    flood_high_bytes: int | None = None
    measured_bytes: int | None = None
    no_card_reason: Reason | None = None
    ended: bool = False  # the levels are those of the last step of a run that is over

    @property
    def filled_bytes(self) -> int:
        return sum(level.size_bytes or 0 for level in self.levels)

    @property
    def overflows(self) -> bool:
        """The flood mark is over the brim."""
        if self.capacity_bytes is None or self.flood_high_bytes is None:
            return False
        return self.flood_high_bytes > self.capacity_bytes

    @property
    def error_share(self) -> float | None:
        """Measured over said, minus one; ``None`` before both are known."""
        if self.measured_bytes is None or not self.said.p50_bytes:
            return None
        return self.measured_bytes / self.said.p50_bytes - 1.0


def tank_state(
    *,
    card: Card | None,
    readings: Mapping[str, Reading],
    run: RunState,
    memory: MemoryStats | None,
    estimate: EstimateStatus,
    said: EstimateStatus,
    forecast: Forecast | None,
    measured_bytes: int | None = None,
    no_card_reason: Reason | None = None,
) -> TankState:
    """The tank of one card.

    ``memory`` is given only while its numbers stand for what the tank shows (``TankReader`` decides); then the levels
    are measured, else they are those of ``estimate``. ``said`` is what was estimated for the run on show.
    """
    if card is None:
        return TankState(TankSource.NO_CARD, _said(said), no_card_reason=no_card_reason)
    used = readings.get("memory_used_bytes", Reading(None, Reason.NOT_READ_YET))
    levels, source = _levels(used, memory, estimate.estimate, run)
    free, free_reason = _free(card, used)
    flood = _flood(source, forecast if run.active else None, estimate.estimate)
    return TankState(
        source=source,
        said=_said(said),
        card_name=card.name,
        simulated=card.simulated,
        shared_memory=card.shared_memory,
        capacity_bytes=card.capacity_bytes,
        capacity_reason=card.reasons.get("total_bytes", Reason.NOT_READ_YET) if card.total_bytes is None else None,
        levels=levels,
        free_bytes=free,
        free_reason=free_reason,
        flood_low_bytes=flood[0],
        flood_high_bytes=flood[1],
        measured_bytes=measured_bytes,
        ended=source is TankSource.RUN and not run.active,
    )


def _levels(
    used: Reading, memory: MemoryStats | None, estimate: Estimate | None, run: RunState
) -> tuple[tuple[Level, ...], TankSource]:
    if memory is not None:
        return _measured_levels(used, memory), TankSource.RUN
    if estimate is not None:
        # A run that has begun is already part of what the card says is used.
        known = Reading(None) if run.active else used
        return _estimated_levels(known, estimate), TankSource.ESTIMATE
    return (_level_of(Segment.OTHERS, used),), TankSource.EMPTY


def _measured_levels(used: Reading, memory: MemoryStats) -> tuple[Level, ...]:
    own = memory.reserved_bytes + memory.outside_bytes
    others = Level(Segment.OTHERS, None, used.reason)
    if used.value is not None:
        # The card is sampled five times a second, the allocator at each step: between the two, never below zero.
        others = Level(Segment.OTHERS, max(0, int(used.value) - own))
    idle = max(0, memory.reserved_peak_bytes - memory.live_peak_bytes)
    layers = _live_levels(memory.peak_categories)
    return (others, Level(Segment.CONTEXT, memory.outside_bytes), *layers, Level(Segment.IDLE, idle))


def _estimated_levels(used: Reading, estimate: Estimate) -> tuple[Level, ...]:
    others = _level_of(Segment.OTHERS, used) if used.value is not None else Level(Segment.OTHERS, estimate.others_bytes)
    layers = _live_levels(estimate.categories)
    return (
        others,
        Level(Segment.CONTEXT, estimate.context_bytes),
        *layers,
        Level(Segment.IDLE, max(0, estimate.idle_bytes)),
    )


def _live_levels(categories: Mapping[Category, int]) -> tuple[Level, ...]:
    return tuple(Level(layer, sum(categories.get(name, 0) for name in names)) for layer, names in _LAYERS.items())


def _level_of(segment: Segment, reading: Reading) -> Level:
    return Level(segment, None if reading.value is None else int(reading.value), reading.reason)


def _free(card: Card, used: Reading) -> tuple[int | None, Reason | None]:
    if card.capacity_bytes is None:
        return None, card.reasons.get("total_bytes", Reason.NOT_READ_YET)
    if used.value is None:
        return None, used.reason
    return max(0, card.capacity_bytes - int(used.value)), None


def _flood(source: TankSource, forecast: Forecast | None, estimate: Estimate | None) -> tuple[int | None, int | None]:
    """P50 and P95 of the peak to come: the forecast's while it runs, else the estimate's."""
    if forecast is not None and forecast.flood_low_bytes is not None:
        return forecast.flood_low_bytes, forecast.flood_high_bytes or forecast.flood_low_bytes
    if source is TankSource.ESTIMATE and estimate is not None:
        return estimate.device_peak_bytes.p50, estimate.device_peak_bytes.p95
    return None, None


def _said(status: EstimateStatus) -> Said:
    answer = status.estimate
    if answer is None:
        return Said(status.state, error_code=status.error_code, error=status.error)
    return Said(
        state=status.state,
        p50_bytes=answer.device_peak_bytes.p50,
        p95_bytes=answer.device_peak_bytes.p95,
        others_bytes=answer.others_bytes,
        largest_batch=answer.largest_batch,
        searching=is_searching(answer),
        batch_size=answer.batch_size,
        error_code=status.error_code,
        error=status.error,
    )
