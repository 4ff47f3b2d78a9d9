"""Which of several cards with one job holds the others up, and why. Arithmetic on the last minute, no Qt.

In a training over several cards the slowest sets the pace, and the others *wait* with less to do. So a card that waits
is only called slow when no other card is found to be slowed by something. Nobody is called slow where cards do
different things, where half of them or more differ from the rest, or within the noise of the minute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.services.same_job import Mark, jobs

MINUTE_S: Final = 60.0
BUSY_PERCENT: Final = 15.0  # utilisation from which a card takes part
WORKING_PERCENT: Final = 30.0  # median utilisation from which a job is at work
# Differences below these are not worth a word: a twentieth of the clock is a twentieth of the job's time at most.
_CLOCK_SHARE: Final = 0.05
_LOAD_POINTS: Final = 10.0
_OTHERS_POINTS: Final = 5.0
_THROTTLED_PERCENT: Final = 5.0  # of the time
_LINK_SHARE: Final = 0.5  # of the others' bandwidth
_LINK_LOAD: Final = 0.2  # a link that carries less of what it can does not hold anybody up
_SIGMAS: Final = 3.0  # beyond the noise of the minute and the spread of the others
_MAD_TO_SIGMA: Final = 1.4826  # of a normal distribution
# Bytes a second and lane in one direction after encoding, by PCIe generation (PCI-SIG base specifications 1.0 to 6.0).
_LANE_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}


class Lag(StrEnum):
    """Why a card is slower than the others."""

    HEAT = "heat"
    POWER = "power"
    CLOCK = "clock"  # lower, and no throttling is reported
    LINK = "link"
    OTHER_PROCESS = "other_process"
    WAITS = "waits"


class Pace(StrEnum):
    """What can be said of the cards of one job."""

    EVEN = "even"
    LAGGING = "lagging"
    UNEVEN = "uneven"  # too many differ: they do different things


@dataclass(frozen=True, slots=True)
class Level:
    """A mean over the minute, and its standard error."""

    mean: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """What one card did in the last minute. ``levels``: by field, missing where too little was measured."""

    uuid: str
    model: str
    levels: Mapping[str, Level] = field(default_factory=dict)
    generation: float | None = None
    width: float | None = None
    job: Mark | None = None  # ``None``: the driver does not say which processes are on it
    others_percent: float | None = None  # SM time of processes that do not belong to the job

    def mean(self, name: str) -> float | None:
        level = self.levels.get(name)
        return None if level is None else level.mean

    @property
    def link_bytes_per_s(self) -> float | None:
        lane = None if self.generation is None else _LANE_BYTES_PER_S.get(round(self.generation))
        return None if lane is None or not self.width else lane * self.width


@dataclass(frozen=True, slots=True)
class Standing:
    """One card among the others. ``beside``: the median of the others by field; ``lost``: share of its pace, 0 to 1."""

    work: Work
    beside: Mapping[str, float]
    cause: Lag | None = None
    lost: float = 0.0
    link_beside: Work | None = None  # a card with the link that the others have

    def difference(self, name: str) -> float | None:
        """Its mean less the others' median, in the field's unit."""
        own = self.work.mean(name)
        return None if own is None or name not in self.beside else own - self.beside[name]


@dataclass(frozen=True, slots=True)
class Group:
    """The cards of one job, the slowest first."""

    pace: Pace
    standings: tuple[Standing, ...]

    @property
    def lagging(self) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.standings if standing.cause is not None)


def compare(works: Sequence[Work]) -> tuple[Group, ...]:
    """The busy cards by job, each job with two cards or more. Empty: there is nothing to compare."""
    busy = [work for work in works if (work.mean("utilization_percent") or 0.0) >= BUSY_PERCENT]
    groups = []
    for members in jobs(busy):
        loads = [work.mean("utilization_percent") or 0.0 for work in members]
        if len(members) > 1 and float(np.median(loads)) >= WORKING_PERCENT:
            groups.append(_judge(members))
    return tuple(groups)


def _judge(members: Sequence[Work]) -> Group:
    standings = [_stand(work, [other for other in members if other is not work]) for work in members]
    found = [standing for standing in standings if standing.cause is not None]
    if any(standing.cause is not Lag.WAITS for standing in found):
        standings = [_patient(standing) for standing in standings]
        found = [standing for standing in standings if standing.cause is not None]
    most = 1 if len(members) == 2 else (len(members) - 1) // 2
    if len(found) > most:
        plain = tuple(Standing(each.work, each.beside) for each in standings)
        return Group(Pace.UNEVEN, tuple(sorted(plain, key=lambda each: each.work.mean("utilization_percent") or 0.0)))
    return Group(Pace.LAGGING if found else Pace.EVEN, _ranked(standings))


def _ranked(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Those with a cause first, the most lost time first; the rest as they came: an order by noise would never rest."""
    return tuple(sorted(standings, key=lambda each: (each.cause is None, -each.lost if each.cause else 0.0)))


