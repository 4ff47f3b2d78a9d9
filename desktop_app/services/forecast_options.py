"""The options of ``floodmark forecast``, ``explain`` and ``export``. Standard library only: help must come at once."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from desktop_app.services.estimate_options import parse_size

_TWO_MEANINGS: Final = re.compile(r"[\d.,]+\s*[kmgt]b", re.IGNORECASE)


def add_forecast_options(parser: argparse.ArgumentParser) -> None:
    """Which recorded run, and what its rows do not say."""
    parser.add_argument(
        "trace",
        type=Path,
        metavar="TRACE.csv",
        help="the recorded run, gzipped or not; - reads standard input as it comes",
    )
    parser.add_argument("--json", action="store_true", help="one JSON line per alert, the summary last")
    parser.add_argument(
        "--capacity", type=_capacity, metavar="SIZE", help="memory of the card where rows have no capacity_bytes: 24GiB"
    )
    parser.add_argument("--total-steps", type=_count, metavar="N", help="steps of the run, where known")
    parser.add_argument("--steps-per-epoch", type=_count, metavar="N", help="steps of an epoch, where known")


def add_explain_options(parser: argparse.ArgumentParser) -> None:
    """Where the message is."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=Path("-"),
        metavar="FILE",
        help="a log or a message of any length; - or nothing reads standard input",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """What of which session, and where to."""
    parser.add_argument("session", type=Path, metavar="SESSION", help="a folder of sessions/, or its name")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--forecast-trace", type=Path, metavar="OUT.csv", help="write the run as a trace for floodmark forecast"
    )
    what.add_argument(
        "--csv", type=Path, metavar="FOLDER", help="write every table to a CSV file in a new or empty folder"
    )


def _capacity(text: str) -> int:
    """As a cell of ``capacity_bytes`` is read: what is refused there is refused here."""
    if _TWO_MEANINGS.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} means two things; write bytes, or KiB, MiB, GiB such as 24GiB")
    try:
        size = parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no memory at all; give what the card has, such as 24GiB")
    return size


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
