"""What few look at all day: the ``DETAIL_FIELDS`` of one card, once a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.counters import BusyShare, ByteRate
from desktop_app.telemetry.nvml import ALL_LINKS, Answer, NvmlDoor, scoped
from desktop_app.telemetry.nvml_gpm import GpmReader
from desktop_app.telemetry.plausibility import (
    CLOCK_MHZ,
    COUNT,
    MARGIN_C,
    NVLINK_BYTES_PER_S,
    PAGES,
    PERCENT,
    POWER_W,
    REASON_BITS,
    SESSIONS,
    YES_OR_NO,
    Range,
    is_pid,
)

# nvmlClockType_t
_CLOCK_GRAPHICS: Final = 0
_CLOCK_VIDEO: Final = 3
# Field ids of nvml.h
_SHARES: Final = {
    "throttle_sync_boost_percent": 76,
    "throttle_board_limit_percent": 77,
    "throttle_low_utilization_percent": 78,
    "throttle_reliability_percent": 79,
}
_COUNTS: Final[Mapping[str, tuple[int, Range]]] = {
    "ecc_corrected": (3, COUNT),
    "ecc_corrected_total": (5, COUNT),
    "ecc_uncorrected_total": (6, COUNT),
    "pcie_replays": (94, COUNT),
    "remapped_rows_corrected": (142, PAGES),
    "remapped_rows_uncorrected": (143, PAGES),
    "remapping_pending": (144, YES_OR_NO),
    "remapping_failed": (145, YES_OR_NO),
}
_RETIRED_PAGES: Final = (29, 30)  # because of single-bit and of double-bit errors
_NVLINK_COUNT: Final = 91  # links that the card has
_MODULE_POWER: Final = scoped(186, 1)  # power of the moment in the scope of the module (NVML_POWER_SCOPE_MODULE)
# Payload in KiB (138, 139); NVLink 5 counts bytes instead (202, 204). Without a scope it would be that of link 0 alone.
_NVLINK_BYTES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "nvlink_rx_bytes_per_s": ((scoped(139, ALL_LINKS), 1024), (scoped(204, ALL_LINKS), 1)),
    "nvlink_tx_bytes_per_s": ((scoped(138, ALL_LINKS), 1024), (scoped(202, ALL_LINKS), 1)),
}
_MOST_LINKS: Final = 36  # NVML_NVLINK_MAX_LINKS
_MILLI: Final = 1e-3
DETAIL_IDS: Final = (
    *_SHARES.values(),
    *(field_id for field_id, _ in _COUNTS.values()),
    *_RETIRED_PAGES,
    _NVLINK_COUNT,
    _MODULE_POWER,
    *(field_id for ways in _NVLINK_BYTES.values() for field_id, _ in ways),
)


class NvmlDetails:
    """Reads one card's details through the door. Runs in: one thread at a time."""

    def __init__(self, door: NvmlDoor, handle: Any, *, owner: str) -> None:
        self._door = door
        self._handle = handle
        self._owner = owner
        self._gpm = GpmReader(door, handle, owner=owner)
        self._shares = {field: BusyShare() for field in _SHARES}
        self._rates = {
            field_id: ByteRate(unit_bytes=unit, most_per_s=NVLINK_BYTES_PER_S)
            for ways in _NVLINK_BYTES.values()
            for field_id, unit in ways
        }

    def read(self, t_s: float, fields: Mapping[int, Answer]) -> dict[str, Reading]:
        """All of ``DETAIL_FIELDS``. ``fields``: answers for ``DETAIL_IDS``; ``t_s``: session time, for rates."""
        readings = self._gpm.read()
        readings["graphics_clock_mhz"] = self._query("nvmlDeviceGetClockInfo", _CLOCK_GRAPHICS).judged(CLOCK_MHZ)
        readings["video_clock_mhz"] = self._query("nvmlDeviceGetClockInfo", _CLOCK_VIDEO).judged(CLOCK_MHZ)
        readings["throttle_reasons"] = self._throttle_reasons()
        readings["temperature_margin_c"] = self._query("nvmlDeviceGetMarginTemperature").judged(MARGIN_C)
        readings["power_module_w"] = fields[_MODULE_POWER].judged(POWER_W, scale=_MILLI)
        readings["jpeg_percent"] = self._query("nvmlDeviceGetJpgUtilization").item(0).judged(PERCENT)
        readings["optical_flow_percent"] = self._query("nvmlDeviceGetOfaUtilization").item(0).judged(PERCENT)
        readings["encoder_sessions"] = self._query("nvmlDeviceGetEncoderStats").item(0).judged(SESSIONS)
        for field, (field_id, allowed) in _COUNTS.items():
            readings[field] = fields[field_id].judged(allowed)
        for field, share in self._shares.items():
            readings[field] = _share(share, t_s, fields[_SHARES[field]])
        readings["retired_pages"] = _sum([fields[field_id].judged(PAGES) for field_id in _RETIRED_PAGES])
        readings["mps_clients"] = self._mps_clients()
        return readings | self._links(t_s, fields)

    def close(self) -> None:
        """Give back what the driver holds for this card."""
        self._gpm.close()

    def _query(self, call: str, *arguments: int) -> Answer:
        return self._door.query(call, self._handle, *arguments, owner=self._owner)

    def _throttle_reasons(self) -> Reading:
        answer = self._query("nvmlDeviceGetCurrentClocksEventReasons")
        if answer.reason is Reason.NOT_SUPPORTED:  # its name before driver 535
            answer = self._query("nvmlDeviceGetCurrentClocksThrottleReasons")
        return answer.judged(REASON_BITS)

    def _mps_clients(self) -> Reading:
        answer = self._query("nvmlDeviceGetMPSComputeRunningProcesses")
        if answer.reason is not None:
            return Reading(None, answer.reason)
        return Reading(float(len({entry.pid for entry in answer.value if is_pid(entry.pid)})))

    def _links(self, t_s: float, fields: Mapping[int, Answer]) -> dict[str, Reading]:
        """NVLink: bytes of all links together, and how many are up. A card without links has neither."""
        count = fields[_NVLINK_COUNT].judged(COUNT)
        if count.value == 0:
            count = Reading(None, Reason.NOT_SUPPORTED)
        readings = {"nvlinks_active": self._active_links(count)}
        for field, ways in _NVLINK_BYTES.items():
            found = [self._rate(t_s, field_id, fields[field_id], count) for field_id, _ in ways]
            supported = (reading for reading in found if reading.reason is not Reason.NOT_SUPPORTED)
            readings[field] = next(supported, found[0])
        return readings

    def _rate(self, t_s: float, field_id: int, answer: Answer, links: Reading) -> Reading:
        rate = self._rates[field_id]
        # a counter of links that are not there counts nothing
        reason = answer.reason or (links.reason if links.reason is Reason.NOT_SUPPORTED else None)
        if reason is not None:
            rate.forget()
            return Reading(None, reason)
        return rate.judge(t_s, answer.value, bits=answer.bits)

    def _active_links(self, count: Reading) -> Reading:
        if count.value is None:
            return count
        states = [
            self._query("nvmlDeviceGetNvLinkState", link).judged(YES_OR_NO)
            for link in range(min(int(count.value), _MOST_LINKS))
        ]
        return _sum(states)


def _share(share: BusyShare, t_s: float, count_ns: Answer) -> Reading:
    if count_ns.reason is not None:
        share.forget()
        return Reading(None, count_ns.reason)
    return share.judge(t_s, count_ns.value)


def _sum(readings: list[Reading]) -> Reading:
    """The sum, or the first reason why a part is not known."""
    total = 0.0
    for reading in readings:
        if reading.value is None:
            return reading
        total += reading.value
    return Reading(total)
