"""Published peaks to judge the estimate by: what the tables beside the checkout hold, and which rows are judged.

Standard library only. Three kinds of runs of the large table did not hold the training they name, and are left out by
rules that look at the table alone:

* repeated: the same measured value at two batch sizes of one model;
* too large: the other tool's estimate in the same row, which is below the measured value nearly everywhere, is above
  the card's capacity;
* too small: the measured value is below that other estimate.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TRUTH = Path(__file__).resolve().parents[2] / "shared" / "truth"
# Models of the first fit, one a line (docs/decisions/015). They shape the draw, so the list stays as it is: later fits
# took these and all others that are not drawn (036).
FITTED_ON = Path(__file__).with_name("estimate_fitted_on.txt")
A100_MIB = 40_960
SEED = 3
ROWS, ROWS_PER_MODEL = 200, 3
LADDER_ROWS = 120
# timm's benchmark script starts at 384 and goes down until a step runs.
RUNGS = (384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)


@dataclass(frozen=True, slots=True)
class PeakRow:
    """``sms`` is 0 where the table does not say."""

    model: str
    batch: int
    measured_mib: float
    precision: str = "fp32"
    sms: int = 0


@dataclass(frozen=True, slots=True)
class LadderRow:
    model: str
    image: int
    channels_last: bool
    largest: int


def _rows(name: str) -> list[dict[str, str]]:
    with (TRUTH / name).open(newline="") as file:
        return list(csv.DictReader(file))


def cnn_rows(cards: Sequence[int]) -> list[PeakRow]:
    """The five-card table, for the cards with these numbers of multiprocessors."""
    found = []
    for row in _rows("device_peaks.csv"):
        if row["table"] == "cnn-five-cards" and (sms := int(row["card"].split()[0])) in cards:
            name = row["model"].partition(":")[2]
            found.append(PeakRow(name, int(row["batch"]), float(row["measured_mib"]), sms=sms))
    return found


def bert_rows() -> list[PeakRow]:
    return [
        PeakRow(row["model"], int(row["batch"]), float(row["measured_mib"]), row["precision"], sms=80)
        for row in _rows("device_peaks.csv")
        if row["table"].startswith("bert-large")
    ]


def timm_rows() -> tuple[list[PeakRow], Counter[str]]:
    """200 rows, at most three of a model, none of a model that the rule for workspaces was fitted on; and how many
    runs each rule has left out of all of them."""
    fitted_on = set(FITTED_ON.read_text().split())
    rows = [row for row in _rows("device_peaks.csv") if row["table"].startswith("timm-a100")]
    values = Counter((row["model"], row["measured_mib"]) for row in rows)
    left_out: Counter[str] = Counter()
    kept = []
    for row in rows:
        measured, other = float(row["measured_mib"]), float(row["other_estimate_mib"])
        if values[row["model"], row["measured_mib"]] > 1:
            left_out["repeated"] += 1
        elif other > A100_MIB:
            left_out["too large"] += 1
        elif measured < other:
            left_out["too small"] += 1
        elif row["model"] not in fitted_on:
            kept.append(PeakRow(row["model"], int(row["batch"]), measured, sms=108))
    random.Random(SEED).shuffle(kept)
    taken: Counter[str] = Counter()
    chosen: list[PeakRow] = []
    for candidate in kept:
        if len(chosen) < ROWS and taken[candidate.model] < ROWS_PER_MODEL:
            taken[candidate.model] += 1
            chosen.append(candidate)
    return chosen, left_out


def ladder_rows() -> list[LadderRow]:
    """120 rows."""
    rows = [
        LadderRow(row["model"], int(row["image"]), "channels_last" in row["precision"], int(row["largest_batch"]))
        for row in _rows("fit_ladder.csv")
    ]
    random.Random(SEED).shuffle(rows)
    return rows[:LADDER_ROWS]


def op_rows() -> list[tuple[str, float]]:
    """Name and published live peak in MiB."""
    return [(row["case"], float(row["peak_live_mib"])) for row in _rows("op_level.csv")]
