from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.ui.texts import numbers


def plain(text: str) -> str:
    return text.replace(numbers.NBSP, " ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (45.4, "45 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (240, "4 min"),
        (725, "12 min"),
        (4320, "1 h 12 min"),
        (7200, "2 h"),
        (86_400 * 2 + 3600 * 4, "2 d 4 h"),
        (86_400 * 30, "30 d"),
        (-5, "0 s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert plain(numbers.duration(seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.0, "5 s"), (17.0, "15 s"), (203.0, "3 min 20 s"), (598.0, "10 min"), (3700.0, "1 h 2 min")]
)
def test_about_is_as_coarse_as_a_forecast(seconds: float, text: str) -> None:
    assert plain(numbers.about(seconds)) == text


def test_time_range_reads_outwards() -> None:
    """The interval may only grow by rounding: 2:52 to 4:03 is said as 2:50 to 4:10."""
    assert numbers.time_range(172.0, 243.0) == "2:50 to 4:10"
    assert numbers.time_range(8.2, 12.4) == "0:05 to 0:15"
    assert plain(numbers.time_range(5400.0, 9000.0)) == "1 h 30 min to 2 h 30 min"


@given(low=st.floats(5.0, 7000.0), width=st.floats(0.0, 7000.0), share=st.floats(0.0, 1.0))
def test_the_duration_said_lies_in_the_interval_said(low: float, width: float, share: float) -> None:
    """Not "in about 35 s (0:36 to 0:39)"."""
    said = numbers.time_range(low, low + width)
    if "h" in said:
        return  # both are rounded alike there
    first, last = (_clock_s(text) for text in said.split(" to "))
    assert first <= low
    assert low + width <= last
    spoken_s = _spoken_s(plain(numbers.about(low + share * width)))
    assert first <= spoken_s <= last


def _clock_s(clock: str) -> int:
    return sum(int(part) * 60**power for power, part in enumerate(reversed(clock.split(":"))))


def _spoken_s(text: str) -> int:
    parts = text.split()
    return sum(int(n) * {"s": 1, "min": 60, "h": 3600}[unit] for n, unit in zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (3 * KIB, "3 KiB"),
        (512 * MIB, "512 MiB"),
        (6 * GIB, "6.00 GiB"),
        (5 * 2**40, "5.00 TiB"),
        (-int(0.34 * GIB), "−348 MiB"),
    ],
)
def test_size(size: int, text: str) -> None:
    assert plain(numbers.size(size)) == text


def test_size_range_names_a_unit_once_where_it_is_one() -> None:
    assert plain(numbers.size_range(4.2 * GIB, 4.6 * GIB)) == "4.2 – 4.6 GiB"
    assert plain(numbers.size_range(900 * MIB, 1.2 * GIB)) == "900 MiB – 1.2 GiB"
    assert plain(numbers.size_range(4.56 * GIB, 4.58 * GIB)) == "4.6 GiB"


def test_small_size_keeps_a_tenth() -> None:
    assert plain(numbers.small_size(9.2 * MIB)) == "9.2 MiB"
    assert plain(numbers.small_size(700 * KIB)) == "700 KiB"


@pytest.mark.parametrize(
    ("seconds", "half", "text"),
    [
        (4320, 240, "1 h 12 min ± 4"),
        (4320, 0.5, "1 h 12 min"),
        (4320, 5400, "1 h 12 min ± 1 h 30 min"),
        (200, 20, "3 min 20 s ± 20 s"),
        (86_400 * 2, 7200, "2 d ± 2 h"),
    ],
)
def test_with_uncertainty(seconds: float, half: float, text: str) -> None:
    assert plain(numbers.with_uncertainty(seconds, half)) == text


def test_numbers_keep_their_place() -> None:
    assert numbers.integer(1840) == "1,840"
    assert numbers.integer(-1840) == "−1,840"
    assert numbers.decimal(0.1824, 3) == "0.182"
    assert plain(numbers.percent(94.06, 1)) == "94.1 %"


def test_sentences_leave_out_the_empty() -> None:
    assert numbers.sentences("One.", "", "Two.") == "One. Two."
    assert numbers.sentences() == ""


@given(st.floats(min_value=0, max_value=1e9))
def test_no_duration_breaks_over_a_line(seconds: float) -> None:
    assert " " not in numbers.duration(seconds)
    assert " " not in numbers.about(seconds)
