"""The estimate of a run knows its data."""

from __future__ import annotations

import pytest

from desktop_app.core.units import GIB
from desktop_app.memory.estimate import WARN_LIMITED_BY_DATA
from desktop_app.memory.overheads import CardSpec
from desktop_app.training.config import RunConfig
from desktop_app.training.estimation import estimate_run


def card(capacity_bytes: int) -> CardSpec:
    return CardSpec("test", capacity_bytes, capacity_bytes, "Turing", (7, 5), 22)


@pytest.mark.parametrize(("accumulation", "largest"), [(1, 1600), (4, 400)])
def test_no_batch_is_advised_that_the_data_cannot_fill(accumulation: int, largest: int) -> None:
    """1,600 training images of cats and dogs; far more would fit in 80 GiB."""
    config = RunConfig(accumulation=accumulation)
    answer = estimate_run(config, card(80 * GIB), with_levers=False)
    assert answer.largest_batch == largest
    assert WARN_LIMITED_BY_DATA in answer.warnings


def test_a_small_card_is_limited_by_its_memory() -> None:
    answer = estimate_run(RunConfig(), card(1 * GIB), with_levers=False)
    assert answer.largest_batch is not None
    assert answer.largest_batch < 1600
    assert WARN_LIMITED_BY_DATA not in answer.warnings
