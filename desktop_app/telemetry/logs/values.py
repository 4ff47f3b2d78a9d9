"""Cells of logs: a number with its unit, or the reason why there is none. Nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.core.units import GIB, KIB, MIB, TIB
from desktop_app.telemetry.plausibility import IMPLAUSIBLE, Range, is_sentinel, judge


class Quantity(StrEnum):
    """What a number measures; says which units can stand behind it."""

    BYTES = "bytes"
    RATE = "bytes per second"
    PERCENT = "percent"
    RATIO = "ratio"
    POWER = "power"
    TEMPERATURE = "temperature"
    CLOCK = "clock"
    COUNT = "count"
    STATE = "performance state"
    FLAG = "yes or no"
    BITS = "bits"


# MiB is what nvidia-smi prints since driver 331; where a log writes MB it is taken at its word: 10^6 (cases NV-51).
_UNITS: Final[Mapping[Quantity, Mapping[str, float]]] = {
    Quantity.BYTES: {
        "b": 1,
        "bytes": 1,
        "kib": KIB,
        "mib": MIB,
        "gib": GIB,
        "tib": TIB,
        "kb": 1e3,
        "mb": 1e6,
        "gb": 1e9,
    },
    Quantity.RATE: {"b/s": 1, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9, "kib/s": KIB, "mib/s": MIB, "gib/s": GIB},
    Quantity.PERCENT: {"%": 1, "pct": 1},
    Quantity.RATIO: {"": 100},
    Quantity.POWER: {"w": 1, "mw": 1e-3, "kw": 1e3},
    Quantity.TEMPERATURE: {"c": 1, "°c": 1},
    Quantity.CLOCK: {"mhz": 1, "hz": 1e-6, "khz": 1e-3, "ghz": 1e3},
    Quantity.COUNT: {"": 1, "x": 1},
    Quantity.STATE: {"": 1},
    Quantity.FLAG: {"": 1},
    Quantity.BITS: {"": 1},
}
_MISSING: Final[Mapping[str, Reason]] = {
    "": Reason.NOT_READ_YET,
    "-": Reason.NOT_SUPPORTED,
    "n/a": Reason.NOT_SUPPORTED,
    "not supported": Reason.NOT_SUPPORTED,
    "not available": Reason.NOT_SUPPORTED,
    "none": Reason.NOT_SUPPORTED,
    "requested functionality has been deprecated": Reason.NOT_SUPPORTED,
    "not available in wddm driver model": Reason.WDDM,
    "unknown error": Reason.UNKNOWN_ERROR,
    "err!": Reason.UNKNOWN_ERROR,
    "error": Reason.UNKNOWN_ERROR,
    "???": Reason.UNKNOWN_ERROR,
    "gpu requires reset": Reason.UNKNOWN_ERROR,
    "reset required": Reason.UNKNOWN_ERROR,
    "not found": Reason.UNKNOWN_ERROR,
    "nan": Reason.UNKNOWN_ERROR,
    "gpu is lost": Reason.GPU_LOST,
    "gpu lost": Reason.GPU_LOST,
    "insufficient permissions": Reason.NO_PERMISSION,
    "timeout": Reason.TIMED_OUT,
    "timed out": Reason.TIMED_OUT,
    "driver/library version mismatch": Reason.DRIVER_MISMATCH,
    "driver not loaded": Reason.NO_DRIVER,
}
# Bounded on purpose: no number of a card needs more digits than 2^64 with a fraction.
_NUMBER: Final = re.compile(
    r"([-+]?[0-9]{1,24}(?:\.[0-9]{1,24})?(?:[eE][-+]?[0-9]{1,3})?) ?([^\s0-9.,;][^\s]{0,11})?", re.ASCII
)
_COMMA_NUMBER: Final = re.compile(r"([-+]?[0-9]{1,15}),([0-9]{1,2}|[0-9]{4,6})(?![0-9,.])(.*)", re.ASCII | re.DOTALL)
_FLAGS: Final = {"no": 0.0, "yes": 1.0}
_HEXADECIMAL: Final = re.compile(r"0[xX]([0-9A-Fa-f]{1,16})", re.ASCII)
_STATE: Final = re.compile(r"[Pp]([0-9]{1,2})", re.ASCII)
_BUS_ID: Final = re.compile(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])", re.ASCII)
_UUID: Final = re.compile(
    r"(GPU-|MIG-)?([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How a number of a log becomes a field of ours. ``unit``: what the tool means where it prints none."""

    field: str
    quantity: Quantity
    allowed: Range
    unit: str = ""
    fact: bool = False


def reason_of(text: str) -> Reason | None:
    """Why a cell has no value, as the tools say it: ``[N/A]``, ``ERR!``, ``GPU is lost``; ``None`` for other texts."""
    return _MISSING.get(text.strip().strip("[]").strip().lower())


def measure(text: str, rule: Rule, *, unit: str | None = None, decimal_comma: bool = False) -> Reading | None:
    """A cell in our unit, or its reason. ``unit``: of the header. ``None``: the text is not understood."""
    text = text.strip()
    reason = reason_of(text)
    if reason is not None:
        return Reading(None, reason)
    if rule.quantity is Quantity.STATE:
        state = _STATE.fullmatch(text)
        if state is not None:
            return judge(float(state[1]), rule.allowed)
    if rule.quantity is Quantity.FLAG and text.lower() in _FLAGS:
        return judge(_FLAGS[text.lower()], rule.allowed)
    if rule.quantity is Quantity.BITS:
        bits = _HEXADECIMAL.fullmatch(text)
        if bits is not None:
            return judge(int(bits[1], 16), rule.allowed)
    if decimal_comma:
        text = _COMMA_NUMBER.sub(r"\1.\2\3", text, count=1)
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    scale = _UNITS[rule.quantity].get((found[2] or unit or rule.unit).lower())
    if scale is None:
        return None
    number = float(found[1])
    if is_sentinel(number):
        return IMPLAUSIBLE
    # Divided, not multiplied by a fraction that floats do not have: 7.65e8 Hz are 765 MHz. A ratio has 12 digits.
    scaled = number * scale if scale >= 1 else number / round(1 / scale)
    return judge(round(scaled, 12) if rule.quantity is Quantity.RATIO else scaled, rule.allowed)


def whole(text: str) -> int | None:
    """A plain number without sign, such as an index or a pid."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None


def bus_id_of(text: str) -> str | None:
    """A PCI address as NVML writes it, from any of the usual ways."""
    found = _BUS_ID.fullmatch(text.strip())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{(domain or '0').rjust(8, '0')}:{bus}:{device}.{function}".upper()


def uuid_of(text: str) -> str | None:
    """A UUID with its prefix; ``None`` for other texts and for one of zeros, which only says that it was hidden."""
    found = _UUID.fullmatch(text.strip())
    if found is None or not found[2].strip("0-"):
        return None
    return (found[1] or "GPU-") + found[2]
