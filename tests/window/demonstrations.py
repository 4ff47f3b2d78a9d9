"""Runs the program as a user does, in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Outcome:
    """What one command left behind."""

    exit_code: int
    report: dict[str, Any]
    picture: Path | None
    stderr: str
    data: Path


def run_demo(
    folder: Path,
    scenario: str,
    *options: str,
    window: str | None = None,
    batch: int | None = None,
    timeout_s: float = 150,
) -> Outcome:
    """``floodmark demo SCENARIO``; ``window``: ``offscreen``, ``xvfb`` or ``None`` for headless."""
    report, picture, data = folder / "report.json", folder / "window.png", folder / "data"
    command = [sys.executable, "-W", "error", "-m", "desktop_app", "demo", scenario, "--report", str(report), *options]
    environment = {**os.environ, "FLOODMARK_DATA": str(data)}
    environment.pop("DISPLAY", None)
    if batch is not None:
        command += ["--batch", str(batch)]
    if window is None:
        command += ["--headless"]
        environment.pop("QT_QPA_PLATFORM", None)
    else:
        command += ["--screenshot", str(picture)]
        environment["QT_QPA_PLATFORM"] = "offscreen" if window == "offscreen" else "xcb"
    if window == "xvfb":
        if shutil.which("xvfb-run") is None:
            pytest.skip("xvfb-run is not installed")
        command = ["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24", *command]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Outcome(done.returncode, content, picture if picture.exists() else None, done.stderr, data)
