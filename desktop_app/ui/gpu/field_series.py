"""How the history of each field is drawn: unit, axis, limit, colour. No Qt widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.missing import Floats
from desktop_app.core.telemetry import DETAIL_FIELDS, Card, Reading
from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.services.telemetry_feed import details_name, history_name
from desktop_app.ui.charts.scales import Axis, Limits, make_axis
from desktop_app.ui.texts import cards, numbers

_KWH: Final = 3.6e6
# Held until the next reading: counters, modes and limits do not glide.
STEPPED: Final = frozenset(
    {
        "performance_state",
        "power_limit_w",
        "ecc_uncorrected",
        "ecc_corrected",
        "ecc_uncorrected_total",
        "ecc_corrected_total",
        "pcie_generation",
        "pcie_width",
        "pcie_replays",
        "nvlinks_active",
        "remapped_rows_corrected",
        "remapped_rows_uncorrected",
        "remapping_pending",
        "remapping_failed",
        "retired_pages",
        "mps_clients",
        "encoder_sessions",
        "throttle_reasons",
    }
)
# Only ever grow: their mean says nothing, what was added does.
COUNTERS: Final = frozenset(
    {
        "energy_j",
        "ecc_uncorrected",
        "ecc_corrected",
        "ecc_uncorrected_total",
        "ecc_corrected_total",
        "pcie_replays",
        "remapped_rows_corrected",
        "remapped_rows_uncorrected",
        "retired_pages",
    }
)
# Yes or no; of the reasons of throttling: whether any holds back a card that has work.
FLAGS: Final = frozenset({"remapping_pending", "remapping_failed", "throttle_reasons"})
_HOLDING_BACK: Final = cards.SLOWDOWN_BITS | 0x04 | 0x10 | 0x02
_LIMITS: Final = {
    "memory_used_bytes": ("capacity_bytes", "text"),
    "bar1_used_bytes": ("bar1_total_bytes", "text"),
    "temperature_c": ("temperature_slowdown_c", "danger"),
    "temperature_memory_c": ("temperature_memory_max_c", "danger"),
    "power_w": ("power_limit_w", "danger"),
    "power_average_w": ("power_limit_w", "danger"),
    "sm_clock_mhz": ("sm_clock_max_mhz", "muted"),
    "memory_clock_mhz": ("memory_clock_max_mhz", "muted"),
    "pcie_generation": ("pcie_generation_max", "muted"),
    "pcie_width": ("pcie_width_max", "muted"),
}
_TOKENS: Final = {
    "percent": "utilization",
    "w": "power",
    "j": "power",
    "c": "temperature",
    "bytes": "device",
    "s": "device",
    "mhz": "learning_rate",
}
_OTHER_TOKEN: Final = "accuracy"  # noqa: S105 - a colour
_UNITS: Final = {"percent": "%", "w": "W", "c": "°C", "mhz": "MHz"}
_P_STATES: Final = Axis(15.0, 0.0, (15.0, 10.0, 5.0, 0.0), ("P15", "P10", "P5", "P0"))
_TOP: Final = 1.08  # room over a limit for its figure


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn of field ``key`` of a card. ``limit`` in the field's own unit, ``limit_token`` its colour."""

    uuid: str
    key: str
    limit: float | None = None
    limit_token: str = "muted"  # noqa: S105 - a colour

    @property
    def history(self) -> str:
        """The name of its history in the store."""
        return details_name(self.uuid) if self.key in DETAIL_FIELDS else history_name(self.uuid)

    @property
    def token(self) -> str:
        return _TOKENS.get(self.key.rpartition("_")[2], _OTHER_TOKEN)

    @property
    def stepped(self) -> bool:
        return self.key in STEPPED

    def drawn(self, values: Floats) -> Floats:
        """Values as they are drawn: a set of reasons is yes or no."""
        if self.key != "throttle_reasons":
            return values
        held = np.isfinite(values)
        flags = values.copy()
        flags[held] = (values[held].astype(np.int64) & _HOLDING_BACK) != 0
        return flags


def series_of(card: Card, key: str, readings: Mapping[str, Reading]) -> Series:
    """The series of ``key`` with the limit that it has now."""
    source, token = _LIMITS.get(key, ("", "muted"))
    limit = getattr(card, source) if source else None
    if source == "power_limit_w":
        now = readings.get(source)
        limit = limit if now is None or now.value is None else now.value
    return Series(card.uuid, key, None if limit is None else float(limit), token)


@dataclass(frozen=True, slots=True)
class Unit:
    """From the field's unit to the axis': times ``factor``, written with ``text``."""

    factor: float
    text: str


def unit_of(key: str, highest: float) -> Unit:
    """The unit in which values up to ``highest`` are easy to read."""
    if key == "energy_j":
        return Unit(1 / _KWH, "kWh")
    if key.endswith(("_bytes", "_bytes_per_s")):
        per = "/s" if key.endswith("_per_s") else ""
        for size, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
            if highest >= size:
                return Unit(1 / size, name + per)
        return Unit(1.0, "B" + per)
    return Unit(1.0, _UNITS.get(key.rpartition("_")[2], ""))


def axis_of(series: Series, values: Floats, unit: Unit, limits: Limits, *, at_most: int) -> Axis:
    """The axis for drawn ``values`` (the field's unit); it has the limit in it where that is near."""
    key = series.key
    if key in FLAGS:
        return Axis(-0.12, 1.12, (0.0, 1.0), (cards.yes_no(value=False), cards.yes_no(value=True)))
    if key == "performance_state":
        return _P_STATES
    if key.endswith("_percent"):
        return make_axis(0.0, 100.0, at_most=min(at_most, 3))
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = low * unit.factor, high * unit.factor
    if series.limit is not None:
        high = max(high, series.limit * unit.factor * _TOP)
        low = min(low, 0.0) if key != "temperature_c" else min(low, 30.0)
    whole = _whole if key.startswith("pcie_") or key in COUNTERS - {"energy_j"} else None
    return make_axis(*limits.follow(low, max(high, low)), at_most=at_most, text=whole)


def _whole(value: float) -> str:
    """Counts have no halves: a figure between two of them is left out."""
    return numbers.integer(value) if abs(value - round(value)) < 1e-6 else ""


def writer(key: str) -> Callable[[float], str]:
    """How a value of the field is written, with its unit."""
    return lambda value: cards.reading_value(key, Reading(value))
