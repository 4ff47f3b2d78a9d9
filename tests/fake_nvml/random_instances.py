"""Run in a process of its own, with a fake driver library in reach: random errors into a card with two MIG instances.

``argv``: seed, ticks. Prints how many values were seen of each field, and the first few that nobody gave.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import Any, Final

from desktop_app.core.clock import SessionClock
from desktop_app.telemetry.nvml_backend import NvmlBackend
from tests.fake_nvml.play_scenarios import load_library
from tests.fake_nvml.random_errors import CODES, MIB, SENTINELS

TOTAL: Final = 9856 * MIB
RESERVED: Final = 368 * MIB  # the older struct counts it as used
CALLS: Final = (
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetUtilizationRates",
    "gpm2",
    "gpm5",
)
CARD_CALLS: Final = ("nvmlGpmMigSampleGet", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetMaxMigDeviceCount")
ACTIVITIES: Final = {"sm_activity_percent": "gpm2", "tensor_activity_percent": "gpm5"}


class Trial:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.library = load_library()
        self.library.fake_nvml_set_clock(0.0)
        self.library.fake_nvml_play(b"* value mig 1\n* value gpm 1\n0 value instances 2\n")
        clock = SessionClock(monotonic=self.library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0)
        self.backend = NvmlBackend(clock)
        (self.card,) = self.backend.open()
        self.t_s = 0.0
        self.seen: Counter[str] = Counter()
        self.absent: Counter[str] = Counter()
        self.false: list[Any] = []

    def tick(self) -> None:
        self.t_s += self.random.choice((1.0, 1.0, 3.0, 61.0))
        self.library.fake_nvml_set_clock(self.t_s)
        values = [
            {key: self.draw(most) for key, most in (("used", TOTAL), ("gpm2", 10_000), ("gpm5", 10_000))} for _ in "ab"
        ]
        failing = {(number, call) for number in (0, 1) for call in CALLS if self.random.random() < 0.06}
        on_card = {call for call in CARD_CALLS if self.random.random() < 0.03}
        lines = ["* value mig 1", "* value gpm 1", "0 value instances 2", f"* value total {TOTAL}"]
        lines += [f"0.{number} value {key} {value}" for number in (0, 1) for key, value in values[number].items()]
        lines += [f"0.{number} error {call} {self.random.choice(CODES)}" for number, call in failing]
        lines += [f"0 error {call} {self.random.choice(CODES)}" for call in on_card]
        self.library.fake_nvml_play("\n".join(lines).encode())
        for number, sample in enumerate(self.backend.instances(self.card)):
            for field, reading in sample.readings.items():
                self.check(number, field, reading.value, values[number], failing, on_card)
                if (reading.value is None) == (reading.reason is None):
                    self.false.append([self.t_s, field, "a value and a reason, or neither"])

    def draw(self, most: int) -> int:
        return self.random.choice(SENTINELS) if self.random.random() < 0.1 else self.random.randrange(1, most)

    def check(
        self, number: int, field: str, found: float | None, values: dict[str, int], failing: set[Any], on_card: set[str]
    ) -> None:
        if found is None:
            self.absent[field] += 1
            return
        self.seen[field] += 1
        given: set[float] = set()
        if field == "memory_used_bytes":
            if (number, "nvmlDeviceGetMemoryInfo_v2") not in failing:
                given.add(values["used"])
            if (number, "nvmlDeviceGetMemoryInfo") not in failing:
                given.add((values["used"] + RESERVED) % 2**64)  # as the fake counts
        elif field in ACTIVITIES and "nvmlGpmMigSampleGet" not in on_card:
            key = ACTIVITIES[field]
            given = set() if (number, key) in failing else {values[key] / 100}
        if not any(abs(found - value) <= 1e-9 * max(1.0, value) for value in given):
            self.false.append([self.t_s, number, field, found, sorted(given)])


def main() -> None:
    trial = Trial(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        trial.tick()
    print(json.dumps({"seen": trial.seen, "absent": trial.absent, "false": trial.false[:20]}))


if __name__ == "__main__":
    main()
