"""Cause ``host_memory``: the computer's RAM, or what it may promise, runs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import StepSample, Surroundings
from desktop_app.core.units import MIB
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.outlook import Outlook
from desktop_app.forecast.sampled_growth import LEAST_COME, Growth, SampledGrowth, seconds_left

LIKELY_P: Final = 0.5
WATCH_P: Final = 0.15
# Also of the commit charge: a program or a worker that starts is promised that much at once.
# Linux keeps free about 1 to 3 % of RAM (vm.min_free_kbytes and the watermarks above it); below that programs are
# stopped and killed.
_KEPT_SHARE: Final = 0.02
_KEPT_BYTES: Final = 64 * MIB
# OOM-07 of the cases: "host RAM above 90 % and rising", while the window can still be used.
_NEARLY_FULL: Final = 0.9
_IMMINENT_S: Final = 60.0  # to save, close and look: a machine that swaps takes its time
_EPOCH_GRACE: Final = 0.1  # of the first epoch, or so many seconds, until it shows that its growth has ended
_EPOCH_GRACE_S: Final = 30.0
_TOLD_STEPS: Final = 3  # steps after which what is loaded once has been loaded
_MEANT_SHARE: Final = 0.2  # of the growth: less than this is not who grows
_LEAST_COME_AT_THE_TOP: Final = 0.02  # of what is left: less growth than that is not looked at
_PARTS: Final = ("own_rss_bytes", "children_rss_bytes", "children")


@dataclass(frozen=True, slots=True)
class _Danger:
    resource: str  # "ram" or "commit"
    growth: Growth
    used_bytes: float
    limit_bytes: float
    total_bytes: float

    @property
    def nearly_full(self) -> bool:
        return self.used_bytes >= _NEARLY_FULL * self.total_bytes


class HostMemoryCause(CauseModel):
    """Follows RAM and commit charge, and which processes they go to."""

    cause = Cause.HOST_MEMORY

    def __init__(self) -> None:
        self._ram = SampledGrowth(turn=2)
        self._commit = SampledGrowth(turn=2)
        self._newest: Surroundings | None = None
        self._first: dict[str, float] = {}  # of the parts, since the growth is followed
        self._stepping = False

    def take_step(self, sample: StepSample, view: View) -> None:
        """What grew before the first steps was loading: growth is followed anew."""
        if not self._stepping and view.evidence.steps_seen >= _TOLD_STEPS:
            self._stepping = True
            self._ram, self._commit = SampledGrowth(turn=2), SampledGrowth(turn=2)
            self._first = {}

    def take_surroundings(self, sample: Surroundings, view: View) -> None:
        """Take RAM and commit charge, as far as they are known."""
        used, total = _used_and_total(sample)
        if used is not None and total:
            self._ram.add(sample.t_s, used)
        if sample.commit_used_bytes is not None and sample.commit_limit_bytes:
            self._commit.add(sample.t_s, float(sample.commit_used_bytes))
        self._newest = sample
        for name in _PARTS:
            value = getattr(sample, name)
            if value is not None:
                self._first.setdefault(name, float(value))

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """When it runs out if it grows on; ``None`` while nothing grows that matters."""
        dangers = [danger for danger in self._dangers(view, known=known) if danger is not None]
        if self._newest is None or not dangers:
            return None
        danger = min(dangers, key=lambda one: one.growth.seconds_to_go.median)
        pace_s = view.evidence.seconds_per_step()
        p_within, to_go = danger.growth.by_steps(pace_s)
        p_run = danger.growth.probability_within(danger.growth.horizon_s)
        severity = self._severity(danger, p_run)
        parts = self._parts()
        return Outlook(
            cause=Cause.HOST_MEMORY,
            severity=severity,
            p_within=p_within,
            p_run=p_run,
            to_go=to_go if severity is not None else None,
            action="fewer_workers" if _workers_grow(parts, danger.growth.grown_bytes) else "free_host_memory",
            evidence=self._figures(danger, parts),
        )

    def _dangers(self, view: View, *, known: bool) -> list[_Danger | None]:
        newest = self._newest
        if newest is None:
            return []
        found: list[_Danger | None] = []
        used, total = _used_and_total(newest)
        if used is not None and total:
            kept = max(_KEPT_SHARE * total, float(_KEPT_BYTES))
            found.append(self._look("ram", self._ram, total - kept, total, view, known=known))
        if newest.commit_used_bytes is not None and newest.commit_limit_bytes:
            limit = float(newest.commit_limit_bytes)
            kept = _KEPT_SHARE * limit
            found.append(self._look("commit", self._commit, limit - kept, limit, view, known=known))
        return found

    def _look(
        self, resource: str, series: SampledGrowth, limit: float, total: float, view: View, *, known: bool
    ) -> _Danger | None:
        nearly_full = series.value >= _NEARLY_FULL * total
        least = _LEAST_COME_AT_THE_TOP if nearly_full else LEAST_COME
        growth = series.towards(limit, view=view, known=known, horizon_s=self._horizon(view), least_come=least)
        if growth is None:
            return None
        if nearly_full:
            growth = replace(growth, belief=0.5 + 0.5 * growth.belief)
        return _Danger(resource, growth, series.value, limit, total)

    def _horizon(self, view: View) -> float:
        """To the end of the run; in the first epoch to its end, as a cache of the data set grows as a leak does."""
        horizon, pace_s = seconds_left(view), view.evidence.seconds_per_step()
        epoch_steps = view.environment.steps_per_epoch
        if not pace_s or not epoch_steps:
            return horizon
        grace_s = max(_EPOCH_GRACE * epoch_steps * pace_s, _EPOCH_GRACE_S)
        left_s = (epoch_steps - view.evidence.step) * pace_s + grace_s
        return min(horizon, left_s) if left_s > 0 else horizon

    def _severity(self, danger: _Danger, p_run: float) -> AlertSeverity | None:
        if danger.nearly_full:
            return AlertSeverity.IMMINENT if p_run >= LIKELY_P else AlertSeverity.WATCH
        if not self._stepping:  # a data set on its way into RAM ends where it is loaded
            return AlertSeverity.WATCH if p_run >= WATCH_P else None
        if p_run >= LIKELY_P:
            soon = danger.growth.seconds_to_go.median <= _IMMINENT_S
            return AlertSeverity.IMMINENT if soon else AlertSeverity.LIKELY
        return AlertSeverity.WATCH if p_run >= WATCH_P else None

    def _parts(self) -> dict[str, float]:
        """How much each part has grown since it is followed."""
        values = {name: getattr(self._newest, name) for name in _PARTS}
        return {
            name: float(value) - self._first.get(name, float(value))
            for name, value in values.items()
            if value is not None
        }

    def _figures(self, danger: _Danger, parts: Mapping[str, float]) -> Mapping[str, float]:
        newest = self._newest
        growth = danger.growth
        figures = {
            "host_used_bytes": danger.used_bytes,
            "host_total_bytes": danger.total_bytes,
            "headroom_bytes": max(danger.limit_bytes - danger.used_bytes, 0.0),
            "slope_bytes_per_s": growth.slope_bytes_per_s,
            "grown_bytes": growth.grown_bytes,
            "grown_s": growth.lasted_s,
            "significance": growth.trend.significance,
            "commit": float(danger.resource == "commit"),
        }
        for name in _PARTS:
            value = getattr(newest, name)
            if value is not None:
                figures[name] = float(value)
                figures[f"grown_{name}"] = parts[name]
        if "own_rss_bytes" in parts:
            others = growth.grown_bytes - parts["own_rss_bytes"] - parts.get("children_rss_bytes", 0.0)
            figures["grown_elsewhere_bytes"] = max(others, 0.0)
        return figures


def _used_and_total(sample: Surroundings) -> tuple[float | None, float]:
    """RAM in use, caches of files aside, and all of it."""
    total = float(sample.host_total_bytes or 0)
    if sample.host_available_bytes is not None and total:
        return total - sample.host_available_bytes, total
    return None if sample.host_used_bytes is None else float(sample.host_used_bytes), total


def _workers_grow(parts: Mapping[str, float], grown_bytes: float) -> bool:
    """Loader workers take the most: their number rises, or their memory more than this process's."""
    workers = parts.get("children_rss_bytes", 0.0)
    if parts.get("children", 0.0) > 0:
        return True
    return workers > parts.get("own_rss_bytes", 0.0) and workers >= _MEANT_SHARE * grown_bytes
