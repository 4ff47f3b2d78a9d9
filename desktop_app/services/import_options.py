"""The options of ``floodmark import``. Standard library only: help must come at once."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final

# Longer pauses between rows are no sampling any more.
_LONGEST_INTERVAL_S: Final = 86_400.0


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Which logs, where to, and what they do not say themselves."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="of nvidia-smi (XML, CSV, table, -q, dmon, pmon), rocm-smi JSON, Prometheus text; gzipped or not",
    )
    parser.add_argument("--json", action="store_true", help="what was found, as JSON")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="make the session here, not among the others")
    parser.add_argument(
        "--interval",
        type=_seconds,
        metavar="SECONDS",
        help="time between rows of a log without times",
    )
    parser.add_argument(
        "--dates", choices=("dmy", "mdy"), help="whether 03/04/2026 is in April (dmy) or in March (mdy)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds <= _LONGEST_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
