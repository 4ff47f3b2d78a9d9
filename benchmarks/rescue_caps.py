"""One run on cards of 8, 5 and 3.5 GiB that it does not fit on, as a user starts it: does it settle and finish?

Prints a line for each card; exit code 1 where one run was not rescued within one step. The computer needs about as much
free RAM as the largest card. Usage: ``python benchmarks/rescue_caps.py [GIB …] [--scale N]``; a scale of 4 makes
images of a quarter of the pixels, for small caps.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from desktop_app.training.config import RunConfig, config_to_toml

CAPS_GIB: Final = (8.0, 5.0, 3.5)
PATIENCE_S: Final = 1800.0
# Memory without arithmetic: nearly all of it is the images as floats, which four units look at. 1,536 of 1,600.
LARGE_IMAGES: Final = RunConfig(
    image_size=1024,
    model="wide-mlp",
    hidden=4,
    depth=1,
    batch_size=1536,
    epochs=2,
    augment=False,
    on_oom="shrink",
    log_every_steps=1,
)


@dataclass(frozen=True)
class Row:
    """How one program ended. ``end_s``: from its report to the end of its process."""

    gib: float
    exit_code: int
    cpu_s: float
    wall_s: float
    end_s: float
    report: dict[str, Any]

    @property
    def rescues(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.report.get("rescues") or []
        return found

    @property
    def is_good(self) -> bool:
        """It went on, each kind of error within one step, and kept the effective batch."""
        training = {rescue["step"] for rescue in self.rescues if rescue["phase"] != "validation"}
        whole = LARGE_IMAGES.batch_size
        kept = self.report.get("batch_size", 0) * self.report.get("accumulation", 0) == whole
        return self.exit_code == 0 and len(training) == 1 and kept and self.report["steps"] == LARGE_IMAGES.epochs

    def line(self) -> str:
        sizes = " ".join(
            f"{rescue['phase']}@{rescue['step']}:{rescue['batch_size']}->{rescue['rescued_batch_size']}"
            for rescue in self.rescues
        )
        settled = f"{self.report.get('batch_size')} x {self.report.get('accumulation')}"
        return (
            f"{'ok  ' if self.is_good else 'MISS'} {self.gib:5g} GiB  exit {self.exit_code}  {settled:>9}  "
            f"cpu {self.cpu_s:5.1f} s  wall {self.wall_s:6.1f} s  end {self.end_s:4.1f} s  {sizes or '-'}"
        )


def scaled(scale: float) -> RunConfig:
    """The same run with so much less memory."""
    return replace(LARGE_IMAGES, image_size=round(LARGE_IMAGES.image_size / math.sqrt(scale)))


def run(gib: float, config: RunConfig, *, gpu: str) -> Row:
    """``floodmark train`` in a process of its own, under the cap."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.toml").write_text(config_to_toml(config), encoding="utf-8")
        report = folder / "report.json"
        command = [sys.executable, "-m", "desktop_app", "train", str(folder / "run.toml"), "--headless"]
        command += ["--card", f"{gpu} capped at {gib:g} GiB", "--report", str(report)]
        environment = {**os.environ, "FLOODMARK_DATA": str(folder / "data")}
        began_s, spent_s = time.monotonic(), _children_s()
        done = subprocess.run(
            command, env=environment, timeout=PATIENCE_S, check=False, stdout=subprocess.DEVNULL, cwd=_ROOT
        )
        ended = time.time()
        return Row(
            gib,
            done.returncode,
            _children_s() - spent_s,
            time.monotonic() - began_s,
            ended - report.stat().st_mtime if report.exists() else math.nan,
            json.loads(report.read_text(encoding="utf-8")) if report.exists() else {},
        )


_ROOT: Final = Path(__file__).resolve().parent.parent


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("gib", type=float, nargs="*", default=CAPS_GIB)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--gpu", default="RTX 4090")
    options = parser.parse_args()
    good = True
    for gib in options.gib:
        row = run(gib, scaled(options.scale), gpu=options.gpu)
        good = good and row.is_good
        print(row.line(), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
