"""What the head of each panel says now: names, values, and the reason where there is no value."""

from __future__ import annotations

from collections.abc import Mapping

from desktop_app.core.steps import RunState
from desktop_app.core.store import History
from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.core.units import GIB
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.head_item import Head, Key
from desktop_app.ui.charts.load import Load, power_limit_w
from desktop_app.ui.charts.scales import scientific
from desktop_app.ui.charts.throttling import THRESHOLD_PERCENT
from desktop_app.ui.texts import numbers, reasons

_J_PER_KWH = 3.6e6


class Heads:
    """Makes the heads from one reading of the workspace."""

    def __init__(
        self,
        *,
        histories: Mapping[str, History],
        card: Card | None,
        readings: Mapping[str, Reading],
        lost: Reason | None,
        now_s: float,
        run: RunState,
        load: Load = Load.UTILIZATION,
    ) -> None:
        self._histories = histories
        self._card = card
        self._readings = readings
        self._lost = lost
        self._now_s = now_s
        self._run = run
        self._load = load

    def head(self, key: str) -> Head:
        """The head of panel ``key``."""
        title, chooses = texts.title(key), key == "utilization"
        if chooses:
            title = texts.load(self._load)
        if key in {"loss", "optimizer"}:
            empty = not self._version("steps")
            keys = self._loss() if key == "loss" else self._optimizer()
            return Head(title, () if empty else keys, self._no_steps() if empty else "")
        if self._card is None:
            hint = texts.no_card() if self._lost is None else reasons.short(self._lost)
            return Head(title, (), hint)
        if self._lost is not None:
            return Head(title, (Key(reasons.short(self._lost), "danger", loud=True, dash=False),), menu=chooses)
        makers = {
            "vram": self._vram,
            "utilization": self._utilization,
            "temperature": self._temperature,
            "power": self._power,
        }
        hint = "" if self._version("card") else texts.no_data()
        return Head(title, makers[key](), hint, menu=chooses)

    def _no_steps(self) -> str:
        if self._run is RunState.IDLE:
            return texts.no_run()
        return texts.preparing() if self._run.active else texts.no_step()

    def _version(self, history: str) -> int:
        return self._histories[history].version if history in self._histories else 0

    def _latest(self, history: str, column: str) -> float | None:
        if not self._version(history):
            return None
        return self._histories[history].value_at(column, self._now_s)

    def _loss(self) -> tuple[Key, ...]:
        keys = []
        loss, validation = self._latest("steps", "loss"), self._latest("validation", "loss")
        accuracy = self._latest("validation", "accuracy")
        if loss is not None:
            keys.append(Key(texts.train(numbers.decimal(loss, 3)), "loss"))
        if validation is not None:
            keys.append(Key(texts.validation(numbers.decimal(validation, 3)), "validation"))
        if accuracy is not None:
            keys.append(Key(texts.accuracy(numbers.percent(100 * accuracy, 1)), "accuracy"))
        return tuple(keys)

    def _optimizer(self) -> tuple[Key, ...]:
        keys = []
        rate, norm = self._latest("steps", "learning_rate"), self._latest("steps", "grad_norm")
        if rate is not None:
            keys.append(Key(texts.learning_rate(scientific(rate)), "learning_rate"))
        if norm is not None:
            keys.append(Key(texts.grad_norm(numbers.decimal(norm, 2)), "grad_norm"))
        return tuple(keys)

    def _reading(self, name: str) -> Reading:
        return self._readings.get(name, Reading(None, Reason.NOT_READ_YET))

    def _vram(self) -> tuple[Key, ...]:
        keys = []
        used, live = self._reading("memory_used_bytes"), self._latest("steps", "live_peak_bytes")
        if used.value is None:
            keys.append(Key(texts.device(reasons.missing(used.reason)), "device"))
        else:
            keys.append(Key(texts.device(numbers.with_unit(used.value / GIB, "GiB", 2)), "device"))
        if live is not None and self._run.active:  # what a run that is over held is no longer there
            keys.append(Key(texts.live(numbers.decimal(live / GIB, 2)), "live"))
        capacity = self._card.capacity_bytes if self._card else None
        if capacity is not None:
            keys.append(Key(texts.capacity(numbers.decimal(capacity / GIB, 2)), "text"))
        return tuple(keys)

    def _value(self, name: str, token: str, unit: str) -> Key:
        reading = self._reading(name)
        if reading.value is None:
            return Key(reasons.missing(reading.reason), dash=False)
        return Key(numbers.with_unit(reading.value, unit), token)

    def _utilization(self) -> tuple[Key, ...]:
        if self._load is Load.UTILIZATION:
            return (self._value("utilization_percent", "utilization", "%"),)
        if self._load is Load.SM_ACTIVITY:
            sm, tensor = self._reading("sm_activity_percent"), self._reading("tensor_activity_percent")
            return tuple(
                Key(
                    words(reasons.missing(reading.reason) if reading.value is None else numbers.percent(reading.value)),
                    token,
                )
                for reading, words, token in ((sm, texts.sm, "utilization"), (tensor, texts.tensor, "accent"))
                if reading.value is not None or reading is sm
            )
        power, limit = self._reading("power_w"), power_limit_w(self._card, self._readings)
        if power.value is None or not limit:
            return (Key(reasons.missing(power.reason), dash=False),)
        share = numbers.percent(100 * power.value / limit)
        return (Key(texts.share_of(share, numbers.with_unit(limit, "W")), "power"),)

    def _slowed(self, name: str) -> tuple[Key, ...]:
        """While the card is held back."""
        share = self._reading(name).value
        if share is None or share < THRESHOLD_PERCENT:
            return ()
        return (Key(texts.slowed_now(numbers.percent(share)), "warn", loud=True, dash=False),)

    def _temperature(self) -> tuple[Key, ...]:
        value = self._value("temperature_c", "temperature", "°C")
        slowdown = self._card.temperature_slowdown_c if self._card else None
        limit = () if slowdown is None else (Key(texts.slows_at(numbers.integer(slowdown)), "danger"),)
        return (value, *limit, *self._slowed("throttle_thermal_percent"))

    def _power(self) -> tuple[Key, ...]:
        keys = [self._value("power_w", "power", "W")]
        limit = power_limit_w(self._card, self._readings)
        if limit is not None:
            keys.append(Key(texts.limit(numbers.integer(limit)), "danger"))
        energy = self._reading("energy_j").value
        if energy is not None:
            keys.append(Key(numbers.with_unit(energy / _J_PER_KWH, "kWh", 3), dash=False))
        return tuple(keys)
