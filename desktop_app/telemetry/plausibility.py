"""Values that cannot be true are not available. Pure rules, one place (facts of the driver, not of a card)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.core.telemetry import Reading, Reason

# "Not available" as the driver writes it: all ones or the sign bit alone in 64 bits, or a little off; all ones in 32
# bits (other powers of two in 32 bits are sizes that memory really has).
_SENTINEL_SLACK: Final = 2**20
_SENTINELS_64: Final = (2**63, 2**64)
_SENTINEL_32: Final = 2**32 - 1

_CLOCKS_APART_S: Final = 3600.0
_new: Final = tuple.__new__  # a third of the time that the class itself takes, and there are a hundred in a tick

IMPLAUSIBLE: Final = Reading(None, Reason.IMPLAUSIBLE)


@dataclass(frozen=True, slots=True)
class Range:
    """What a field can be, after scaling. ``zero``: whether 0 is a value or the driver's way of having none."""

    low: float
    high: float
    zero: bool = True


PERCENT: Final = Range(0, 100)
# "may exceed 100 % in certain cases" (nvmlDeviceGetFanSpeed)
FAN_PERCENT: Final = Range(0, 200)
# Shutdown comes near 105 °C on every card of the captures; 0 is how boards without the sensor answer.
TEMPERATURE_C: Final = Range(-40, 150, zero=False)
# A running card never draws nothing; 3 kW is above any board sold (GB300: 1.4 kW).
POWER_W: Final = Range(0, 3000, zero=False)
CLOCK_MHZ: Final = Range(0, 20_000, zero=False)
PERFORMANCE_STATE: Final = Range(0, 15)  # 32 is "unknown"
COUNT: Final = Range(0, 2**48)  # of things that happen, a billion a second for three days; not of bytes, ns, energy
SESSIONS: Final = Range(0, 4096)  # of an encoder
PAGES: Final = Range(0, 2**20)  # that a card takes out of use: NVIDIA's keep 64 pages, 512 rows
INSTANCE: Final = Range(0, 255)  # numbers of MIG instances: up to 14 so far
XID: Final = Range(1, 2**16 - 1)  # about two hundred are named
# Links one way: PCIe 7.0 with 16 lanes has 242 GB/s, NVLink of a card 0.9 TB/s (Blackwell).
PCIE_BYTES_PER_S: Final = 300e9
NVLINK_BYTES_PER_S: Final = 10e12
BYTES: Final = Range(0, 2**48)
MEMORY_TOTAL: Final = Range(1, 2**44, zero=False)  # 16 TiB; a card of today has 288 GB
SM_COUNT: Final = Range(1, 2**12, zero=False)
ENERGY_MJ: Final = Range(0, 2**62)
YES_OR_NO: Final = Range(0, 1)
# Degrees to a limit; 0 is at it, below 0 past it.
MARGIN_C: Final = Range(-100, 150)
REASON_BITS: Final = Range(0, 2**32 - 1)  # nine are named in nvml.h
BUS_BITS: Final = Range(1, 2**16, zero=False)
NUMA_NODE: Final = Range(0, 4096)
PCIE_GENERATION: Final = Range(0, 16, zero=False)
PCIE_WIDTH: Final = Range(0, 64, zero=False)


def is_sentinel(value: float) -> bool:
    """Whether the driver wrote "not available" as a number."""
    return value == _SENTINEL_32 or any(abs(value - sentinel) <= _SENTINEL_SLACK for sentinel in _SENTINELS_64)


def is_pid(number: int) -> bool:
    """Whether a process can have this number. Linux gives up to 2**22; Windows multiples of four in 32 bits."""
    return 0 < number < (2**23 if sys.platform == "linux" else _SENTINEL_32)


def is_moment(time_us: int, *, wall_s: float) -> bool:
    """Whether a sample of the driver can be of this time (microseconds of its clock): no later than in an hour."""
    return 0 < time_us <= (wall_s + _CLOCKS_APART_S) * 1e6


def is_running_total(raw: float) -> bool:
    """Whether what the driver adds up (bytes, nanoseconds) can be true: any number but "not available". A sound one has
    no end: 2**48 ns are three days of a capped card, 2**48 bytes five minutes of NVLink. What it moves by in an
    interval is judged by who makes a rate of it."""
    return (
        0 <= raw < _SENTINELS_64[0] - _SENTINEL_SLACK
        or _SENTINELS_64[0] + _SENTINEL_SLACK < raw < _SENTINELS_64[1] - _SENTINEL_SLACK
    ) and raw != _SENTINEL_32


def judge(raw: float, allowed: Range, *, scale: float = 1.0) -> Reading:
    """``raw × scale`` as a reading, or the reason why it cannot be one."""
    value = raw * scale
    if 0 < raw < _SENTINEL_32 and allowed.low <= value <= allowed.high:  # nearly always
        return _new(Reading, (value, None))
    if (raw == 0 and not allowed.zero) or is_sentinel(raw):
        return IMPLAUSIBLE
    return Reading(value) if allowed.low <= value <= allowed.high else IMPLAUSIBLE


def judge_used_memory(total_bytes: int, used_bytes: int, *, most_bytes: int | None = None) -> Reading:
    """Used memory, unless it is more than there is or there is none. ``most_bytes``: what the card is known to have."""
    if not 0 < total_bytes <= MEMORY_TOTAL.high or _SENTINEL_32 in (total_bytes, used_bytes):
        return IMPLAUSIBLE
    if most_bytes is not None and used_bytes > most_bytes:
        return IMPLAUSIBLE
    return _new(Reading, (float(used_bytes), None)) if 0 <= used_bytes <= total_bytes else IMPLAUSIBLE


def without_all_zeros(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Success with nothing but zeros is a driver without sensors (Jetson): then no zero counts."""
    values = [reading.value for reading in readings.values() if reading.value is not None]
    if not values or any(values):
        return dict(readings)
    return {field: reading if reading.value is None else IMPLAUSIBLE for field, reading in readings.items()}
