"""Peaks of single operators on real cards, from public benchmarks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.memory.tracing.op_cases import CASES, op_peak


@pytest.mark.parametrize("name", list(CASES))
def test_published_peaks_of_single_operators(on_rung: Callable[..., float], name: str) -> None:
    assert on_rung(op_peak, name=name) == pytest.approx(CASES[name][3], rel=0.0005)
