"""The rows of the list: every field of one card with its value or its reason, read from the workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.telemetry import Card, MigInstance, Reading, Reason
from desktop_app.ui.gpu.field_groups import FACT, GROUPS, XID
from desktop_app.ui.texts import cards, field_help, gpu, numbers, reasons, xid

INSTANCE: Final = "mig:"
# Any of these above zero is bad news (value: how bad).
_BAD_ABOVE_ZERO: Final = {
    "ecc_uncorrected": "danger",
    "remapping_failed": "danger",
    "remapping_pending": "warn",
    "remapped_rows_uncorrected": "warn",
    "throttle_thermal_percent": "warn",
}
# Below what the card could do.
_BELOW: Final = {"pcie_width": "pcie_width_max"}
_XIDS_LISTED: Final = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One line. ``why``: the sentence that says why there is no value; ``tone``: ``warn`` or ``danger``.

    ``note``: what its value means, where that is more than a number.
    """

    key: str
    group: str
    name: str
    value: str
    why: str = ""
    tone: str = ""
    note: str = ""

    @property
    def there(self) -> bool:
        return not self.why

    @property
    def help(self) -> str:
        return "\n".join(part for part in (self.note, field_help.text(self.key.removeprefix(FACT))) if part)

    @property
    def has_history(self) -> bool:
        """Facts do not change, and what is pushed is in the lane of events."""
        return not self.key.startswith((FACT, INSTANCE)) and self.key != XID


@dataclass(frozen=True, slots=True)
class CardNews:
    """All that the rows of one card are made of."""

    card: Card
    readings: Mapping[str, Reading]
    instances: Mapping[str, Mapping[str, Reading]]  # by the UUID of the instance
    xids: Sequence[Event]  # oldest first
    wall_s: float = 0.0  # Unix time of session time 0


def rows_of(news: CardNews) -> tuple[Row, ...]:
    """All rows, in the order of the groups."""
    made = [_row(news, group.key, key) for group in GROUPS for key in group.keys]
    made += [_instance(news, instance) for instance in news.card.instances]
    return tuple(made)


def _row(news: CardNews, group: str, key: str) -> Row:
    if key == XID:
        return _xid(news, group)
    if key.startswith(FACT):
        name = key.removeprefix(FACT)
        why = cards.missing_reason(news.card, name)
        return Row(key, group, cards.fact_name(name), cards.fact_value(news.card, name), why)
    reading = news.readings.get(key)
    missing = reading is None or reading.value is None
    why = reasons.sentence(None if reading is None else reading.reason) if missing else ""
    return Row(key, group, cards.reading_name(key), cards.reading_value(key, reading), why, _tone(news, key))


def _tone(news: CardNews, key: str) -> str:
    reading = news.readings.get(key)
    if reading is None or reading.value is None:
        return ""
    if key == "throttle_reasons":
        return "warn" if round(reading.value) & cards.SLOWDOWN_BITS else ""
    most = getattr(news.card, _BELOW[key]) if key in _BELOW else None
    if most is not None and reading.value < most:
        return "warn"
    return _BAD_ABOVE_ZERO.get(key, "") if reading.value > 0 else ""


def _xid(news: CardNews, group: str) -> Row:
    seen: list[int] = []
    for event in reversed(news.xids):
        number = event.params.get("xid")
        if isinstance(number, int) and number not in seen:
            seen.append(number)
    newest = numbers.wall_time(news.wall_s + news.xids[-1].t_s) if news.xids else ""
    # "none" would be a false zero where nobody can hear of them
    deaf = Reason.SIMULATED if news.card.simulated else news.card.reasons.get("xid_events")
    if deaf is not None and not seen:
        return Row(XID, group, gpu.xid_name(), reasons.missing(deaf), reasons.sentence(deaf))
    bad = any(event.level is Level.ERROR for event in news.xids)
    tone = "danger" if bad else "warn" if seen else ""
    note = f"{xid.short(news.xids[-1].params)}\n{xid.explained(news.xids[-1].params)}" if news.xids else ""
    return Row(XID, group, gpu.xid_name(), gpu.xids(seen[:_XIDS_LISTED], newest), tone=tone, note=note)


def _instance(news: CardNews, instance: MigInstance) -> Row:
    key, name = INSTANCE + instance.uuid, gpu.instance_name(instance)
    reading = news.instances.get(instance.uuid, {}).get("memory_used_bytes", Reading(None, Reason.NOT_READ_YET))
    if reading.value is not None:
        return Row(key, "instances", name, gpu.used_of(reading.value, instance.total_bytes))
    text = gpu.unknown_of(reading.reason, instance.total_bytes)
    return Row(key, "instances", name, text, reasons.sentence(reading.reason))


def xid_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """Those that are errors which a driver pushed."""
    return tuple(event for event in events if event.kind is EventKind.XID)
