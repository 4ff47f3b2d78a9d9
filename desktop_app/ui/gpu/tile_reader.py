"""What the tile of each card shows, read from the workspace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from desktop_app.core.missing import Floats
from desktop_app.core.store import History
from desktop_app.core.telemetry import Card, InstanceSample, Reading, Reason
from desktop_app.services.facade import Workspace
from desktop_app.services.telemetry_feed import history_name
from desktop_app.ui.tank_reader import lost_reason
from desktop_app.ui.texts import cards, gpu, numbers, reasons

SPARK_S: Final = 120.0
_SPARK_POINTS: Final = 40
_SPARK_FIELD: Final = "utilization_percent"
_ROWS_SEARCHED: Final = 8192  # for the last value before a loss
_SLOWED_PERCENT: Final = 5.0  # of the last tick, from which a mark is shown
Spark = tuple[tuple[float, float], ...]
_NONE: Final = Reading(None, Reason.NOT_READ_YET)


@dataclass(frozen=True, slots=True)
class Bar:
    """A name, and how full it is (0 to 1; ``None`` where that is not known)."""

    name: str
    text: str
    share: float | None


@dataclass(frozen=True, slots=True)
class TileState:
    """All that a tile shows. ``mark``: ``heat`` or ``power`` while it slows the card; ``lost``: why it is silent."""

    uuid: str
    index: str
    name: str
    where: str
    load: str
    vram: Bar
    power: str
    temperature: str
    hot: bool = False
    mark: str = ""
    lost: str = ""
    simulated: bool = False
    instances: tuple[Bar, ...] = ()
    spark: Spark = field(default=(), repr=False)  # x and y from 0 to 1; y is NaN in a gap

    def spoken(self) -> str:
        """For screen readers, and as tooltip of what had to be shortened."""
        words = [self.index, self.name, self.where]
        if self.lost:
            return gpu.spoken([*words, self.lost])
        words += [f"{gpu.utilisation()} {self.load}", f"{gpu.vram()} {self.vram.text}"]
        words += [f"{gpu.power()} {self.power}", f"{gpu.temperature()} {self.temperature}", mark_text(self.mark)]
        return gpu.spoken([*words, *(f"{bar.name} {bar.text}" for bar in self.instances)])


def mark_text(mark: str) -> str:
    """What a mark means, empty for none."""
    return {"heat": gpu.slowed_by_heat(), "power": gpu.slowed_by_power()}.get(mark, "")


class TileReader:
    """Runs in: GUI thread. It remembers when a lost card was seen last."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen: dict[str, str] = {}
        self._sparks: dict[str, tuple[float, Spark]] = {}

    def read(self) -> tuple[TileState, ...]:
        return tuple(self._tile(card) for card in self._workspace.cards.get())

    def _tile(self, card: Card) -> TileState:
        readings = self._workspace.readings.get().get(card.uuid, {})
        lost = lost_reason(self._workspace, card)
        temperature = readings.get("temperature_c", _NONE)
        slows_at = card.temperature_slowdown_c
        return TileState(
            uuid=card.uuid,
            index=gpu.index(card),
            name=gpu.card_name(card),
            where=gpu.where(card),
            load=cards.reading_value(_SPARK_FIELD, readings.get(_SPARK_FIELD)),
            vram=_vram(card, readings.get("memory_used_bytes", _NONE)),
            power=_of("power_w", readings, _power_limit(card, readings)),
            temperature=_of("temperature_c", readings, slows_at),
            hot=slows_at is not None and temperature.value is not None and temperature.value >= slows_at - 3.0,
            mark=_mark(readings),
            lost="" if lost is None else gpu.lost(lost, self._last_seen(card)),
            simulated=card.simulated,
            instances=tuple(_instances(self._workspace, card)),
            spark=self._spark(card),
        )

    def _spark(self, card: Card) -> Spark:
        name, store = history_name(card.uuid), self._workspace.store
        if name not in store.names():
            return ()
        # By whole steps of its points: a picture that moves less than that need not be painted.
        grain_s = SPARK_S / _SPARK_POINTS
        now_s = grain_s * math.floor(self._workspace.clock.now_s() / grain_s)
        known = self._sparks.get(card.uuid)
        if known is not None and known[0] == now_s:
            return known[1]
        curve = store.history(name).curve(_SPARK_FIELD, now_s - SPARK_S, now_s, pixels=_SPARK_POINTS)
        x = (curve.x - now_s + SPARK_S) / SPARK_S
        y = curve.y / 100.0
        inside = (x >= 0.0) & (x <= 1.0)  # a curve has a point beyond each edge
        spark = tuple(zip(x[inside].tolist(), y[inside].tolist(), strict=True))
        self._sparks[card.uuid] = now_s, spark
        return spark

    def _last_seen(self, card: Card) -> str:
        """The time of the last value before it was lost. It does not change while the card is away."""
        if card.uuid not in self._seen:
            name, store = history_name(card.uuid), self._workspace.store
            t_s = last_measured(store.history(name)) if name in store.names() else None
            wall_s = None if t_s is None else self._workspace.clock.wall_s(t_s)
            self._seen[card.uuid] = "" if wall_s is None else numbers.wall_time(wall_s)
        return self._seen[card.uuid]

    def forget_the_found(self) -> None:
        """A card that answers again may be lost again later."""
        lost = self._workspace.telemetry.get().lost or {}
        self._seen = {uuid: seen for uuid, seen in self._seen.items() if uuid in lost}


