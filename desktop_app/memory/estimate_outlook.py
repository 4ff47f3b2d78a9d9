"""The distribution of a training's peaks: what its trace needs, joined with what nobody knows. Torch-free.

Unknown are the bytes outside the allocator (equally likely ``contexts``), the workspaces that cuDNN picks (a few
scenarios), and how far the replay itself is off (a normal factor, ``spread``). The allocator is replayed once per
scenario; where the room is scarce, again with that room, because a full allocator gives its cache back and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final, Protocol

import numpy as np

from desktop_app.core.estimates import Int64Array, PhasePeaks, Quantiles
from desktop_app.core.forecasts import Verdict
from desktop_app.core.steps import Phase
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.estimate_replay import Curves, phase_maxima, replay_table
from desktop_app.memory.estimate_table import EventTable

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]

_SPREAD_POINTS: Final = 15  # of the normal factor, equally likely; odd, so that the middle one is 1
_RESOLUTION: Final = 0.002  # of P(fits): replays with a limit stop there
_SURE: Final = 1e-9  # sums of probabilities are this exact
_ROUNDING: Final = 0.01  # bytes: a quantile that is the room must fit in it
_FITS: Final = 0.95
_ASKED: Final = (0.5, 0.9, _FITS, 0.99)  # certainties that are asked for: P(fits) is told on the right side of them


class Workspaces(Protocol):
    """One way in which cuDNN may choose its algorithms, and how likely it is."""

    @property
    def probability(self) -> float: ...

    def bytes_for(self, call: ConvolutionCall) -> int:
        """The workspace of one call; 0: none."""


@dataclass(frozen=True, slots=True)
class Unknowns:
    """What a trace does not tell. ``contexts`` in bytes, ascending and equally likely, the median in the middle.

    ``spread`` is the relative standard deviation of a replay against a real card, the rung's width included.
    """

    contexts: tuple[int, ...]
    workspaces: Sequence[Workspaces]
    spread: float = 0.0

    @property
    def context_bytes(self) -> int:
        """The median."""
        return self.contexts[len(self.contexts) // 2]

    def factors(self) -> tuple[float, ...]:
        """Equally likely ratios of a real peak to the replayed one."""
        if not self.spread:
            return (1.0,)
        normal = NormalDist(1.0, self.spread)
        points = [normal.inv_cdf((index + 0.5) / _SPREAD_POINTS) for index in range(_SPREAD_POINTS)]
        points[_SPREAD_POINTS // 2] = 1.0
        return tuple(max(point, 0.05) for point in points)


def workspace_sizes(table: EventTable, workspaces: Workspaces) -> Int64Array:
    """The table's sizes with this scenario's workspaces. Calls that the trace did not write down keep their guess."""
    rows = np.flatnonzero(table.calls >= 0)
    if not rows.size:
        return table.sizes_bytes
    known = {call: workspaces.bytes_for(call) for call in set(table.convolutions)}
    by_call = np.array([known[call] for call in table.convolutions], dtype=np.int64)
    sizes = table.sizes_bytes.copy()
    sizes[rows] = by_call[table.calls[rows]]
    return sizes


@dataclass(slots=True, eq=False)
class _Scenario:
    """One choice of workspaces. Of the ascending limits those before ``short`` are known not to do, those from
    ``enough`` on to do."""

    probability: float
    sizes_bytes: Int64Array
    short: int
    enough: int

    @property
    def open_share(self) -> float:
        return self.probability * (self.enough - self.short)


class Outlook:
    """The distribution of one table's peaks in one room: the card's capacity less what other processes hold."""

    def __init__(
        self,
        table: EventTable,
        unknowns: Unknowns,
        *,
        room_bytes: int,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.table: Final = table
        self.room_bytes: Final = room_bytes
        self.unknowns: Final = unknowns
        self._settings: Final = settings
        self._factors: Final = np.array(unknowns.factors())
        self._limits: Final = self._room_left()
        self._scenarios: Final = self._distinct()

    @cached_property
    def middle(self) -> Curves:
        """With the median of everything: what a simulated card shows. Within the room, where that is enough."""
        curves = self._curves[self._middle]
        limit_bytes = self.room_bytes - self.unknowns.context_bytes
        if curves.reserved_peak_bytes <= limit_bytes:
            return curves
        within = self._replay(self._scenarios[self._middle], limit_bytes)
        return curves if within.out_of_memory else within

    @property
    def middle_sizes(self) -> Int64Array:
        return self._scenarios[self._middle].sizes_bytes

    @cached_property
    def gives_back(self) -> bool:
        """Whether the median training runs only because its allocator gives cached memory back: it will be slower."""
        return self.middle is not self._curves[self._middle]

    def fits(self, *, risk: float) -> bool:
        """Whether the training runs with at least this certainty; replays no more than the answer takes.

        Mostly all scenarios agree on the limit that is exceeded with that certainty: it is tried first.
        """
        wanted = 1.0 - risk - _SURE
        deciding = min(int(risk * len(self._limits)), len(self._limits) - 1)
        for scenario in self._scenarios:
            if scenario.short <= deciding < scenario.enough:
                self._try(scenario, deciding)
        while True:
            low, high = self._bounds()
            if low >= wanted:
                return True
            if high < wanted or not self._refine():
                return False

    @cached_property
    def fits_probability(self) -> float:
        """That the training runs: it fits, or goes on after giving its cache back. Never above the truth.

        At least 0.95 where, and only where, ``fits(risk=0.05)``.
        """
        for scenario, curves in zip(self._scenarios, self._curves, strict=True):
            roomy = int(np.searchsorted(self._limits, curves.reserved_peak_bytes))
            scenario.enough = max(scenario.short, min(scenario.enough, roomy))
        self.fits(risk=1.0 - _FITS)  # first, as the search does: more room may hurt, so what is replayed first counts
        while True:
            low, high = self._bounds()
            if high - low <= _RESOLUTION or not self._refine():
                break
        for asked in _ASKED:
            low, high = self._bounds()
            if low < asked <= high + _SURE and self.fits(risk=1.0 - asked):
                return max(asked, self._bounds()[0])
        return min(1.0, self._bounds()[0])

    def verdict(self) -> Verdict:
        """By the quantiles that fit."""
        if self.fits(risk=1.0 - _FITS):
            return Verdict.FITS
        tight = self.device().p50 <= self.room_bytes or self.fits(risk=0.5)
        return Verdict.TIGHT if tight else Verdict.DOES_NOT_FIT

    def live(self) -> Quantiles:
        """Of torch's allocated."""
        return self._around(self.middle.live_peak_bytes, [curves.live_peak_bytes for curves in self._curves])

    def reserved(self) -> Quantiles:
        """Of torch's reserved. No training reserves more than the room, unless it needs more."""
        context_bytes = self.unknowns.context_bytes
        peaks = [curves.reserved_peak_bytes for curves in self._curves]
        found = self._around(self.middle.reserved_peak_bytes, peaks)
        return self._within(found, self.room_bytes - context_bytes)

    def device(self) -> Quantiles:
        """Of all that this process holds on the card."""
        peaks = [curves.reserved_peak_bytes for curves in self._curves]
        found = self._around(self.middle.reserved_peak_bytes, peaks, contexts=True)
        return self._within(found, self.room_bytes)

    def phases(self) -> dict[Phase, PhasePeaks]:
        """For each phase of the trace what it needs itself, as if the cache were emptied before it."""
        apart = [
            replay_table(self.table, scenario.sizes_bytes, settings=self._settings, apart=True)
            for scenario in self._scenarios
        ]
        live = [phase_maxima(self.table, curves.live_bytes) for curves in self._curves]
        reserved = [phase_maxima(self.table, curves.reserved_bytes) for curves in apart]
        middle = self._middle
        most, most_reserved = self.device(), self.reserved()
        return {
            phase: PhasePeaks(
                live=self._around(live[middle][phase], [peaks[phase] for peaks in live]),
                reserved=_at_most(
                    self._around(reserved[middle][phase], [peaks[phase] for peaks in reserved]), most_reserved
                ),
                device=_at_most(
                    self._around(reserved[middle][phase], [peaks[phase] for peaks in reserved], contexts=True), most
                ),
            )
            for phase in live[middle]
        }

    def _distinct(self) -> list[_Scenario]:
        """The scenarios that differ for this training."""
        found: dict[bytes, _Scenario] = {}
        short = int(np.searchsorted(self._limits, self.table.least_live_bytes()))
        total = sum(workspaces.probability for workspaces in self.unknowns.workspaces)
        for workspaces in self.unknowns.workspaces:
            sizes = workspace_sizes(self.table, workspaces)
            scenario = found.setdefault(sizes.tobytes(), _Scenario(0.0, sizes, short, len(self._limits)))
            scenario.probability += workspaces.probability / total
        return list(found.values())

    @cached_property
    def _curves(self) -> list[Curves]:
        """Of each scenario without a limit."""
        return [replay_table(self.table, scenario.sizes_bytes, settings=self._settings) for scenario in self._scenarios]

    @cached_property
    def _middle(self) -> int:
        """The scenario in the middle, by what it reserves."""
        passed = 0.0
        ranked = sorted(range(len(self._scenarios)), key=lambda place: self._curves[place].reserved_peak_bytes)
        for place in ranked:
            passed += self._scenarios[place].probability
            if passed >= 0.5 - _SURE:
                return place
        return ranked[-1]

    def _room_left(self) -> Int64Array:
        """What the allocator may take, ascending, in every equally likely case; a factor shrinks it like the room."""
        contexts = np.array(self.unknowns.contexts, dtype=np.float64)
        room = np.maximum(self.room_bytes - contexts[:, None], 0.0) / self._factors[None, :]
        limits: Int64Array = np.sort(room.ravel() + _ROUNDING).astype(np.int64)
        return limits

    def _bounds(self) -> tuple[float, float]:
        """Of P(fits), from what has been replayed so far."""
        count = len(self._limits)
        low = sum(scenario.probability * (count - scenario.enough) for scenario in self._scenarios) / count
        high = sum(scenario.probability * (count - scenario.short) for scenario in self._scenarios) / count
        return low, high

    def _refine(self) -> bool:
        """Replay the widest open scenario with the middle of its open limits; ``False`` when none is open."""
        widest = max(self._scenarios, key=lambda scenario: scenario.open_share)
        if widest.short >= widest.enough:
            return False
        self._try(widest, (widest.short + widest.enough) // 2)
        return True

    def _try(self, scenario: _Scenario, place: int) -> None:
        if self._replay(scenario, int(self._limits[place])).out_of_memory:
            scenario.short = place + 1
        else:
            scenario.enough = place

    def _replay(self, scenario: _Scenario, limit_bytes: int) -> Curves:
        return replay_table(self.table, scenario.sizes_bytes, limit_bytes=max(0, limit_bytes), settings=self._settings)

    def _around(self, middle_bytes: int, peaks: Sequence[int], *, contexts: bool = False) -> Quantiles:
        """P50 is the median of each unknown, which is where a simulated card stands; the others are of the mixture."""
        values = np.array(peaks, dtype=np.float64)[:, None] * self._factors[None, :]
        if contexts:
            values = (values[:, :, None] + np.array(self.unknowns.contexts, dtype=np.float64)).reshape(len(peaks), -1)
            middle_bytes += self.unknowns.context_bytes
        weights = np.repeat([scenario.probability for scenario in self._scenarios], values.shape[1])
        p90, p95 = _weighted_quantiles(values.ravel(), weights, (0.9, 0.95))
        return Quantiles(p50=middle_bytes, p90=max(middle_bytes, p90), p95=max(middle_bytes, p95))

    def _within(self, found: Quantiles, room_bytes: int) -> Quantiles:
        """A peak above the room that is survived was no peak: the allocator stayed within."""

        def clipped(value: int, probability: float) -> int:
            survives = value > room_bytes and self.fits_probability >= probability - _SURE
            return max(found.p50, room_bytes) if survives else value

        return Quantiles(p50=found.p50, p90=clipped(found.p90, 0.9), p95=clipped(found.p95, 0.95))


def _at_most(found: Quantiles, most: Quantiles) -> Quantiles:
    return Quantiles(min(found.p50, most.p50), min(found.p90, most.p90), min(found.p95, most.p95))


def _weighted_quantiles(values: FloatArray, weights: FloatArray, probabilities: Sequence[float]) -> list[int]:
    """The smallest value that is not exceeded with each probability."""
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weights[order]) / weights.sum()
    rows = np.minimum(np.searchsorted(passed, np.array(probabilities) - _SURE), len(values) - 1)
    found: list[int] = np.ceil(values[order][rows] - _ROUNDING).astype(np.int64).tolist()
    return found
