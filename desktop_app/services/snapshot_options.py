"""The options of ``floodmark snapshot``. Standard library only: the help must come at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from desktop_app.services.estimate_options import add_comparison


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which recording, how much of it, and what training to hold against it."""
    parser.add_argument(
        "file", type=Path, metavar="FILE.pickle", help="of torch.cuda.memory._dump_snapshot(), gzipped or not"
    )
    parser.add_argument("--device", type=_index, metavar="N", help="the card; default: the one with most recorded")
    parser.add_argument("--top", type=_index, default=10, metavar="N", help="so many owners and segments; default 10")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_comparison(parser)


def _index(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
