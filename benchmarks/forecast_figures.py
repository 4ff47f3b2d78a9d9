"""Figures over many judged runs: what the score prints, and what it is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from forecast_judge import HORIZONS, Judged

_DAY_S: Final = 86_400.0
GROWING: Final = ("leak", "fragmentation", "neighbour")  # and stairs of any cause
IN_CALL: Final = ("first_optimizer_step", "validation", "checkpoint_save", "batch_shape")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one group of runs. ``None`` where nothing applies.

    recall: flagged and not taken back before it runs out; early: so with 10 steps or 60 s of lead, or before the
    call. Cause: named by that alert (first) and by the forecast just before the end (last).
    """

    group: str
    runs: int
    recall: float | None = None
    early: float | None = None
    lead_steps: float | None = None  # median
    lead_s: float | None = None
    eta_error: float | None = None
    eta_known: float | None = None
    coverage: float | None = None
    first_cause: float | None = None
    last_cause: float | None = None


@dataclass(frozen=True, slots=True)
class Alarms:
    """False ones: in healthy runs, and before anything was wrong in the others."""

    group: str
    runs: int
    hours: float
    updates: int
    alarms: int

    @property
    def per_day(self) -> float:
        return self.alarms / self.hours * 24.0 if self.hours > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Brier:
    horizon: str
    score: float
    base: float  # of somebody who always says the base rate
    rate: float

    @property
    def ratio(self) -> float:
        return self.score / self.base if self.base > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the acceptance."""

    name: str
    value: float
    wanted: str
    passed: bool


def figures(group: str, runs: Sequence[Judged]) -> Figures:
    """Of runs that run out."""
    found = [run for run in runs if run.found]
    etas = [run for run in runs if run.eta_error is not None]
    return Figures(
        group=group,
        runs=len(runs),
        recall=_share(runs, lambda run: run.found),
        early=_share(runs, lambda run: run.early),
        lead_steps=_median(run.lead_steps for run in found),
        lead_s=_median(run.lead_s for run in found),
        eta_error=_median(run.eta_error for run in etas),
        eta_known=_mean(run.eta_known for run in etas),
        coverage=_mean(run.eta_inside for run in etas),
        first_cause=_share(found, lambda run: run.first_cause == run.cause),
        last_cause=_share(found, lambda run: run.last_cause == run.cause),
    )


def by_cause(runs: Iterable[Judged]) -> list[Figures]:
    """Each cause, the staircases of all causes, and all together."""
    bad = [run for run in runs if run.cause is not None]
    causes = dict.fromkeys(run.cause for run in bad)
    groups = [figures(str(cause), [run for run in bad if run.cause == cause]) for cause in causes]
    groups.append(figures("(stairs)", [run for run in bad if run.kind == "stairs"]))
    return [*groups, figures("all", bad)]


def alarms(runs: Iterable[Judged]) -> list[Alarms]:
    """By kind of healthy run, for the healthy part of the others, for steps of at most 2.5 s, and pooled."""
    runs = list(runs)
    kinds: dict[str, list[Judged]] = {}
    for run in runs:
        kinds.setdefault(run.kind if run.cause is None else "(before faults)", []).append(run)
    groups = [_alarms(kind, members) for kind, members in kinds.items()]
    groups.append(_alarms("(steps to 2.5 s)", [run for run in runs if run.short_steps]))
    return [*groups, _alarms("all", runs)]


def _alarms(group: str, runs: Sequence[Judged]) -> Alarms:
    updates = sum(run.rows if run.onset_row is None else run.onset_row for run in runs)
    hours = sum(run.healthy_s for run in runs) / 3600.0
    return Alarms(group, len(runs), hours, updates, sum(len(run.false_alarms) for run in runs))


def brier(runs: Iterable[Judged]) -> list[Brier]:
    """Every run has the same weight. Spilling is left out: nothing is refused there."""
    runs = [run for run in runs if run.cause != "spill"]
    found = []
    for horizon in HORIZONS:
        scores, outcomes = [], []
        for run in runs:
            pairs = run.probabilities[horizon]
            if pairs:
                scores.append(sum((p - came) ** 2 for p, came in pairs) / len(pairs))
                outcomes.append(sum(came for _, came in pairs) / len(pairs))
        rate = float(np.mean(outcomes))
        found.append(Brier(horizon, float(np.mean(scores)), rate * (1.0 - rate), rate))
    return found


def targets(runs: Sequence[Judged]) -> list[Target]:
    """The acceptance of the forecast, line by line."""
    bad = [run for run in runs if run.cause is not None]
    lines = []
    for cause in GROWING:
        group = [run for run in bad if run.cause == cause and run.kind != "stairs" and run.grows]
        lines.append(_at_least(f"early recall {cause}", _share(group, lambda run: run.early), 0.97))
    group = [run for run in bad if run.kind == "stairs"]
    lines.append(_at_least("early recall stairs", _share(group, lambda run: run.early), 0.97))
    for cause in IN_CALL:
        group = [run for run in bad if run.cause == cause and run.call]
        lines.append(_at_least(f"before the call {cause}", _share(group, lambda run: run.found), 1.0))
    pooled = alarms(runs)[-1]
    lines.append(Target("false alarms per 24 h", pooled.per_day, "≤ 1", pooled.per_day <= 1.0))
    eta = figures("", bad)
    error, inside = eta.eta_error or 0.0, eta.coverage or 0.0
    lines.append(Target("median ETA error", error, "≤ 0.20", error <= 0.2))
    lines.append(Target("80 % interval covers", inside, "0.75 to 0.90", 0.75 <= inside <= 0.90))
    lines += [Target(f"Brier over base, {one.horizon}", one.ratio, "≤ 0.50", one.ratio <= 0.5) for one in brier(runs)]
    lines.append(_at_least("top-1 cause, first alert", eta.first_cause, 0.9))
    lines.append(_at_least("top-1 cause, at the end", eta.last_cause, 0.9))
    leaks = [run for run in bad if run.late_steps is not None or (run.cause == "leak" and not run.found)]
    in_time = _share(leaks, lambda run: run.late_steps is not None and run.late_steps <= 0)
    lines.append(_at_least("leak flagged by 1 % or 40 steps", in_time, 0.97))
    return lines


def as_json(runs: Sequence[Judged]) -> dict[str, object]:
    return {
        "causes": [asdict(one) for one in by_cause(runs)],
        "alarms": [{**asdict(one), "per_day": one.per_day} for one in alarms(runs)],
        "brier": [{**asdict(one), "ratio": one.ratio} for one in brier(runs)],
        "targets": [asdict(one) for one in targets(runs)],
    }


def _at_least(name: str, value: float | None, wanted: float) -> Target:
    return Target(name, value or 0.0, f"≥ {wanted:.2f}", (value or 0.0) >= wanted)


def _share(runs: Sequence[Judged], holds: Callable[[Judged], bool]) -> float | None:
    return sum(map(holds, runs)) / len(runs) if runs else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
