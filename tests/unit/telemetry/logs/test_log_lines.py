"""Bytes as numbered lines."""

from __future__ import annotations

import tracemalloc

import pytest

from desktop_app.telemetry.logs.log_lines import numbered_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [(1, "")]),
        ("a\nb", [(1, "a"), (2, "b")]),
        ("a\r\n\nb\n", [(1, "a"), (1, ""), (2, ""), (3, "b"), (4, "")]),
        ("10 %\r20 %\nend", [(1, "10 %"), (1, "20 %"), (2, "end")]),
    ],
)
def test_lines_as_an_editor_counts_them(text: str, lines: list[tuple[int, str]]) -> None:
    assert list(numbered_lines(text)) == lines


def test_many_short_lines_are_not_held_at_once() -> None:
    """A small gzip file can hold hundreds of millions of empty lines."""
    text = "\n" * 200_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in numbered_lines(text)) == 200_001
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
