"""Lowest, mean and highest of a stretch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from desktop_app.core.store import History
from desktop_app.services.field_summary import share_of_bits, summarise


def test_exact_while_the_rows_are_held() -> None:
    history = History(("power_w", "fan_percent"), capacity=1000)
    for second in range(100):
        slow = {"fan_percent": float(second)} if second % 10 == 0 else {}
        history.append(float(second), {"power_w": math.nan if 40 <= second < 50 else 100.0 + second, **slow})
    found = summarise(history, "power_w", 30.0, 59.0)
    assert found is not None
    values = [100.0 + second for second in (*range(30, 40), *range(50, 60))]
    assert (found.low, found.high, found.exact) == (130.0, 159.0, True)
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.first, found.last) == (130.0, 159.0)
    fan = summarise(history, "fan_percent", 15.0, 45.0)
    assert fan is not None
    assert (fan.low, fan.mean, fan.high) == (20.0, 30.0, 40.0)


def test_nothing_measured_is_no_zero() -> None:
    history = History(("power_w",), capacity=100)
    assert summarise(history, "power_w", 0.0, 10.0) is None
    history.append_gap(1.0)
    assert summarise(history, "power_w", 0.0, 10.0) is None
    history.append(2.0, (50.0,))
    assert summarise(history, "power_w", 0.0, 1.5) is None


def test_long_history_keeps_its_ends() -> None:
    history = History(("power_w",), capacity=1000)
    rng = np.random.default_rng(2)
    values = 100.0 + 10.0 * np.sin(np.arange(20_000) / 500) + rng.normal(0, 1, 20_000)
    values[3000] = 400.0
    for second, value in enumerate(values.tolist()):
        history.append(float(second), (value,))
    found = summarise(history, "power_w", 0.0, 20_000.0)
    assert found is not None
    assert not found.exact
    assert found.high == pytest.approx(400.0, rel=1e-6)
    assert found.low == pytest.approx(values.min(), rel=1e-6)
    assert found.mean == pytest.approx(values.mean(), rel=0.02)


def test_shares_of_bits() -> None:
    history = History(("throttle_reasons", "fan_percent"), capacity=100)
    for second in range(40):
        bits = 0x4 | (0x20 if second >= 30 else 0)
        history.append(float(second), {"throttle_reasons": bits, "fan_percent": 1.0})
        history.append(second + 0.5, {"fan_percent": 1.0})  # nobody asked
    history.append(40.0, (math.nan, 1.0))
    assert share_of_bits(history, "throttle_reasons", 0.0, 50.0) == {0x4: 1.0, 0x20: 0.25}
    assert share_of_bits(history, "throttle_reasons", 35.0, 39.0) == {0x4: 1.0, 0x20: 1.0}
    assert share_of_bits(history, "throttle_reasons", 60.0, 90.0) == {}
