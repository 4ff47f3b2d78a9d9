"""2,000 damaged logs: an error line, or a part with a list of the rest; no exception, no number from nowhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from log_samples import ALL, strange_values
from training_samples import BY_TENSORBOARD, LLM_C, TITAN, TRAININGS, opened, strange_events, strange_scalars

from desktop_app.core.steps import STEP_COLUMNS
from desktop_app.core.telemetry import ALL_GPU_FIELDS
from desktop_app.services.import_runs import RunBook
from desktop_app.telemetry.logs.kinds import UnknownKindError, open_log
from desktop_app.telemetry.logs.log_lines import decoded, unpacked

_PIECES = (
    b"\n",
    b",",
    b"|",
    b'"',
    b"<",
    b">",
    b"{",
    b"}",
    b" ",
    b"-",
    b"\x00",
    b"9" * 400,
    b"[N/A]",
    b"1e999",
    b"\xff\xfe",
    b"&a;",
    b"%",
)
_PER_KIND = 223  # times nine kinds: 2,007


def mutated(data: bytes, rng: random.Random) -> bytes:
    """``data`` with bytes changed, cut, doubled and put in."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not text:
            break
        place, kind = rng.randrange(len(text)), rng.randrange(7)
        if kind == 0:
            text[place] = rng.randrange(256)
        elif kind == 1:
            del text[place : place + rng.choice((1, 3, 50, 500))]
        elif kind == 2:
            text[place:place] = rng.randbytes(rng.choice((1, 4)))
        elif kind == 3:
            text[place:place] = rng.choice(_PIECES)
        elif kind == 4:
            other = rng.randrange(len(text))
            text[place:place] = text[other : other + rng.choice((10, 100, 1000))]
        elif kind == 5 and rng.random() < 0.3:
            del text[place:]
        else:
            text[place] ^= 1 << rng.randrange(8)
    return bytes(text)


@pytest.mark.parametrize("kind", ALL)
def test_damaged_logs(kind: str) -> None:
    rng = random.Random(f"logs {kind}")
    imported = told = 0
    for _ in range(_PER_KIND):
        data = mutated(ALL[kind].encode(), rng)
        try:
            log = open_log(data)
            records = list(log.records)
        except UnknownKindError:
            told += 1
            continue
        except ValueError as error:
            assert "gzip" in str(error)  # noqa: PT017 - only a byte that made it one
            continue
        assert all(record.readings.keys() <= set(ALL_GPU_FIELDS) for record in records)
        assert all((r.value is None) == (r.reason is not None) for record in records for r in record.readings.values())
        assert strange_values(records, decoded(unpacked(data))) == []
        imported += bool(records)
        told += not records
    assert imported > _PER_KIND // 3, "damage this small leaves something to read in most logs"


def test_the_check_itself_finds_a_number_from_nowhere() -> None:
    records = list(open_log(ALL["csv"].encode()).records)
    assert strange_values(records, ALL["csv"]) == []
    assert ("utilization_percent", 97.0) in strange_values(records, ALL["csv"].replace("97 %", "12 %"))


@pytest.mark.parametrize("kind", [*TRAININGS, "llm.c", "torchtitan"])
def test_damaged_trainings(kind: str) -> None:
    data = {**TRAININGS, "llm.c": LLM_C, "torchtitan": TITAN}[kind].encode()
    rng = random.Random(f"trainings {kind}")
    imported = 0
    for number in range(_PER_KIND):
        damaged = mutated(data, rng)
        try:
            log = opened(damaged)
        except (UnknownKindError, ValueError):
            continue
        assert strange_scalars(log, decoded(unpacked(damaged))) == []
        book = RunBook()
        book.add(number, Path("log"), log.kinds, log.training)
        for run in book.settled():
            assert all(row.values.keys() <= set(STEP_COLUMNS) for row in run.tables["steps"])
            imported += 1
    assert imported > _PER_KIND // 4


def test_damaged_event_files() -> None:
    rng = random.Random("events")
    original = opened(BY_TENSORBOARD)
    imported = told = 0
    for _ in range(2 * _PER_KIND):
        try:
            log = opened(mutated(BY_TENSORBOARD, rng))
        except (UnknownKindError, ValueError):
            continue
        assert strange_events(log, original) == set()
        imported += bool(log.training)
        told += bool(log.notes.left_out)
    assert imported > _PER_KIND
    assert told > _PER_KIND


def test_the_check_of_scalars_finds_a_number_from_nowhere() -> None:
    log = opened(LLM_C)
    assert strange_scalars(log, LLM_C) == []
    assert strange_scalars(log, LLM_C.replace("6.3097", "6.3098")) == [(2, "tel", 6.3097)]
    other = opened(BY_TENSORBOARD[:200])
    assert len(strange_events(opened(BY_TENSORBOARD), other)) > 3
