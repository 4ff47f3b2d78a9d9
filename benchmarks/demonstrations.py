"""Every demonstration as a user starts it, headless: was the right cause alerted, and how long before?

Prints a table; the last lines say what is not as it should be. Usage: ``python benchmarks/demonstrations.py [NAME …]``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop_app.services.scenarios import SCENARIOS, Scenario, find_scenario

SECONDS = 120.0  # of training; all are over before on two free cores
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Row:
    """What one program left behind."""

    scenario: Scenario
    exit_code: int
    wall_s: float
    report: dict[str, Any]

    @property
    def first(self) -> dict[str, Any] | None:
        alerts = self.report.get("alerts") or []
        return alerts[0] if alerts else None

    @property
    def end_step(self) -> int | None:
        """The step that ran out of memory, or the last one of a run that ended so without the card being full."""
        oom = self.report.get("oom")
        if oom is not None:
            return int(oom["step"])
        return int(self.report["steps"]) if self.report.get("error") else None

    def faults(self) -> list[str]:
        """What is not as the scenario says."""
        expected, found = self.scenario.cause, self.first
        said = None if found is None else found["cause"]
        wrong = []
        if said != (None if expected is None else expected.value):
            wrong.append(f"alerted {said}, expected {expected}")
        if self.scenario.runs_out != (self.end_step is not None):
            wrong.append("did not run out" if self.scenario.runs_out else "ran out")
        return [f"{self.scenario.name}: {text}" for text in wrong]


def play(scenario: Scenario, *, seconds: float) -> Row:
    """One program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "desktop_app", "demo", scenario.name, "--headless"]
        command += ["--for", str(seconds), "--report", str(report)]
        began_s = time.monotonic()
        done = subprocess.run(
            command,
            env={**os.environ, "FLOODMARK_DATA": str(Path(folder) / "data")},
            capture_output=True,
            timeout=seconds + PATIENCE_S,
            check=False,
        )
        content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return Row(scenario, done.returncode, time.monotonic() - began_s, content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--for", dest="seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    wrong: list[str] = []
    print(
        f"{'demonstration':<22}{'first alert':<22}{'step':>6}{'eta':>8}{'end':>6}{'lead':>6}{'exit':>6}{'seconds':>9}"
    )
    for name in options.names:
        row = play(find_scenario(name), seconds=options.seconds)
        wrong += row.faults()
        found, end = row.first, row.end_step
        step = None if found is None else found["step"]
        eta = None if found is None else found["eta_steps"]
        lead = None if step is None or end is None else end - step
        cells = (step, None if eta is None else round(eta, 1), end, lead, row.exit_code)
        widths = (6, 8, 6, 6, 6)
        shown = "".join(f"{'-' if cell is None else cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        print(f"{name:<22}{'-' if found is None else found['cause']:<22}{shown}{row.wall_s:>9.1f}", flush=True)
    print("\n".join(wrong) or "all as they should be")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
