"""Not there and not measured are both NaN to a reader of rows, and different to a curve."""

from __future__ import annotations

import math

import numpy as np

from desktop_app.core.missing import ABSENT, NOT_MEASURED, drawable, is_absent


def test_absent_is_a_nan_that_survives_copies() -> None:
    assert math.isnan(ABSENT)
    rows = np.array([[1.0, ABSENT, math.nan], [ABSENT, 2.0, -math.nan]])
    expected = [[False, True, False], [True, False, False]]
    assert is_absent(rows).tolist() == expected
    assert is_absent(rows.T.copy().T.copy()).tolist() == expected
    assert is_absent(np.array(rows.tolist())).tolist() == expected


def test_no_arithmetic_makes_an_absent_value() -> None:
    with np.errstate(invalid="ignore"):
        made = np.array([np.inf, 0.0]) * np.array([0.0, np.nan])
    assert np.isnan(made).all()
    assert not is_absent(made).any()


def test_drawable_values_are_finite_gaps_or_not_measured() -> None:
    drawn = drawable(np.array([1.5, math.nan, math.inf, -math.inf, ABSENT]))
    assert drawn[0] == 1.5
    assert np.isnan(drawn[1:4]).all()
    assert drawn[4] == NOT_MEASURED


def test_values_beyond_float32_are_drawn_at_its_limit() -> None:
    limit = float(np.finfo(np.float32).max)
    stored = np.array([1e300, -1e300, 3.0])
    assert drawable(stored).tolist() == [limit, -limit, 3.0]
    assert stored[0] == 1e300
