"""What a driver says to the doctor, made by hand."""

from __future__ import annotations

from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.nvml_backend import NvmlProbe


def well(*cards: Card, **readings: float) -> NvmlProbe:
    """A driver with these cards, each with these readings."""
    found = {name: Reading(value) for name, value in readings.items()}
    return NvmlProbe(
        None,
        f"{len(cards)} cards",
        driver_version="570.86.10",
        cuda_driver_version="12.8",
        cards=cards,
        readings={card.uuid: found for card in cards},
    )


def ill(reason: Reason, advice: Advice, detail: str = "it does not work") -> NvmlProbe:
    return NvmlProbe(reason, detail, advice)
