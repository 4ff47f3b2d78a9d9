"""What the charts read from the workspace: histories by short name, the card, the forecast, values at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from desktop_app.core.events import Event
from desktop_app.core.forecasts import Forecast
from desktop_app.core.store import History
from desktop_app.core.telemetry import Card, Reading
from desktop_app.core.units import GIB
from desktop_app.services.facade import Workspace
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.cursor import ReadOut
from desktop_app.ui.charts.heads import Heads
from desktop_app.ui.charts.load import Load, shown
from desktop_app.ui.charts.shades import Band
from desktop_app.ui.charts.shading import bands_in, said_of
from desktop_app.ui.charts.smoothing import SmoothedLoss
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.charts.time_axis import View
from desktop_app.ui.charts.tracks import Frame
from desktop_app.ui.tank_reader import lost_reason, selected_card
from desktop_app.ui.texts import numbers
from desktop_app.ui.texts.outlooks import BESIDE_THE_CARD
from desktop_app.ui.theme import Theme

# The read-out's lines: (name, history, column, colour).
_READ_OUT = (
    ("loss", "steps", "loss", "loss"),
    ("validation", "validation", "loss", "validation"),
    ("accuracy", "validation", "accuracy", "accuracy"),
    ("grad_norm", "steps", "grad_norm", "grad_norm"),
    ("device", "card", "memory_used_bytes", "device"),
    ("utilization", "card", "utilization_percent", "utilization"),
    ("temperature", "card", "temperature_c", "temperature"),
    ("power", "card", "power_w", "power"),
)
_OPTIMIZER_ROWS = frozenset({"grad_norm"})
_ACTIVITY_ROWS = (
    ("sm_activity", "details", "sm_activity_percent", "utilization"),
    ("tensor_activity", "details", "tensor_activity_percent", "accent"),
)


class Source:
    """Reads; changes nothing. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._smoothed: SmoothedLoss | None = None
        self._seen_events = 0

    @property
    def now_s(self) -> float:
        return self._workspace.clock.now_s()

    def wall_s(self, t_s: float) -> float:
        return self._workspace.clock.wall_s(t_s)

    def histories(self) -> Mapping[str, History]:
        """By the names that ``tracks`` uses; one that is not declared yet is left out."""
        store = self._workspace.store
        names = store.names()
        found: dict[str, History] = {name: store.history(name) for name in ("steps", "validation") if name in names}
        card = self.card()
        for name, prefix in (("card", "gpu"), ("details", "details")):
            if card is not None and f"{prefix}:{card.uuid}" in names:
                found[name] = store.history(f"{prefix}:{card.uuid}")
        if "steps" in found:
            if self._smoothed is None:
                self._smoothed = SmoothedLoss(found["steps"])
            self._smoothed.follow()
            found["smooth"] = self._smoothed.history
        return found

    def card(self) -> Card | None:
        return selected_card(self._workspace)

    def _readings(self, card: Card | None) -> Mapping[str, Reading]:
        return self._workspace.readings.get().get(card.uuid, {}) if card else {}

    def forecast(self) -> Forecast | None:
        """The newest forecast of a run that still lives."""
        return self._workspace.forecast.get() if self._workspace.run.get().state.active else None

    def new_events(self) -> tuple[Event, ...]:
        """Events since the last call."""
        if self._workspace.events.seq == self._seen_events:
            return ()
        events, self._seen_events = self._workspace.events.since(self._seen_events)
        return events

    @property
    def forecast_s(self) -> float | None:
        """Seconds from now to the late end of the forecast's interval; ``None`` when nothing is forecast."""
        forecast = self.forecast()
        if forecast is None or forecast.eta_s is None or forecast.cause in BESIDE_THE_CARD:
            return None
        late_s = forecast.eta_s if forecast.eta_high_s is None else forecast.eta_high_s
        return max(0.0, forecast.t_s + late_s - self.now_s)

    def load(self, wanted: Load) -> Load:
        """What the panel of utilisation shows of this card: ``wanted``, where the card has it."""
        card = self.card()
        return shown(wanted, card, self._readings(card))

    def bands(self, view: View, causes: frozenset[Throttle], *, pixels: float) -> tuple[Band, ...]:
        """The time in view in which one of ``causes`` held the card back. ``pixels``: width of the view."""
        history = self.histories().get("card") if causes else None
        return bands_in(history, view, causes, now_s=self.now_s, pixels=pixels)

    def frame(self, view: View, *, theme: Theme, load: Load = Load.UTILIZATION) -> Frame:
        card = self.card()
        return Frame(
            view=view,
            now_x=self.now_s - view.anchor_s,
            theme=theme,
            histories=self.histories(),
            card=card,
            readings=self._readings(card),
            running=self._workspace.run.get().state.active,
            load=load,
        )

    def heads(self, load: Load = Load.UTILIZATION) -> Heads:
        card = self.card()
        return Heads(
            load=load,
            histories=self.histories(),
            card=card,
            readings=self._readings(card),
            lost=lost_reason(self._workspace, card),
            now_s=self.now_s,
            run=self._workspace.run.get().state,
        )

    # -- values at one moment -------------------------------------------------------------------------------------

    def read_out(
        self,
        t_s: float,
        *,
        hidden: tuple[str, ...],
        load: Load = Load.UTILIZATION,
        throttles: frozenset[Throttle] = frozenset(),
    ) -> ReadOut:
        """What was measured at session time ``t_s``: the newest value at or before it, nothing in a gap.

        ``throttles``: what is shaded there.
        """
        histories = self.histories()
        rows = []
        for key, history, column, token in _READ_OUT:
            if key in _OPTIMIZER_ROWS and "optimizer" in hidden:
                continue
            if key == "utilization" and load is Load.SM_ACTIVITY:
                for other, source, field, tint in _ACTIVITY_ROWS:
                    share = histories[source].value_at(field, t_s) if source in histories else None
                    if share is not None:
                        rows.append((texts.readout(other), numbers.percent(share), tint))
            value = histories[history].value_at(column, t_s) if history in histories else None
            if value is not None:
                rows.append((texts.readout(key), _written(key, value), token))
        rows += said_of(throttles, histories.get("card"), t_s)
        step = histories["steps"].value_at("step", t_s) if "steps" in histories else None
        right = "" if step is None else texts.step(step)
        return ReadOut(numbers.wall_time(self.wall_s(t_s)), right, tuple(rows))


def _written(key: str, value: float) -> str:
    if key in {"loss", "validation"}:
        return numbers.decimal(value, 3)
    if key == "accuracy":
        return numbers.percent(100 * value, 1)
    if key == "grad_norm":
        return numbers.decimal(value, 2)
    if key == "device":
        return numbers.with_unit(value / GIB, "GiB", 2)
    units = {"utilization": "%", "temperature": "°C", "power": "W"}
    return numbers.with_unit(value, units[key])
