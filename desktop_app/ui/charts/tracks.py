"""Which curves each panel shows, from which history, on which axis, and how they become paths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

import numpy as np
from PySide6.QtGui import QColor, QPainterPath

from desktop_app.core.store import Curve, History
from desktop_app.core.telemetry import Card, Reading
from desktop_app.core.units import GIB
from desktop_app.ui.charts.curves_item import Content, Limit, Line, areas_below, line_path, stepped
from desktop_app.ui.charts.load import Load, power_limit_w
from desktop_app.ui.charts.panel import Panel, SideFigure
from desktop_app.ui.charts.scales import Axis, Limits, figures_for, make_axis, scientific
from desktop_app.ui.charts.time_axis import View
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import Theme, color, mix

_RAW_STRENGTH: Final = 0.42  # the raw loss, under its own mean
_AREA_STRENGTH: Final = 0.16
_CAPACITY_TOP: Final = 1.14  # room over the brim for the word at the forecast's end
_POWER_TOP: Final = 1.12
_TEMPERATURE_TOP: Final = 1.05
_COOLEST_C: Final = 40.0  # a card at work is warmer
_OVER_LIMIT: Final = 102.0  # percent of the power limit: a pixel or two above the axis is no reason for another axis


@lru_cache(maxsize=128)
def _ink(theme: Theme, token: str, strength: float) -> QColor:
    """``strength`` of a colour over the panel, opaque."""
    return mix(getattr(theme, token), theme.surface, strength)


class Style(Enum):
    LINE = "line"
    STEPS = "steps"  # holds each value until the next
    AREA = "area"


@dataclass(frozen=True, slots=True)
class CurveSpec:
    """One curve. ``history``: "steps", "smooth", "validation" or "card"; ``token``: its colour in the theme."""

    key: str
    history: str
    column: str
    token: str
    style: Style = Style.LINE
    right: bool = False  # drawn on the right-hand axis
    strength: float = 1.0  # share of its colour over the panel's
    heavy: bool = False
    factor: float = 1.0  # from the history's unit to the axis'


@dataclass(frozen=True, slots=True)
class PanelSpec:
    key: str
    curves: tuple[CurveSpec, ...]


PANELS: Final = (
    PanelSpec(
        "loss",
        (
            CurveSpec("accuracy", "validation", "accuracy", "accuracy", right=True),
            CurveSpec("raw", "steps", "loss", "loss", strength=_RAW_STRENGTH),
            CurveSpec("validation", "validation", "loss", "validation", Style.STEPS),
            CurveSpec("loss", "smooth", "loss", "loss", heavy=True),
        ),
    ),
    PanelSpec(
        "optimizer",
        (
            CurveSpec("grad_norm", "steps", "grad_norm", "grad_norm", right=True),
            CurveSpec("learning_rate", "steps", "learning_rate", "learning_rate"),
        ),
    ),
    PanelSpec(
        "vram",
        (
            CurveSpec("device", "card", "memory_used_bytes", "device", Style.AREA, factor=1 / GIB),
            CurveSpec("live", "steps", "live_peak_bytes", "live", factor=1 / GIB),
        ),
    ),
    PanelSpec("utilization", ()),  # its curves are those of ``LOADS``
    PanelSpec("temperature", (CurveSpec("temperature", "card", "temperature_c", "temperature"),)),
    PanelSpec("power", (CurveSpec("power", "card", "power_w", "power"),)),
)
# What the panel of utilisation shows, by choice. The factor of power is of the card's limit.
LOADS: Final = {
    Load.UTILIZATION: (CurveSpec("utilization", "card", "utilization_percent", "utilization"),),
    Load.SM_ACTIVITY: (
        CurveSpec("tensor_activity", "details", "tensor_activity_percent", "accent"),
        CurveSpec("sm_activity", "details", "sm_activity_percent", "utilization"),
    ),
    Load.POWER: (CurveSpec("power_share", "card", "power_w", "power"),),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What every panel needs for one picture. ``now_x``: now in seconds from the view's anchor."""

    view: View
    now_x: float
    theme: Theme
    histories: Mapping[str, History]
    card: Card | None
    readings: Mapping[str, Reading]
    running: bool  # a held value (validation) still holds now
    load: Load = Load.UTILIZATION


