"""What the driver has recorded itself while nobody could ask: power, loads and clocks from its own buffers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from desktop_app.core.telemetry import GpuSample, Reading
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.plausibility import CLOCK_MHZ, PERCENT, POWER_W, Range, judge

# Members of nvmlValue_t by nvmlValueType_t.
_MEMBERS: Final = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
# Samples of several kinds this close are one row: half of the driver's sixth of a second.
_TOGETHER_S: Final = 0.08
# The driver stamps with the computer's wall clock. A newest sample older than this, or of the future, says that it does
# not, that the clock was set meanwhile, or that the buffer stood still: then nobody knows when its samples were.
_OLDEST_S: Final = 2.0
_FUTURE_S: Final = 0.5


class _Kind(NamedTuple):
    """A buffer (nvmlSamplingType_t) and what its values can be."""

    field: str
    number: int
    allowed: Range
    scale: float = 1.0


_KINDS: Final = (
    _Kind("power_w", 0, POWER_W, 1e-3),
    _Kind("utilization_percent", 1, PERCENT),
    _Kind("memory_utilization_percent", 2, PERCENT),
    _Kind("sm_clock_mhz", 5, CLOCK_MHZ),
    _Kind("memory_clock_mhz", 6, CLOCK_MHZ),
)


def read_back(
    door: NvmlDoor, handle: Any, uuid: str, *, since_s: float, now_s: float, wall_s: float, fields: Collection[str]
) -> tuple[GpuSample, ...]:
    """Samples of ``fields`` between two session times, oldest first; each holds only what was sampled then.

    ``wall_s``: Unix time at ``now_s``. Empty where the driver has no buffer, or none whose times can be trusted.
    """
    since_us = int(1e6 * (wall_s - (now_s - since_s)))
    found: list[tuple[int, _Kind, float]] = []
    for kind in _KINDS:
        if kind.field not in fields:
            continue
        answer = door.samples(handle, kind.number, since_us=since_us, owner=uuid)
        if answer.reason is None and answer.value:
            member = _MEMBERS.get(answer.value[0], "")
            found += [(int(s.timeStamp), kind, getattr(s.sampleValue, member)) for s in answer.value[1] if member]
    newest_s = max((time_us for time_us, _, _ in found), default=0) * 1e-6
    if not found or not -_FUTURE_S <= wall_s - newest_s <= _OLDEST_S:
        return ()
    rows: list[tuple[float, dict[str, Reading]]] = []
    for time_us, kind, raw in sorted(found, key=lambda each: each[0]):
        t_s, reading = now_s - (wall_s - time_us * 1e-6), judge(raw, kind.allowed, scale=kind.scale)
        if reading.value is None or not since_s < t_s < now_s:
            continue
        if not rows or t_s - rows[-1][0] > _TOGETHER_S or kind.field in rows[-1][1]:
            rows.append((t_s, {}))
        rows[-1][1][kind.field] = reading
    return tuple(GpuSample(t_s=t_s, uuid=uuid, readings=readings, late=True) for t_s, readings in rows)
