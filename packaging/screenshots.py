"""Take the pictures of the README and of the states that must look good, for a person to look at.

    python packaging/screenshots.py [FOLDER]

Without a folder: docs/images, only the pictures of the README. With one: every scenario, theme, language and size.

Each picture is of a real run, so its status bar says how many ticks came late and what a frame cost. On a busy machine
that says something about the others: before each picture of the README it waits until the machine is quiet.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
# Late enough for a forecast with some history, early enough that memory has not run out (it does after 40 s).
LEAK_SECONDS = "24"
README = (
    ("dashboard-dark", "leak", LEAK_SECONDS, ("--theme", "dark", "--size", "1440x900")),
    ("dashboard-light", "leak", LEAK_SECONDS, ("--theme", "light", "--size", "1440x900")),
    ("dashboard-zh", "leak", LEAK_SECONDS, ("--theme", "dark", "--size", "1440x900", "--lang", "zh_CN")),
)
MEMORY = (
    ("memory-dark", ("dark", "en", "1440x900")),
    ("memory-light", ("light", "en", "1440x900")),
    ("memory-zh", ("dark", "zh_CN", "1440x900")),
)
# Of all processors, by everybody; the program itself takes more only once it has started.
QUIET_PERCENT = 15.0
QUIET_S = 5.0
PATIENCE_S = 600.0
SECONDS = {"cats-dogs": "30", "leak": "60", "first-step": "30", "too-big": "30"}


def every_state() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Scenario by theme, language and size."""
    return [
        (
            f"{scenario}-{theme}-{language}-{size}",
            scenario,
            seconds,
            ("--theme", theme, "--lang", language, "--size", size),
        )
        for scenario, seconds in SECONDS.items()
        for theme in ("dark", "light")
        for language in ("en", "zh_CN")
        for size in ("1440x900", "1024x640")
    ]


def wait_until_quiet() -> bool:
    """Whether others leave the processors alone for a few seconds, within ten minutes."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        if psutil.cpu_percent(interval=QUIET_S) < QUIET_PERCENT:
            return True
    return False


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    pictures = every_state() if len(sys.argv) > 1 else README
    with tempfile.TemporaryDirectory() as data:
        environment = {**os.environ, "FLOODMARK_DATA": data, "QT_QPA_PLATFORM": "offscreen"}
        for name, scenario, seconds, options in pictures:
            target = folder / f"{name}.png"
            if pictures is README and not wait_until_quiet():
                print(f"{target.name}: left as it is, because the machine was busy for {PATIENCE_S / 60:.0f} min")
                return 1
            target.unlink(missing_ok=True)
            command = [sys.executable, "-m", "desktop_app", "demo", scenario, "--for", seconds, "--screenshot", target]
            done = subprocess.run([*command, *options], cwd=ROOT, env=environment, check=False)
            print(
                f"{target.name}: exit code {done.returncode}, {target.stat().st_size if target.exists() else 0} bytes"
            )
            if not target.exists():
                return 1
        for name, options in MEMORY:
            command = [sys.executable, ROOT / "packaging" / "memory_screenshot.py", *options, folder / f"{name}.png"]
            if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
