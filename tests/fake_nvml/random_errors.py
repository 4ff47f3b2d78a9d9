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
}
PLAUSIBLE: Final = {
    "util": 100, "memory_util": 100, "field186": 300_000, "field185": 300_000, "power": 300_000, "temperature": 105,
    "sm_clock": 2100, "memory_clock": 9000, "used": 9000 * MIB, "fan": 100, "pstate": 12, "encoder": 100,
    "decoder": 100, "ecc": 40, "pcie_generation": 5, "bar1_used": 256 * MIB, "field82": 100,
}  # fmt: skip
COUNTERS: Final = {"pcie_tx_bytes_per_s": "field197", "pcie_rx_bytes_per_s": "field198"}
SHARES: Final = {"throttle_power_percent": "field74", "throttle_thermal_percent": "field75"}


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
        counters = {key: self.random.randrange(2**32) for key in (*COUNTERS.values(), *SHARES.values())}
        dead = number % 50 == 49
        failing = {"*"} if dead else self.failing()
        code = self.random.choice(CODES)
        lines = [f"* value {key} {value}" for key, value in (values | counters).items()]
        lines += [f"* error {name} {code if dead else self.random.choice(CODES)}" for name in failing]
        self.library.fake_nvml_play("\n".join(lines).encode())
        readings = self.read(self.card)
        for field, reading in readings.items():
            self.check(field, reading, values, counters, failing)
        for field, key in (COUNTERS | SHARES).items():  # the next difference needs this one, read and plausible
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
        names = [name for ways in WAYS.values() for name, _, _ in ways] + [*COUNTERS.values(), *SHARES.values()]
        chosen = set(self.random.sample(names, self.random.choice((0, 1, 1, 2, 5))))
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
        if field in COUNTERS or field in SHARES:
            return self.difference(field, counters, failing)
        if field not in WAYS:
            return None
        fits = 2**32 if field not in ("memory_used_bytes", "bar1_used_bytes", "ecc_uncorrected") else 2**64
        reserved = 368 * MIB  # the older struct counts it as used
        found = {values[key] % fits * factor for name, key, factor in WAYS[field] if name not in failing}
        if field == "temperature_c":
            found |= {value - 2**32 for value in found if value >= 2**31}  # a signed number of the newer call
        return found | {value + reserved for value in found} if field == "memory_used_bytes" else found

    def difference(self, field: str, counters: dict[str, int], failing: set[str]) -> set[float]:
        key = COUNTERS.get(field) or SHARES[field]
        before = self.before.get(field)
        if key in failing or "nvmlDeviceGetFieldValues" in failing or before is None:
            return set()
        elapsed_s, moved = self.t_s - before[0], counters[key] - before[1]
        if field in COUNTERS:
            return {moved % 2**32 / elapsed_s}
        return {min(100.0, 100.0 * moved / 1e9 / elapsed_s)} if moved >= 0 else set()


def main() -> None:
    trial = Trial(int(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        trial.tick(number)
    print(json.dumps({"seen": trial.seen, "absent": trial.absent, "false": trial.false[:20]}))


if __name__ == "__main__":
    main()
