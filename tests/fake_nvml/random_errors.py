"""Run in a process of its own, with a fake driver library in reach: random errors into random fields, tick by tick.

``argv``: seed, ticks. Every value that comes out must be one that the driver gave in that tick, or what its counters
give by plain arithmetic. Prints how many values were seen of each field, and the first few that nobody gave.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import Card, Reading
from desktop_app.telemetry.nvml_backend import NvmlBackend
from tests.fake_nvml.play_scenarios import load_library

MIB: Final = 2**20
TOTAL: Final = 12288 * MIB
CODES: Final = (3, 4, 6, 10, 15, 16, 18, 25, 999, 999, 10, 21)  # a missing symbol (13) is believed until reopened
SENTINELS: Final = (0, 0, 2**32 - 1, 2**63, 2**64 - 1, 2**64 - 2)
# field → ways to it: (function or field id that may fail, key of the value, factor)
WAYS: Final[Mapping[str, tuple[tuple[str, str, float], ...]]] = {
    "utilization_percent": (("nvmlDeviceGetUtilizationRates", "util", 1),),
    "memory_utilization_percent": (("nvmlDeviceGetUtilizationRates", "memory_util", 1),),
    "power_w": (("field186", "field186", 1e-3),),
    "power_average_w": (("field185", "field185", 1e-3), ("nvmlDeviceGetPowerUsage", "power", 1e-3)),
    "temperature_c": (
        ("nvmlDeviceGetTemperatureV", "temperature", 1),
        ("nvmlDeviceGetTemperature", "temperature", 1),
    ),
    "sm_clock_mhz": (("nvmlDeviceGetClockInfo", "sm_clock", 1),),
    "memory_clock_mhz": (("nvmlDeviceGetClockInfo", "memory_clock", 1),),
    "memory_used_bytes": (("nvmlDeviceGetMemoryInfo_v2", "used", 1), ("nvmlDeviceGetMemoryInfo", "used", 1)),
    "fan_percent": (("nvmlDeviceGetFanSpeed", "fan", 1),),
    "performance_state": (("nvmlDeviceGetPerformanceState", "pstate", 1),),
    "encoder_percent": (("nvmlDeviceGetEncoderUtilization", "encoder", 1),),
    "decoder_percent": (("nvmlDeviceGetDecoderUtilization", "decoder", 1),),
    "ecc_uncorrected": (("nvmlDeviceGetTotalEccErrors", "ecc", 1),),
    "pcie_generation": (("nvmlDeviceGetCurrPcieLinkGeneration", "pcie_generation", 1),),
    "bar1_used_bytes": (("nvmlDeviceGetBAR1MemoryInfo", "bar1_used", 1),),
    "temperature_memory_c": (("field82", "field82", 1),),
    "graphics_clock_mhz": (("nvmlDeviceGetClockInfo", "graphics_clock", 1),),
    "video_clock_mhz": (("nvmlDeviceGetClockInfo", "video_clock", 1),),
    "throttle_reasons": (
        ("nvmlDeviceGetCurrentClocksEventReasons", "throttle_reasons", 1),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", "throttle_reasons", 1),
    ),
    "temperature_margin_c": (("nvmlDeviceGetMarginTemperature", "margin", 1),),
    "power_module_w": (("field186.1", "field186.1", 1e-3),),
    "jpeg_percent": (("nvmlDeviceGetJpgUtilization", "jpeg", 1),),
    "optical_flow_percent": (("nvmlDeviceGetOfaUtilization", "optical_flow", 1),),
    "encoder_sessions": (("nvmlDeviceGetEncoderStats", "encoder_sessions", 1),),
    "pcie_replays": (("field94", "field94", 1),),
    "ecc_corrected": (("field3", "field3", 1),),
    "ecc_corrected_total": (("field5", "field5", 1),),
    "ecc_uncorrected_total": (("field6", "field6", 1),),
    "remapped_rows_corrected": (("field142", "field142", 1),),
    "remapped_rows_uncorrected": (("field143", "field143", 1),),
    "remapping_pending": (("field144", "field144", 1),),
    "remapping_failed": (("field145", "field145", 1),),
    # GPM: the fake gives the value of now for both samples, in hundredths
    "sm_activity_percent": (("gpm2", "gpm2", 1e-2),),
    "sm_occupancy_percent": (("gpm3", "gpm3", 1e-2),),
    "tensor_activity_percent": (("gpm5", "gpm5", 1e-2),),
    "dram_activity_percent": (("gpm10", "gpm10", 1e-2),),
    "fp64_activity_percent": (("gpm11", "gpm11", 1e-2),),
    "fp32_activity_percent": (("gpm12", "gpm12", 1e-2),),
    "fp16_activity_percent": (("gpm13", "gpm13", 1e-2),),
}
# Without these nothing of the field can be known, whatever its own way says.
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        [field for field, ways in WAYS.items() if ways[0][0].startswith("gpm")],
        ("nvmlGpmSampleGet", "nvmlGpmMetricsGet"),
    ),
    "retired_pages": ("field29", "field30"),
    "nvlinks_active": ("field91", "link0", "link1", "link2"),
    "mps_clients": ("nvmlDeviceGetMPSComputeRunningProcesses_v3",),
}
LINKS: Final = 3
PLAUSIBLE: Final = {
    "util": 100, "memory_util": 100, "field186": 300_000, "field185": 300_000, "power": 300_000, "temperature": 105,
    "sm_clock": 2100, "memory_clock": 9000, "used": 9000 * MIB, "fan": 100, "pstate": 12, "encoder": 100,
    "decoder": 100, "ecc": 40, "pcie_generation": 5, "bar1_used": 256 * MIB, "field82": 100,
    "graphics_clock": 2100, "video_clock": 1900, "throttle_reasons": 512, "margin": 90, "field186.1": 900_000,
    "jpeg": 100, "optical_flow": 100, "encoder_sessions": 30, "field94": 5000, "field3": 900, "field5": 9000,
    "field6": 50, "field142": 200, "field143": 200, "field144": 2, "field145": 2, "field29": 60, "field30": 60,
    "gpm2": 10_000, "gpm3": 10_000, "gpm5": 10_000, "gpm10": 10_000, "gpm11": 10_000, "gpm12": 10_000,
    "gpm13": 10_000, "link0": 2, "link1": 2, "link2": 2,
}  # fmt: skip
WIDE: Final = {  # 64 bits
    "used", "bar1_used", "ecc", "throttle_reasons", "encoder_sessions", "field3", "field5", "field6", "field29",
    "field30",
}  # fmt: skip
SIGNED: Final = {"temperature", "margin"}
COUNTERS: Final = {"pcie_tx_bytes_per_s": "field197", "pcie_rx_bytes_per_s": "field198"}
LINK_COUNTERS: Final = {"nvlink_tx_bytes_per_s": "field138.all", "nvlink_rx_bytes_per_s": "field139.all"}  # KiB
SHARES: Final = {
    "throttle_power_percent": "field74",
    "throttle_thermal_percent": "field75",
    "throttle_sync_boost_percent": "field76",
    "throttle_board_limit_percent": "field77",
    "throttle_low_utilization_percent": "field78",
    "throttle_reliability_percent": "field79",
}
DIFFERENCES: Final = COUNTERS | LINK_COUNTERS | SHARES


class Trial:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.library = load_library()
        self.library.fake_nvml_play(b"* value ecc 0")
        self.library.fake_nvml_set_clock(0.0)
        self.t_s = 0.0
        self.backend = NvmlBackend(
            SessionClock(monotonic=self.library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0)
        )
        (self.card,) = self.backend.open()
        self.seen: Counter[str] = Counter()
        self.absent: Counter[str] = Counter()
        self.false: list[Any] = []
        self.before: dict[str, tuple[float, int]] = {}

    def tick(self, number: int) -> None:
        self.t_s += self.random.choice((0.2, 0.2, 0.2, 0.2, 1.0, 61.0))
        self.library.fake_nvml_set_clock(self.t_s)
        values = {key: self.draw(most) for key, most in PLAUSIBLE.items()}
        counters = {key: self.random.randrange(2**32) for key in DIFFERENCES.values()}
        links = self.random.choice((LINKS, LINKS, LINKS, LINKS, 0, 2**32 - 1))
        clients = self.random.randrange(4)
        dead = number % 50 == 49
        failing = {"*"} if dead else self.failing()
        code = self.random.choice(CODES)
        lines = [f"* value {key} {value}" for key, value in (values | counters).items()]
        lines += [f"* value field91 {links}", "* value gpm 1"]
        lines += [f"* process mps {4_194_400 + pid} {MIB}" for pid in range(clients)] + ["* process mps 0 1"]
        lines += [f"* error {name} {code if dead else self.random.choice(CODES)}" for name in failing]
        self.library.fake_nvml_play("\n".join(lines).encode())
        readings = self.read(self.card)
        for field, reading in readings.items():
            self.check(field, reading, values | {"links": links, "clients": clients}, counters, failing)
        for field, key in DIFFERENCES.items():  # the next difference needs this one, read and plausible
            if readings[field].value is not None or readings[field].reason in ("not_read_yet", "implausible"):
                self.before[field] = (self.t_s, counters[key])
            else:
                self.before.pop(field, None)

    def read(self, card: Card) -> dict[str, Reading]:
        return {**self.backend.read_fast(card), **self.backend.read_slow(card)}

    def draw(self, most: int) -> int:
        if self.random.random() < 0.1:
            return self.random.choice(SENTINELS)
        return self.random.randrange(1, most)

    def failing(self) -> set[str]:
        names = {name for ways in WAYS.values() for name, _, _ in ways} | set(DIFFERENCES.values())
        names |= {name for needed in NEEDED.values() for name in needed}
        chosen = set(self.random.sample(sorted(names), self.random.choice((0, 1, 2, 4, 10))))
        return chosen | {"nvmlDeviceGetFieldValues"} if self.random.random() < 0.02 else chosen

    def check(
        self, field: str, reading: Reading, values: dict[str, int], counters: dict[str, int], failing: set[str]
    ) -> None:
        if reading.value is None:
            self.absent[field] += 1
            if reading.reason is None:
                self.false.append([self.t_s, field, "neither value nor reason"])
            return
        self.seen[field] += 1
        given = self.given(field, values, counters, failing)
        if given is not None and not any(abs(reading.value - value) <= 1e-9 * max(1.0, value) for value in given):
            self.false.append([self.t_s, field, reading.value, sorted(given)])

    def given(
        self, field: str, values: dict[str, int], counters: dict[str, int], failing: set[str]
    ) -> set[float] | None:
        """What the driver gave, or ``None``: this field is not modelled, except that nothing comes from nothing."""
        if field == "energy_j":  # of the session; it is kept when a reading fails
            return None
        if "*" in failing:
            return set()
        if field in DIFFERENCES:
            return self.difference(field, counters, failing)
        if failing.intersection(NEEDED.get(field, ())):
            return set()
        if field in ("retired_pages", "nvlinks_active", "mps_clients"):
            return {self.total(field, values)}
        if field not in WAYS:
            return None
        reserved = 368 * MIB  # the older struct counts it as used
        found = {
            values[key] % (2**64 if key in WIDE or key.startswith("gpm") else 2**32) * factor
            for name, key, factor in WAYS[field]
            if name not in failing
        }
        if {key for _, key, _ in WAYS[field]} & SIGNED:
            found |= {value - 2**32 for value in found if value >= 2**31}  # a signed number of the newer call
        return found | {value + reserved for value in found} if field == "memory_used_bytes" else found

    def total(self, field: str, values: dict[str, int]) -> float:
        """What several answers come to, or -1 where one of them cannot be true."""
        if field == "mps_clients":
            return values["clients"]
        if field == "retired_pages":
            parts = [values["field29"], values["field30"]]
            return sum(parts) if max(parts) < 2**31 else -1.0
        states = [values[f"link{number}"] % 2**32 for number in range(LINKS)]
        return sum(states) if max(states) <= 1 and values["links"] == LINKS else -1.0

    def difference(self, field: str, counters: dict[str, int], failing: set[str]) -> set[float]:
        key = DIFFERENCES[field]
        before = self.before.get(field)
        if key in failing or "nvmlDeviceGetFieldValues" in failing or before is None:
            return set()
        elapsed_s, moved = self.t_s - before[0], counters[key] - before[1]
        if field in COUNTERS:
            return {moved % 2**32 / elapsed_s}
        if field in LINK_COUNTERS:
            return {1024 * moved / elapsed_s} if moved >= 0 else set()
        return {min(100.0, 100.0 * moved / 1e9 / elapsed_s)} if moved >= 0 else set()


def main() -> None:
    trial = Trial(int(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        trial.tick(number)
    print(json.dumps({"seen": trial.seen, "absent": trial.absent, "false": trial.false[:20]}))


if __name__ == "__main__":
    main()
