"""Run in a process of its own, with a fake driver library in reach: play whole scenarios through backend and sampler.

``argv[1]`` is a JSON list of scenarios ``{"name", "script", "seconds", "environment", "patience_s", "pace_ms",
"watch"}``; each gets a new backend and sampler on the library's own clock. Prints for each: the cards, the last
readings and processes of each card, the values over time of the fields in ``watch``, the events and the errors.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import Card, CardError, GpuSample, InstanceSample, ProcessSample, Reading, Reason
from desktop_app.telemetry.nvml_backend import NvmlBackend
from desktop_app.telemetry.processes import ProcessDirectory
from desktop_app.telemetry.sampler import Sampler

SYSTEM_MEMORY = (64 * 2**30, 9 * 2**30)
PATIENT_S = 30.0


class NoHost:
    def read(self, t_s: float) -> Mapping[str, Reading]:
        del t_s
        return {}


class Notes:
    """What the sampler said."""

    def __init__(self, watch: list[str]) -> None:
        self.watch = watch
        self.cards: tuple[Card, ...] = ()
        self.readings: dict[str, dict[str, list[Any]]] = {}
        self.series: dict[str, list[list[Any]]] = {}
        self.samples: dict[str, int] = {}
        self.processes: dict[str, list[dict[str, Any]]] = {}
        self.events: list[list[Any]] = []
        self.errors: list[list[Any]] = []
        self.filled: dict[str, list[list[Any]]] = {}
        self.instances: dict[str, dict[str, dict[str, list[Any]]]] = {}

    def on_cards(self, cards: tuple[Card, ...]) -> None:
        self.cards = cards

    def on_gpu(self, sample: GpuSample) -> None:
        pairs = {name: [reading.value, reading.reason] for name, reading in sample.readings.items()}
        self.readings.setdefault(sample.uuid, {}).update(pairs)
        self.samples[sample.uuid] = self.samples.get(sample.uuid, 0) + 1
        for name in self.watch:
            if name in pairs:
                self.series.setdefault(f"{sample.uuid} {name}", []).append([round(sample.t_s, 3), *pairs[name]])

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None: ...

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None:
        del t_s
        self.processes[uuid] = [asdict(process) for process in processes]

    def on_filled(self, sample: GpuSample) -> None:
        for name, reading in sample.readings.items():
            self.filled.setdefault(f"{sample.uuid} {name}", []).append([round(sample.t_s, 3), reading.value])

    def on_card_error(self, error: CardError) -> None:
        self.errors.append([round(error.t_s, 3), error.uuid, error.xid])

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None:
        del t_s
        self.instances[uuid] = {
            each.uuid: {name: [reading.value, reading.reason] for name, reading in each.readings.items()}
            for each in instances
        }

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None:
        self.events.append(["outage", round(t_s, 3), uuid, reason])

    def on_back(self, t_s: float, uuid: str | None) -> None:
        self.events.append(["back", round(t_s, 3), uuid, None])


def load_library() -> ctypes.CDLL:
    """The fake library that the real bindings load too."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    library.fake_nvml_clock.restype = ctypes.c_double
    library.fake_nvml_set_clock.argtypes = [ctypes.c_double]
    return library


def play(library: ctypes.CDLL, scenario: Mapping[str, Any]) -> dict[str, Any]:
    for name in [name for name in os.environ if name.startswith("CUDA_")]:
        del os.environ[name]
    os.environ.update(scenario.get("environment", {}))
    library.fake_nvml_play(scenario["script"].encode())
    library.fake_nvml_set_clock(0.0)
    clock = SessionClock(monotonic=library.fake_nvml_clock, anchor_wall_s=0.0, origin_s=0.0)
    backend = NvmlBackend(clock, system_memory=lambda: SYSTEM_MEMORY, wall_clock=library.fake_nvml_clock)
    if "container" in scenario:  # in a process namespace of its own, where these pids hold a card
        backend._directory = ProcessDirectory(
            all_pids=lambda: False,
            own_kind=lambda: str(scenario["container"]),
            holds=lambda pid: scenario["holds"].get(str(pid)),
        )
    notes = Notes(scenario.get("watch", []))

    def wait(seconds: float) -> None:
        if clock.now_s() >= scenario["seconds"]:
            sampler._stopping.set()
        library.fake_nvml_set_clock(clock.now_s() + seconds)
        time.sleep(scenario.get("pace_ms", 0.0) / 1000.0)

    sampler = Sampler(
        backend,
        clock,
        sink=notes,
        interval_s=1.0 / scenario.get("hz", 5.0),
        host=NoHost(),
        wait=wait,
        asleep=lambda: 0.0,
        patience_s=scenario.get("patience_s", PATIENT_S),
    )
    sampler.run()
    return {
        "cards": [asdict(card) | {"capacity_bytes": card.capacity_bytes} for card in notes.cards],
        "readings": notes.readings,
        "series": notes.series,
        "samples": notes.samples,
        "processes": notes.processes,
        "instances": notes.instances,
        "events": notes.events,
        "errors": notes.errors,
        "filled": notes.filled,
        "missed": sampler.missed,
        "left_alone": sampler.left_alone,
    }


def main() -> None:
    library = load_library()
    scenarios = json.loads(sys.argv[1])
    print(json.dumps({scenario["name"]: play(library, scenario) for scenario in scenarios}))


if __name__ == "__main__":
    main()
