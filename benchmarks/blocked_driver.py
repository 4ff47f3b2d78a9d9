"""A driver call that blocks for 30 s: how late the window's timer comes meanwhile, and whether the others go on.

    python benchmarks/blocked_driver.py [--seconds 30]

The full form of ``tests/ui/test_blocked_driver.py``, which the gate plays for 2.4 s: the main window, two cards, one of
which does not answer. Prints the 95th percentile of how late a timer of 20 ms comes, while the card blocks and before;
fails above 80 ms, when the other card is read too rarely, when the outage is not told, or when the end waits for it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TEST: Final = "tests/ui/test_blocked_driver.py"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=30.0)
    seconds = options.parse_args().seconds
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", TEST],
        cwd=ROOT,
        env={"QT_QPA_PLATFORM": "offscreen", **os.environ, "BLOCKED_S": str(seconds)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if "timer p95" in line]
    print("\n".join(lines) or done.stdout + done.stderr)
    if done.returncode and lines:
        print(done.stdout[-3000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