class Track:
    """Keeps one panel up to date."""

    def __init__(self, spec: PanelSpec, panel: Panel) -> None:
        self.spec = spec
        self.panel = panel
        self.drawn = 0  # pictures made; for tests and the benchmark
        self._signature: object = None
        self._limits = (Limits(), Limits())
        self._line_height = 13.0

    def set_line_height(self, line: float) -> None:
        self._line_height = line
        self._signature = None

    def forget(self) -> None:
        """Draw again at the next update even if nothing has changed."""
        self._signature = None

    def update(self, frame: Frame) -> bool:
        """Make new paths where the window or the data have changed; whether it did."""
        signature = self._sign(frame)
        if signature == self._signature:
            return False
        self._signature = signature
        self.panel.set_view(frame.view.left, frame.view.right)
        specs = self._specs(frame)
        curves = {spec.key: self._curve(spec, frame) for spec in specs}
        left, right = self._axes(curves, frame)
        lines = [self._line(spec, curves[spec.key], right if spec.right else left, frame) for spec in specs]
        limits, figures = self._marks(left, right, frame)
        # Without data the panel says why in its middle; lines would run through the words.
        grid = tuple(left.share(tick) for tick in left.ticks) if any(curves.values()) else ()
        self.panel.curves.set_content(Content([line for line in lines if line is not None], limits, grid))
        self.panel.set_figures(left, figures)
        self.drawn += 1
        return True

    def _specs(self, frame: Frame) -> tuple[CurveSpec, ...]:
        """The panel's curves now."""
        if self.spec.key != "utilization":
            return self.spec.curves
        if frame.load is not Load.POWER:
            return LOADS[frame.load]
        limit = power_limit_w(frame.card, frame.readings)
        return tuple(replace(spec, factor=100 / limit) for spec in LOADS[Load.POWER]) if limit else ()

    def _sign(self, frame: Frame) -> object:
        plot, specs = self.panel.plot, self._specs(frame)
        versions = [frame.histories[spec.history].version for spec in specs if spec.history in frame.histories]
        look = (frame.theme.name, frame.card, self._bound(frame), specs)
        return (frame.view, plot.width(), plot.height(), versions, *look)

    def _bound(self, frame: Frame) -> float | None:
        """The limit that the panel draws, in the axis' unit."""
        card = frame.card
        if card is None:
            return None
        if self.spec.key == "vram":
            return None if card.capacity_bytes is None else card.capacity_bytes / GIB
        if self.spec.key == "temperature":
            return card.temperature_slowdown_c
        if self.spec.key == "power":
            return power_limit_w(card, frame.readings)
        return None

    # -- curves ---------------------------------------------------------------------------------------------------

    def _curve(self, spec: CurveSpec, frame: Frame) -> Curve | None:
        """The points in view, x in seconds from the anchor, y in the axis' unit."""
        history = frame.histories.get(spec.history)
        if history is None or not history.version:
            return None
        view = frame.view
        right = min(view.right, max(frame.now_x, view.left))
        pixels = max(1, round(self.panel.plot.width() * (right - view.left) / view.width))
        curve = history.curve(spec.column, view.anchor_s + view.left, view.anchor_s + right, pixels=pixels)
        return Curve(curve.x - view.anchor_s, curve.y * spec.factor, curve.has_gaps)

    def _line(self, spec: CurveSpec, curve: Curve | None, axis: Axis, frame: Frame) -> Line | None:
        if curve is None or not curve.x.size:
            return None
        x, y = curve.x, (curve.y - axis.low) / (axis.high - axis.low)
        if spec.style is Style.STEPS:
            x, y = stepped(x, y, until=frame.now_x if frame.running else -math.inf)
        path = line_path(x, y, has_gaps=curve.has_gaps) if x.size > 1 else QPainterPath()
        pen = _ink(frame.theme, spec.token, spec.strength)
        if spec.style is Style.AREA:
            return Line(path, pen, areas_below(x, y), _ink(frame.theme, spec.token, _AREA_STRENGTH))
        return Line(path, pen, heavy=spec.heavy)

    # -- axes -----------------------------------------------------------------------------------------------------

    def _axes(self, curves: Mapping[str, Curve | None], frame: Frame) -> tuple[Axis, Axis]:
        figures = figures_for(self.panel.plot.height(), self._line_height)
        key = self.spec.key
        if key == "utilization":
            axis = make_axis(0.0, _percent_top(curves), at_most=min(figures, 3))
            return axis, axis
        bound = self._bound(frame)
        if key == "vram" and bound:
            axis = make_axis(0.0, bound * _CAPACITY_TOP, at_most=figures)
            return axis, axis
        left = self._followed(curves, right=False, bound=bound)
        if key == "loss":
            return make_axis(*left, at_most=figures), Axis(0.0, 1.0)
        right = self._followed(curves, right=True, bound=None)
        text = scientific if key == "optimizer" else None
        return make_axis(*left, at_most=figures, text=text), make_axis(*right, at_most=min(figures, 3))

    def _followed(self, curves: Mapping[str, Curve | None], *, right: bool, bound: float | None) -> tuple[float, float]:
        """Ends of an axis that follows its curves and shows its limit."""
        sets = [curve.y for spec in self.spec.curves if spec.right is right and (curve := curves[spec.key]) is not None]
        values = np.concatenate(sets) if sets else np.empty(0)
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        if self.spec.key == "temperature":
            low, high = (
                min(low if values.size else _COOLEST_C, _COOLEST_C),
                max(high, (bound or 0.0) * _TEMPERATURE_TOP),
            )
            return 10.0 * math.floor(low / 10), max(100.0, 10.0 * math.ceil(high / 10))
        if self.spec.key == "power":
            low, high = 0.0, max(high, (bound or 0.0) * _POWER_TOP)
        if self.spec.key == "optimizer":
            low = min(low, 0.0)
        return self._limits[right].follow(low, high)

    # -- limits and figures at the right --------------------------------------------------------------------------

    def _marks(self, left: Axis, right: Axis, frame: Frame) -> tuple[tuple[Limit, ...], tuple[SideFigure, ...]]:
        theme, key = frame.theme, self.spec.key
        if key == "loss":
            shares = ((0.0, "0"), (0.5, "50"), (1.0, numbers.percent(100)))
            return (), tuple(SideFigure(share, text, "accuracy") for share, text in shares)
        if key == "optimizer":
            pairs = zip(right.ticks, right.labels, strict=True)
            return (), tuple(SideFigure(right.share(tick), label, "grad_norm") for tick, label in pairs)
        bound = self._bound(frame)
        if bound is None:
            return (), ()
        y = left.share(bound)
        if key == "vram":
            return (Limit(y, color(theme.text), dashed=False),), (SideFigure(y, f"{bound:.2f}", "text", strong=True),)
        return (Limit(y, color(theme.danger)),), (SideFigure(y, numbers.integer(bound), "danger"),)


def _percent_top(curves: Mapping[str, Curve | None]) -> float:
    """100, or the next ten where a card takes more than its limit for a moment."""
    tops = [float(np.nanmax(curve.y)) for curve in curves.values() if curve is not None and np.isfinite(curve.y).any()]
    highest = max(tops, default=0.0)
    return 100.0 if highest <= _OVER_LIMIT else 10.0 * math.ceil(highest / 10)
