"""How a command was asked to run, and what. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from desktop_app.services.metrics_address import MetricsAddress
from desktop_app.services.scenarios import Scenario
from desktop_app.training.config import RunConfig


@dataclass(frozen=True, slots=True)
class Launch:
    """Options of ``demo``, ``train`` and the plain window. ``seconds`` counts from the first step."""

    headless: bool = False
    seconds: float | None = None
    report_path: Path | None = None
    screenshot_path: Path | None = None
    window_size: tuple[int, int] | None = None
    language: str | None = None
    theme: str | None = None
    debug: bool = False
    read_only: bool = False  # no process is ended
    metrics: MetricsAddress | None = None  # where Prometheus may ask; None: nowhere


@dataclass(frozen=True, slots=True)
class Job:
    """What a command runs, with or without a window."""

    config: RunConfig
    scenario: Scenario | None = None
    resume_from: Path | None = None
