"""``floodmark import``: the session that it makes, what it says, its exit codes, and that nothing half-made stays."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from desktop_app import cli
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.telemetry import GPU_FIELDS
from desktop_app.services.import_axis import Clock
from desktop_app.services.import_report import as_text
from desktop_app.services.import_result import Import
from desktop_app.services.log_import import import_logs
from desktop_app.services.session_folder import find_resume_offer, sessions

MIB = 1024**2
UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
HEAD = "timestamp, uuid, utilization.gpu [%], memory.used [MiB], my_column\n"


def rows(*cells: str) -> str:
    return HEAD + "".join(f"2026/07/14 09:00:{cell}\n" for cell in cells)


TWO_CARDS = rows(
    f"00.250, {UUIDS[0]}, 97 %, 41234 MiB, a",
    f"00.251, {UUIDS[1]}, [Unknown Error], 533 MiB, b",
    f"01.250, {UUIDS[0]}, 98 %, 41236 MiB, a",
    f"01.251, {UUIDS[1]}, 0 %, [GPU is lost], c",
)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    return tmp_path / "imported"


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(result: Import, query: str) -> list[tuple[Any, ...]]:
    assert result.session is not None
    connection = sqlite3.connect(result.session.database_path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_a_session_like_any_other(tmp_path: Path, parent: Path) -> None:
    result = import_logs([put(tmp_path, "smi.csv", TWO_CARDS)], parent=parent)
    assert [folder.path for folder in sessions(parent)] == [result.session.path]
    assert find_resume_offer(parent) is None  # nothing to go on with
    assert table(result, "SELECT gpu, uuid FROM gpus ORDER BY gpu") == [(1, UUIDS[0]), (2, UUIDS[1])]
    found = table(
        result, "SELECT gpu, t_s, utilization_percent, memory_used_bytes, power_w FROM telemetry ORDER BY t_s"
    )
    assert [(gpu, round(t_s, 6), *rest) for gpu, t_s, *rest in found] == [
        (1, 0.0, 97.0, 41234.0 * MIB, None),
        (2, 0.001, None, 533.0 * MIB, None),
        (1, 1.0, 98.0, 41236.0 * MIB, None),
        (2, 1.001, 0.0, None, None),
    ]
    columns = [row[1] for row in table(result, "PRAGMA table_info(telemetry)")]
    assert columns == ["gpu", "t_s", *GPU_FIELDS]


def test_every_missing_value_has_its_reason_and_unknown_columns_their_text(tmp_path: Path, parent: Path) -> None:
    result = import_logs([put(tmp_path, "smi.csv", TWO_CARDS)], parent=parent)
    reasons = table(result, "SELECT gpu, round(t_s, 3), field, reason FROM import_reasons WHERE reason NOT NULL")
    assert reasons == [
        (2, 0.001, "utilization_percent", "unknown_error"),
        (2, 1.001, "memory_used_bytes", "gpu_lost"),
    ]
    texts = table(result, "SELECT gpu, round(t_s, 3), field, text FROM import_raw")
    assert texts == [(1, 0.0, "my_column", "a"), (2, 0.001, "my_column", "b"), (2, 1.001, "my_column", "c")]
    facts = result.session.read_facts()
    assert facts["ended"]["state"] == "finished"
    assert facts["import"]["kept_as_written"] == ["my_column"]
    assert facts["import"]["first"] == "2026-07-14 09:00:00.250"
    second = facts["import"]["cards"][1]
    assert second["fields"]["memory_used_bytes"]["reasons"] == {"gpu_lost": 1}
    text = as_text(result)
    assert f"Card: {UUIDS[1]}; 2 rows" in text
    assert "utilization_percent: 1 value, 0; 1 n/a (unknown_error)" in text
    assert "Kept as written, not among our fields (1): my_column" in text


def test_files_in_any_order_and_packed(tmp_path: Path, parent: Path) -> None:
    later = put(tmp_path, "2.csv", rows(f"09.000, {UUIDS[0]}, 9 %, 9 MiB, x"))
    earlier = tmp_path / "1.bin"
    earlier.write_bytes(gzip.compress(rows(f"04.000, {UUIDS[0]}, 4 %, 4 MiB, x").encode()))
    result = import_logs([later, earlier], parent=parent)
    assert len(result.cards) == 1
    assert table(result, "SELECT t_s, utilization_percent FROM telemetry ORDER BY t_s") == [(0.0, 4.0), (5.0, 9.0)]


def test_rows_without_times_are_numbered(tmp_path: Path, parent: Path) -> None:
    log = put(tmp_path, "smi.csv", "index, utilization.gpu [%]\n0, 1 %\n1, 2 %\n0, 3 %\n1, 4 %\n")
    numbered = import_logs([log], parent=parent)
    assert numbered.clock is Clock.NONE
    assert "t_s is the number of the row" in as_text(numbered)
    order = "SELECT gpu, t_s, utilization_percent FROM telemetry ORDER BY gpu, t_s"
    assert table(numbered, order) == [(1, 0.0, 1.0), (1, 1.0, 3.0), (2, 0.0, 2.0), (2, 1.0, 4.0)]
    spaced = import_logs([log], parent=parent, interval_s=0.5)
    assert spaced.clock is Clock.INTERVAL
    assert [row[1] for row in table(spaced, order)] == [0.0, 0.5, 0.0, 0.5]
    assert numbered.session.read_facts()["clock_anchor_wall_s"] is None


def test_rows_without_times_beside_others_stay_apart(tmp_path: Path, parent: Path) -> None:
    dmon = "# gpu    pwr     sm\n# Idx      W      %\n    0     70     55\n"
    result = import_logs([put(tmp_path, "log.txt", TWO_CARDS + dmon)], parent=parent)
    assert table(result, "SELECT count(*) FROM telemetry") == [(4,)]
    assert table(result, "SELECT t_s, power_average_w FROM telemetry_untimed") == [(0.0, 70.0)]
    assert "1 row has no time" in as_text(result)


def test_details_have_the_table_that_every_session_has(tmp_path: Path, parent: Path) -> None:
    head = "timestamp, index, utilization.gpu [%], clocks.gr [MHz], temperature.gpu.tlimit\n"
    timed = put(
        tmp_path,
        "a.csv",
        f"{head}2026/07/14 09:00:00, 0, 1 %, 1905 MHz, 22\n2026/07/14 09:00:02, 0, 2 %, 300 MHz, 40\n",
    )
    query = "SELECT t_s, graphics_clock_mhz, temperature_margin_c, video_clock_mhz FROM details ORDER BY t_s"
    assert table(import_logs([timed], parent=parent), query) == [(0.0, 1905.0, 22.0, None), (2.0, 300.0, 40.0, None)]
    untimed = put(tmp_path, "b.csv", "index, clocks.gr [MHz]\n0, 1905 MHz\n0, 1890 MHz\n")
    assert [row[:2] for row in table(import_logs([untimed], parent=parent), query)] == [(0.0, 1905.0), (1.0, 1890.0)]


def test_midnight_in_a_log_of_times_without_dates(tmp_path: Path, parent: Path) -> None:
    dmon = "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 23:59:59      0     70\n 00:00:01      0     71\n"
    result = import_logs([put(tmp_path, "dmon.txt", dmon)], parent=parent)
    assert table(result, "SELECT t_s, power_average_w FROM telemetry ORDER BY t_s") == [(0.0, 70.0), (2.0, 71.0)]
    assert result.clock is Clock.TIME_OF_DAY
    assert "23:59:59 to 00:00:01 (day 2)" in as_text(result)


def test_rows_that_do_not_say_whose_they_are(tmp_path: Path, parent: Path) -> None:
    times = ("00, 1 %", "00, 99 %", "01, 2 %")
    text = "timestamp, utilization.gpu [%]\n" + "".join(f"2026/07/14 09:00:{time}\n" for time in times)
    result = import_logs([put(tmp_path, "smi.csv", text)], parent=parent)
    assert table(result, "SELECT utilization_percent FROM telemetry ORDER BY t_s") == [(1.0,), (2.0,)]
    assert "line 3: a second row of one moment" in as_text(result)
    assert "taken as one" in as_text(result)


def test_the_same_place_in_two_machines_is_two_cards(tmp_path: Path, parent: Path) -> None:
    head = "pci.bus_id, name, temperature.gpu\n"
    one = put(tmp_path, "a.csv", head + "00000000:01:00.0, Tesla T4, 40\n")
    other = put(tmp_path, "b.csv", head + "00000000:01:00.0, NVIDIA L4, 50\n")
    result = import_logs([one, other], parent=parent)
    assert [(card.key, card.card.name) for card in result.cards] == [
        ("bus 00000000:01:00.0", "Tesla T4"),
        ("bus 00000000:01:00.0 #2", "NVIDIA L4"),
    ]


def test_loop_mode_that_only_fails_is_recognised(tmp_path: Path, parent: Path) -> None:
    """NV-20: one good row, then unknown errors for ever: gaps, and a word on what to do."""
    text = rows(
        f"00.000, {UUIDS[0]}, 35 %, 1024 MiB, a",
        *(f"{second:02}.000, {UUIDS[0]}, [Unknown Error], [Unknown Error], a" for second in range(1, 51)),
    )
    result = import_logs([put(tmp_path, "loop.csv", text)], parent=parent)
    found = table(result, "SELECT count(*), count(utilization_percent), count(memory_used_bytes) FROM telemetry")
    assert found == [(51, 1, 1)]
    assert "line 12: 10 rows and more with nothing but Unknown Error" in as_text(result)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, list[str]]:
    code = cli.run(["import", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_exit_codes_and_one_clear_line(tmp_path: Path, parent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, plain = put(tmp_path, "smi.csv", TWO_CARDS), put(tmp_path, "notes.txt", "dear diary\n")
    empty, headless = put(tmp_path, "empty.csv", ""), put(tmp_path, "head.csv", HEAD)
    mismatch = put(tmp_path, "err.txt", "Failed to initialize NVML: Driver/library version mismatch\n")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    damaged = tmp_path / "cut.gz"
    damaged.write_bytes(gzip.compress(TWO_CARDS.encode())[:-12])
    for file, expected, words in (
        (plain, 2, "of no kind that can be read"),
        (empty, 2, "is empty"),
        (tmp_path / "none.csv", 2, "No such file"),
        (nothing, 2, "folder without files"),
        (damaged, 2, "damaged gzip"),
        (headless, 1, "has no row"),
        (mismatch, 1, "reboot"),
    ):
        code, out, errors = run(capsys, file, "--out", parent)
        assert (code, out, len(errors)) == (expected, "", 1), file
        assert words in errors[0]
        assert str(file) in errors[0]
        assert not parent.exists()
    code, out, errors = run(capsys, plain, good, mismatch, "--out", parent)
    assert (code, errors) == (0, [])
    assert "Not read" in out
    assert len(list(sessions(parent))) == 1


def test_a_file_that_is_given_twice_counts_once(tmp_path: Path, parent: Path) -> None:
    log = put(tmp_path, "smi.csv", TWO_CARDS)
    again = tmp_path / "again.csv"
    again.symlink_to(log)
    once, twice = import_logs([log], parent=parent), import_logs([log, log, again], parent=parent)
    assert twice.rows == once.rows == 4
    assert [file.problem for file in twice.files] == [None, *[" is given twice; its rows count once"] * 2]


def test_as_json(tmp_path: Path, parent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, put(tmp_path, "smi.csv", TWO_CARDS + "cut, off\n"), "--json", "--out", parent)
    found = json.loads(out)
    assert code == 0
    assert Path(found["session"]).is_dir()
    assert found["rows"] == 4
    assert found["cards"][0]["fields"]["utilization_percent"] == {
        "values": 2, "min": 97.0, "max": 98.0, "last": 98.0, "reasons": {},
    }  # fmt: skip
    assert found["files"][0]["left_out"] == [{"line": 6, "why": "2 cells, the header has 5", "text": "cut, off"}]


def test_nothing_half_made_stays(tmp_path: Path, parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("desktop_app.services.import_database.ImportDatabase.finish", full)
    with pytest.raises(FloodmarkError, match="disk is full"):
        import_logs([put(tmp_path, "smi.csv", TWO_CARDS)], parent=parent)
    assert list(parent.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    file = put(tmp_path, "a-file", "")
    with pytest.raises(FloodmarkError, match="Cannot write the session"):
        import_logs([put(tmp_path, "smi.csv", TWO_CARDS)], parent=file)


def test_a_name_as_long_as_the_file_is_shortened_on_the_terminal(tmp_path: Path, parent: Path) -> None:
    text = f"timestamp, name, utilization.gpu [%]\n2026/07/14 09:00:00.250, {'A' * 100_000}, 5 %\n"
    result = import_logs([put(tmp_path, "smi.csv", text)], parent=parent)
    assert "  utilization_percent: 1 value, 5" in as_text(result)
    assert max(map(len, as_text(result).splitlines())) < 1_000


def test_a_line_of_megabytes_is_refused_unsearched(tmp_path: Path, parent: Path) -> None:
    result = import_logs([put(tmp_path, "one.txt", "step 03/04/2026 loss " * 250_000)], parent=parent)
    assert "(a line of 5,250,000 characters is none of a tool)" in (result.files[0].problem or "")
    assert result.files[0].unreadable
