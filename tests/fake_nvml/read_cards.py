"""Run in a process of its own, with a fake driver library in reach: play steps, print what the backend said as JSON.

``argv[1]`` is a JSON list of steps ``{"t_s", "values", "errors", "do": ["open", "fast", "slow", "processes"]}``;
``values`` and ``errors`` go to the fake library's environment variables; ``do`` names methods ``do_…`` of ``Player``.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import psutil

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import Card, Reading
from desktop_app.telemetry.backend import BackendUnavailable
from desktop_app.telemetry.nvml_backend import NvmlBackend

SYSTEM_MEMORY = (64 * 2**30, 9 * 2**30)


class Player:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.backend = NvmlBackend(
            SessionClock(monotonic=lambda: self.now_s, anchor_wall_s=0.0, origin_s=0.0),
            system_memory=lambda: SYSTEM_MEMORY,
        )
        self.cards: dict[str, Card] = {}

    def play(self, step: Mapping[str, Any]) -> dict[str, Any]:
        self.now_s = float(step.get("t_s", self.now_s))
        os.environ["FAKE_NVML_VALUES"] = step.get("values", "").replace("OWN_PID", str(os.getpid()))
        os.environ["FAKE_NVML_ERRORS"] = step.get("errors", "")
        return {action: self.act(action) for action in step["do"]}

    def act(self, action: str) -> Any:
        try:
            return getattr(self, f"do_{action}")()
        except BackendUnavailable as error:
            return {"unavailable": error.reason, "detail": error.detail, "advice": error.advice_code}

    def do_open(self) -> list[dict[str, Any]]:
        cards = self.backend.open()
        self.cards.update({card.uuid: card for card in cards})
        return [asdict(card) | {"capacity_bytes": card.capacity_bytes} for card in cards]

    def do_close(self) -> None:
        self.backend.close()

    def do_fast(self) -> list[dict[str, list[Any]]]:
        return [as_pairs(self.backend.read_fast(card)) for card in self.cards.values()]

    def do_slow(self) -> list[dict[str, list[Any]]]:
        return [as_pairs(self.backend.read_slow(card)) for card in self.cards.values()]

    def do_processes(self) -> list[list[dict[str, Any]]]:
        return [[asdict(p) for p in self.backend.processes(card)] for card in self.cards.values()]

    def do_calls(self) -> int:
        """Calls into the library since it was loaded."""
        return int(ctypes.CDLL("libnvidia-ml.so.1").fake_nvml_calls())

    def do_children(self) -> int:
        return len(psutil.Process().children())

    def do_probe(self) -> dict[str, Any]:
        return asdict(self.backend.probe())


def as_pairs(readings: Mapping[str, Reading]) -> dict[str, list[Any]]:
    return {field: [reading.value, reading.reason] for field, reading in readings.items()}


def main() -> None:
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("desktop_app").addHandler(handler)
    logging.getLogger("desktop_app").setLevel(logging.DEBUG)
    player = Player()
    print(json.dumps({"steps": [player.play(step) for step in json.loads(sys.argv[1])], "log": records}))


if __name__ == "__main__":
    main()
