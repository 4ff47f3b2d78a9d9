"""What the metrics read of a session: cells, filled by hand. And a real Prometheus, where there is one."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from desktop_app.core.events import EventQueue
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import Card, Reading, SelfCost
from desktop_app.core.units import MIB
from desktop_app.services.facade import EstimateState, EstimateStatus

from .doubles import make_card

_FETCHED = Path(__file__).resolve().parents[3] / "build" / "prometheus" / "usr" / "bin"  # packaging/prometheus.sh


def make_session(*cards: Card, readings: Mapping[str, Mapping[str, Reading]] | None = None, **cells: Any) -> Any:
    """A workspace of cells alone: no run, no forecast, no alert unless given."""
    known: dict[str, Any] = {
        "cards": cards,
        "readings": readings or {},
        "instances": {},
        "run": RunStatus(RunState.IDLE),
        "memory": None,
        "forecast": None,
        "alerts": (),
        "estimate": EstimateStatus(EstimateState.NONE),
        "cost": SelfCost(1.5, 100, 5.0, 17, 2),
    }
    return SimpleNamespace(events=EventQueue(), **{name: Cell(value) for name, value in {**known, **cells}.items()})


def real_card(**facts: Any) -> Card:
    """A 3090 as its driver describes it."""
    known: dict[str, Any] = {
        "name": "NVIDIA GeForce RTX 3090",
        "bus_id": "00000000:01:00.0",
        "total_bytes": 24576 * MIB,
        "driver_reserved_bytes": 320 * MIB,
        "driver_version": "570.86.10",
        "architecture": "Ampere",
        "compute_capability": (8, 6),
    }
    return make_card("GPU-a", simulated=False, **{**known, **facts})


def samples_of(text: str) -> dict[str, float]:
    """``name{label="…",…}`` → value, labels in order of their names."""
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len({series for series, _ in lines}), "no series comes twice"
    return {series: float(value) for series, value in lines}


def only(samples: Mapping[str, float], name: str) -> float:
    """The value of the one series of this name."""
    (value,) = [value for series, value in samples.items() if series.partition("{")[0] == name]
    return value


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own address
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def tool(name: str) -> str:
    """The path of a program of Prometheus; skips the test where there is none."""
    found = shutil.which(name) or shutil.which(name, path=_FETCHED)
    if found is None:
        pytest.skip(f"{name} is not here (Debian: sh packaging/prometheus.sh)")
    return found


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """A server that scrapes ``target`` twice a second; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    settings = folder / "prometheus.yml"
    settings.write_text(
        "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\n"
        f"scrape_configs: [{{job_name: floodmark, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    command = [
        tool("prometheus"),
        f"--config.file={settings}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={place}",
        "--log.level=warn",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            yield f"http://{place}"
        finally:
            server.terminate()
            server.wait(20)


def ask_prometheus(server: str, query: str, *, patience_s: float = 20.0) -> list[dict[str, Any]]:
    """The answer to an instant query, as soon as there is one."""
    pause, deadline_s = threading.Event(), time.monotonic() + patience_s
    while time.monotonic() < deadline_s:
        try:
            _, text = fetch(f"{server}/api/v1/query?query={query}")
            found: list[dict[str, Any]] = json.loads(text)["data"]["result"]
        except (OSError, ValueError, KeyError):
            found = []
        if found:
            return found
        pause.wait(0.1)
    return []
