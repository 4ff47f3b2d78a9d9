"""The options of ``floodmark import``. Standard library only: help must come at once."""

from __future__ import annotations

import argparse
import math
import re
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from desktop_app.telemetry.logs.record import Stamp

_EXAMPLES: Final = """examples:
  nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu \\
             --format=csv -l 1 > gpu.csv                   while the training runs, and after it:
  floodmark import gpu.csv runs/today                      the card beside the loss of TensorBoard's files
  floodmark import gpu.csv train.log --start "2026-07-14 09:00:00" --interval 0.5
  nvidia-smi -q -x | floodmark import -"""
_OFFSET: Final = re.compile(r"(?:UTC)?([-+])(\d{1,2}):?(\d{2})?", re.ASCII)
# Longer pauses between rows are no sampling any more.
_LONGEST_INTERVAL_S: Final = 86_400.0


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Which logs, where to, and what they do not say themselves."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="of nvidia-smi (XML, CSV, table, -q, dmon, pmon), rocm-smi JSON, Prometheus text, TensorBoard event "
        "files, metrics as CSV or JSON lines, logs of training scripts; gzipped or not; a folder stands for its "
        "files, - for the standard input",
    )
    parser.add_argument("--json", action="store_true", help="what was found, as JSON")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="make the session's folder in FOLDER, not beside the others'"
    )
    parser.add_argument(
        "--interval",
        type=_seconds,
        metavar="SECONDS",
        help="time between rows of a log without times",
    )
    parser.add_argument(
        "--dates", choices=("dmy", "mdy"), help="whether 03/04/2026 is in April (dmy) or in March (mdy)"
    )

    parser.add_argument(
        "--zone",
        type=_zone,
        metavar="ZONE",
        help="of local times, such as +02:00, UTC or Europe/Berlin; else they are taken as this computer's where they "
        "stand beside times in UTC",
    )
    parser.add_argument(
        "--start",
        type=_start,
        metavar="TIME",
        help="when a training began that does not say it, such as '2026-07-14 09:00:00'",
    )


def _zone(text: str) -> tzinfo:
    if (found := _OFFSET.fullmatch(text)) is not None and int(found[2]) < 15:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset)
    if text.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (OSError, ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no zone; give one such as +02:00 or Europe/Berlin") from None


def _start(text: str) -> Stamp:
    from desktop_app.telemetry.logs.times import stamp_of

    stamp = stamp_of(text)
    if stamp is None or stamp.time_of_day:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give one such as '2026-07-14 09:00:00'")
    return stamp


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds <= _LONGEST_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