def _patient(standing: Standing) -> Standing:
    """A card that waits for one that is slowed is not slow itself."""
    if standing.cause is not Lag.WAITS:
        return standing
    return Standing(standing.work, standing.beside)


def _stand(work: Work, others: Sequence[Work]) -> Standing:
    beside = {name: value for name in work.levels if (value := _median(name, others)) is not None}
    clock = _clock_lost(work, others)
    if clock is not None:
        return Standing(work, beside, _why_slow(work), clock)
    heat = _hot_without_clock(work, beside)
    if heat is not None:
        return Standing(work, beside, Lag.HEAT, heat)
    stolen = _stolen(work, others)
    if stolen is not None:
        return Standing(work, beside, Lag.OTHER_PROCESS, stolen)
    waits = _waits(work, others)
    linked = _like_the_others(work, others)
    if linked is not None and (waits is not None or _link_is_used(work)):
        return Standing(work, beside, Lag.LINK, waits or 0.0, linked)
    if waits is not None:
        return Standing(work, beside, Lag.WAITS, waits)
    return Standing(work, beside)


def _median(name: str, others: Sequence[Work]) -> float | None:
    values = [value for other in others if (value := other.mean(name)) is not None]
    return float(np.median(values)) if values else None


def _below(name: str, work: Work, others: Sequence[Work]) -> float | None:
    """By how much the card is below the median of the others; ``None`` where that is within the noise."""
    own = work.levels.get(name)
    levels = [level for other in others if (level := other.levels.get(name)) is not None]
    if own is None or not levels:
        return None
    means = np.array([level.mean for level in levels])
    median = float(np.median(means))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(means - median)))
    # The error of a median is about 1.25 times that of a mean; the errors of others are of one size.
    error = 1.25 * float(np.median([level.error for level in levels])) / math.sqrt(len(levels))
    noise = _SIGMAS * math.hypot(own.error, error, spread)
    gap = median - own.mean
    return gap if gap > noise else None


def _clock_lost(work: Work, others: Sequence[Work]) -> float | None:
    gap, median = _below("sm_clock_mhz", work, others), _median("sm_clock_mhz", others)
    if gap is None or not median or gap / median < _CLOCK_SHARE:
        return None
    return gap / median


def _why_slow(work: Work) -> Lag:
    heat, power = work.mean("throttle_thermal_percent") or 0.0, work.mean("throttle_power_percent") or 0.0
    if heat >= _THROTTLED_PERCENT:
        return Lag.HEAT
    return Lag.POWER if power >= _THROTTLED_PERCENT else Lag.CLOCK


def _hot_without_clock(work: Work, beside: Mapping[str, float]) -> float | None:
    """Held back by heat, the others not, on a card that does not tell its clock: how much is lost is not known."""
    own = work.mean("throttle_thermal_percent")
    if own is None or "sm_clock_mhz" in work.levels:
        return None
    more = own - beside.get("throttle_thermal_percent", own)
    return 0.0 if more >= _LOAD_POINTS else None


def _stolen(work: Work, others: Sequence[Work]) -> float | None:
    """The share of its SM time that goes to other processes, where the others lose less."""
    if work.others_percent is None:
        return None
    known = [other.others_percent for other in others if other.others_percent is not None]
    more = work.others_percent - (float(np.median(known)) if known else 0.0)
    return more / 100 if more >= _OTHERS_POINTS else None


def _waits(work: Work, others: Sequence[Work]) -> float | None:
    """The share by which it has less to do: by utilisation, else by the activity of its SMs."""
    for name in ("utilization_percent", "sm_activity_percent"):
        gap, median = _below(name, work, others), _median(name, others)
        if gap is not None and median and gap >= _LOAD_POINTS:
            return gap / median
    return None


def _like_the_others(work: Work, others: Sequence[Work]) -> Work | None:
    """A card with the link of most others, when this one's carries half of that or less."""
    known = sorted((other.link_bytes_per_s, place) for place, other in enumerate(others) if other.link_bytes_per_s)
    own = work.link_bytes_per_s
    if own is None or not known:
        return None
    median, place = known[len(known) // 2]
    return others[place] if own <= _LINK_SHARE * (median or 0.0) else None


def _link_is_used(work: Work) -> bool:
    used = max(work.mean("pcie_rx_bytes_per_s") or 0.0, work.mean("pcie_tx_bytes_per_s") or 0.0)
    return work.link_bytes_per_s is not None and used >= _LINK_LOAD * work.link_bytes_per_s