def last_measured(history: History) -> float | None:
    """The session time of the newest row with a value."""
    rows = history.tail(_ROWS_SEARCHED)
    found: Floats = rows.t_s[np.isfinite(rows.values).any(axis=0)]
    return float(found[-1]) if found.size else None


def _power_limit(card: Card, readings: Mapping[str, Reading]) -> float | None:
    limit = readings.get("power_limit_w", _NONE).value
    return card.power_limit_w if limit is None else limit


def _of(key: str, readings: Mapping[str, Reading], limit: float | None) -> str:
    """``640 / 700 W``: the value without its unit, then the limit with it."""
    reading = readings.get(key, _NONE)
    if reading.value is None or limit is None:
        return cards.reading_value(key, reading) if reading.value is not None else reasons.short(reading.reason)
    return gpu.of_limit(numbers.integer(reading.value), cards.reading_value(key, Reading(limit)))


def _vram(card: Card, used: Reading) -> Bar:
    capacity = card.capacity_bytes
    if used.value is None:
        return Bar(gpu.vram(), reasons.short(used.reason), None)
    share = min(used.value / capacity, 1.0) if capacity else None
    return Bar(gpu.vram(), gpu.used_of(used.value, capacity), share)


def _mark(readings: Mapping[str, Reading]) -> str:
    for mark, key in (("heat", "throttle_thermal_percent"), ("power", "throttle_power_percent")):
        value = readings.get(key, _NONE).value
        if value is not None and value >= _SLOWED_PERCENT:
            return mark
    return ""


def instance_samples(workspace: Workspace, uuid: str) -> Mapping[str, Mapping[str, Reading]]:
    """Readings of the MIG instances of a card, by the UUID of the instance."""
    cell = getattr(workspace, "instances", None)
    table: Mapping[str, tuple[InstanceSample, ...]] = {} if cell is None else cell.get()
    return {sample.uuid: sample.readings for sample in table.get(uuid, ())}


def _instances(workspace: Workspace, card: Card) -> list[Bar]:
    samples = instance_samples(workspace, card.uuid)
    bars = []
    for instance in card.instances:
        used = samples.get(instance.uuid, {}).get("memory_used_bytes", _NONE)
        total = instance.total_bytes
        if used.value is None:
            bars.append(Bar(gpu.instance_name(instance), reasons.short(used.reason), None))
        else:
            share = min(used.value / total, 1.0) if total else None
            bars.append(Bar(gpu.instance_name(instance), gpu.used_of(used.value, total), share))
    return bars
