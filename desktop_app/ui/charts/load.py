"""What the panel of utilisation shows: utilisation, the activity of the SMs, or power against its limit."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from desktop_app.core.telemetry import Card, Reading, Reason


class Load(StrEnum):
    """How busy the card is, by three measures."""

    UTILIZATION = "utilization"
    SM_ACTIVITY = "sm_activity"
    POWER = "power_share"


# With one of these a field will not come by itself, and the panel shows what there is; a lost card keeps the choice.
_FOR_GOOD: Final = frozenset(
    {
        Reason.NOT_SUPPORTED,
        Reason.NO_PERMISSION,
        Reason.MIG,
        Reason.WDDM,
        Reason.UNIFIED_MEMORY,
        Reason.SIMULATED,
    }
)
_FIELDS: Final = {Load.SM_ACTIVITY: "sm_activity_percent", Load.POWER: "power_w"}


def power_limit_w(card: Card | None, readings: Mapping[str, Reading]) -> float | None:
    """What the card may take now; what it was made for where the present limit is not known."""
    reading = readings.get("power_limit_w")
    if reading is not None and reading.value is not None:
        return reading.value
    return None if card is None else card.power_limit_w


def why_not(load: Load, card: Card | None, readings: Mapping[str, Reading]) -> Reason | None:
    """Why ``load`` cannot be shown of this card; ``None`` when it can, or may be once there is a reading."""
    field = _FIELDS.get(load)
    if field is None or card is None:
        return None
    reading = readings.get(field)
    if reading is not None and reading.value is None and reading.reason in _FOR_GOOD:
        return reading.reason
    if load is Load.SM_ACTIVITY and (reading is None or (reading.value is None and reading.reason is None)):
        return Reason.NOT_READ_YET
    if load is Load.POWER and power_limit_w(card, readings) is None:
        return Reason.NOT_SUPPORTED
    return None


def shown(wanted: Load, card: Card | None, readings: Mapping[str, Reading]) -> Load:
    """``wanted``, or the utilisation where this card does not have it."""
    return wanted if why_not(wanted, card, readings) is None else Load.UTILIZATION
