"""Texts of sizes, as windows, reports and torch's own messages write them."""

from __future__ import annotations

import pytest

from desktop_app.core.units import GIB, KIB, MIB, TIB, format_bytes, format_torch_size


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1 KiB"),
        (1.5 * KIB, "2 KiB"),
        (512 * MIB, "512 MiB"),
        (GIB - MIB, "1023 MiB"),
        (GIB, "1.00 GiB"),
        (6 * GIB, "6.00 GiB"),
        (5.914 * GIB, "5.91 GiB"),
        (80 * GIB, "80.00 GiB"),
        (1023.5 * GIB, "1023.50 GiB"),
        (TIB, "1.00 TiB"),
        (1024**4 + 256 * 1024**3, "1.25 TiB"),
        (-300 * MIB, "\N{MINUS SIGN}300 MiB"),
    ],
)
def test_bytes_have_two_decimals_from_one_gibibyte(size_bytes: float, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1.25 * GIB, "+1.25 GiB"), (-1.25 * GIB, "\N{MINUS SIGN}1.25 GiB")],
)
def test_a_difference_has_a_sign(size_bytes: float, text: str) -> None:
    assert format_bytes(size_bytes, signed=True) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (512, "512 bytes"),
        (KIB, "1024 bytes"),
        (KIB + 1, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (20 * MIB, "20.00 MiB"),
        (GIB, "1024.00 MiB"),
        (int(1.5 * GIB), "1.50 GiB"),
        (23_646_633_984, "22.02 GiB"),
    ],
)
def test_torch_writes_two_decimals_and_takes_the_next_unit_late(size_bytes: int, text: str) -> None:
    assert format_torch_size(size_bytes) == text
