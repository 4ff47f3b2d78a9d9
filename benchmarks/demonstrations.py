"""Every demonstration as a user starts it, headless: was the right cause alerted, how long before, and how does it end?

Prints a table; the last lines say what is not as it should be. ``waited``: seconds from the start of the program to the
first alert; ``cpu``: its processor seconds with those of its children, which say what it costs where other programs
take the cores. Usage: ``python benchmarks/demonstrations.py [NAME …]``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop_app.core.forecasts import Cause
from desktop_app.services.scenarios import SCENARIOS, Scenario, find_scenario

SECONDS = 300.0  # of training; all that end by themselves are over in 60 on two free cores
ENDLESS_SECONDS = 90.0  # of those that do not
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Row:
    """What one program left behind."""

    scenario: Scenario
    exit_code: int
    wall_s: float
    cpu_s: float
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

    @property
    def lead(self) -> int | None:
        """Steps from the first alert to the end."""
        return None if self.first is None or self.end_step is None else self.end_step - self.first["step"]

    @property
    def eta_error(self) -> float | None:
        """Of the first alert, in percent of the steps that there really were; ``None`` where there was hardly one."""
        eta = None if self.first is None else self.first["eta_steps"]
        return None if eta is None or self.lead is None or self.lead < 2 else 100 * (eta - self.lead) / self.lead

    @property
    def expected_exit(self) -> int:
        """As docs/guide/command-line.md says: main memory that is full is a failed run, a full card is 3."""
        if not self.scenario.runs_out:
            return 0
        return 1 if self.scenario.cause is Cause.HOST_MEMORY else 3

    def faults(self) -> list[str]:
        """What is not as the scenario says."""
        expected, found = self.scenario.cause, self.first
        said = None if found is None else found["cause"]
        wrong = []
        if said != (None if expected is None else expected.value):
            wrong.append(f"alerted {said}, expected {expected}")
        if self.scenario.runs_out != (self.end_step is not None):
            wrong.append("did not run out" if self.scenario.runs_out else "ran out")
        if self.exit_code != self.expected_exit:
            wrong.append(f"ended with {self.exit_code}, expected {self.expected_exit}")
        return [f"{self.scenario.name}: {text}" for text in wrong]

    def line(self) -> str:
        """One row of the table."""
        first = self.first or {"cause": "-", "step": None, "eta_steps": None, "t_s": None}
        figures = (first["step"], first["t_s"], first["eta_steps"], self.end_step, self.lead, self.eta_error)
        shown = "".join(f"{'-' if figure is None else format(figure, '.0f'):>8}" for figure in figures)
        ends = f"{self.exit_code:>6}{self.wall_s:>9.1f}{self.cpu_s:>8.1f}"
        return f"{self.scenario.name:<22}{first['cause']:<22}{shown}{ends}"


def play(scenario: Scenario, *, seconds: float) -> Row:
    """One program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "desktop_app", "demo", scenario.name, "--headless"]
        command += ["--for", str(seconds), "--report", str(report)]
        began_s, spent_s = time.monotonic(), _children_s()
        done = subprocess.run(
            command,
            env={**os.environ, "FLOODMARK_DATA": str(Path(folder) / "data")},
            capture_output=True,
            timeout=seconds + PATIENCE_S,
            check=False,
        )
        content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return Row(scenario, done.returncode, time.monotonic() - began_s, _children_s() - spent_s, content)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--for", dest="seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    wrong: list[str] = []
    names = "".join(f"{name:>8}" for name in ("step", "waited", "eta", "end", "lead", "err %"))
    print(f"{'demonstration':<22}{'first alert':<22}{names}{'exit':>6}{'wall s':>9}{'cpu s':>8}")
    for name in options.names:
        scenario = find_scenario(name)
        row = play(scenario, seconds=options.seconds if scenario.runs_out else min(options.seconds, ENDLESS_SECONDS))
        wrong += row.faults()
        print(row.line(), flush=True)
    print("\n".join(wrong) or "all as they should be")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
