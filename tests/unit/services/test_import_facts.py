"""What does not change of a card: one row alone overrules nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop_app.services.log_import import import_logs

_HEAD = "timestamp, index, memory.used [MiB], memory.total [MiB]\n"
_ROW = "2026/01/01 00:00:{:02d}.000, 0, 70 MiB, {} MiB\n"
_MIB = 1024**2


@pytest.mark.parametrize(
    ("totals", "wanted", "remarked"),
    [
        ((8192, 8192, 81), 8192, 4),
        ((81, 8192, 8192), 8192, 3),  # the second says otherwise, the third decides
        ((8192, 81, 8192), 8192, 3),
        ((8192, 8192), 8192, None),
        ((8192, 4096, 4096), 4096, 3),
    ],
)
def test_the_total_is_what_most_rows_say(
    tmp_path: Path, totals: tuple[int, ...], wanted: int, remarked: int | None
) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text(_HEAD + "".join(_ROW.format(second, total) for second, total in enumerate(totals)))
    found = import_logs([log], parent=tmp_path / "sessions")
    assert found.cards[0].facts["total_bytes"].value == wanted * _MIB
    lines = [line for text, line in found.files[0].notes.remarks.items() if text.startswith("total_bytes")]
    assert lines == ([] if remarked is None else [remarked])


def test_a_total_that_the_file_ends_in_is_none(tmp_path: Path) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text((_HEAD + _ROW.format(0, 8192)).removesuffix("92 MiB\n"))
    found = import_logs([log], parent=tmp_path / "sessions")
    assert "total_bytes" not in found.cards[0].facts
    assert found.cards[0].fields["memory_used_bytes"].last == 70 * _MIB
    assert any("the file ends inside line 2" in item.why for item in found.files[0].notes.left_out)
