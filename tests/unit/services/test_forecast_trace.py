"""Recorded runs as CSV: everything that people's files hold, one clear line for what cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_app.cli import run
from desktop_app.core.errors import ConfigError
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.trace_replay import replay
from desktop_app.forecast.trace_rows import TRACE_COLUMNS, TraceRow
from desktop_app.services.forecast_report import forecast_trace
from desktop_app.services.forecast_trace import TraceFile, write_rows

HEADER = "t_s,step,phase,live_after_bytes,live_peak_bytes,capacity_bytes,event"


def file_of(folder: Path, content: str | bytes) -> Path:
    path = folder / "trace.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(folder: Path, content: str | bytes) -> list[TraceRow]:
    with TraceFile(file_of(folder, content)) as trace:
        return list(trace.rows())


def leak_lines(count: int = 60) -> Iterator[str]:
    yield HEADER
    for step in range(1, count + 1):
        live = 4 * GIB + 4 * MIB * step
        yield f"{step / 10},{step},train,{live},{live + 2 * GIB},{16 * GIB},"


LEAK = "\n".join(leak_lines()) + "\n"
ROW = TraceRow(
    t_s=0.5, step=3, phase="train", live_after_bytes=1024, live_peak_bytes=2048, capacity_bytes=4096, event="epoch end"
)
LINE = "0.5,3,train,1024,2048,4096,epoch end"


@pytest.mark.parametrize(
    "content",
    [
        f"{HEADER}\n{LINE}\n",
        f"{HEADER}\n{LINE}",  # nobody has ended the last line
        f"\ufeff{HEADER}\r\n{LINE}\r\n",
        f"{HEADER}\n\n{LINE}\n,,,,,,\n",
        f"# made by hand\n{HEADER}\n{LINE}\n",
        f"{HEADER}\n{LINE}\n".replace(",", ";"),
        f"sep=;\n{HEADER}\n{LINE}\n".replace(",", ";"),
        f"{HEADER}\n{LINE}\n".replace(",", "\t"),
        HEADER.replace("_", " ").upper() + f"\n{LINE}\n",
        HEADER.replace(",", " , ").replace("_", "-").title() + f"\n{LINE.replace(',', ' , ')}\n",
        f"{HEADER},my_own\n{LINE},17\n",
        f'{HEADER}\n0.5,3,"train","1,024","2,048",4_096,epoch end\n',
        f"{HEADER}\n5e-1,3.0,train,1 KiB,2KiB,4.0 kib,epoch end\n",
        f"{HEADER}\n{LINE},,\n",
    ],
    ids=lambda content: repr(content[:30]),
)
def test_the_same_row_in_many_hands(content: str, tmp_path: Path) -> None:
    assert rows_of(tmp_path, content) == [ROW]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    assert rows_of(tmp_path, f"{HEADER}\n{LINE}\n".encode(encoding)) == [ROW]


def test_gzip(tmp_path: Path) -> None:
    assert rows_of(tmp_path, gzip.compress(f"{HEADER}\n{LINE}\n".encode())) == [ROW]


@pytest.mark.parametrize("unknown", ["", "nan", "NaN", "null", "None", "N/A", "[N/A]", "-", "18446744073709551615"])
def test_unknown_is_unknown(unknown: str, tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, f"step,device_used_bytes\n1,{unknown}\n")
    assert row == TraceRow(step=1)


def test_a_short_row_leaves_the_rest_unknown(tmp_path: Path) -> None:
    assert rows_of(tmp_path, f"{HEADER}\n0.5,3\n") == [TraceRow(t_s=0.5, step=3)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b,c\n1,2,3\n", "line 1: names none of the columns"),
        ("1,2,3\n", "names none of the columns"),
        ("step,step\n1,2\n", "names the column step twice, at 1 and 2"),
        ("step,Step \n1,2\n", "names the column step twice"),
        ("step;t_s\n1;0,5\n", "line 2: column 2 (t_s): '0,5' has a decimal comma; write 0.5"),
        ("step,t_s\n1,inf\n", "column 2 (t_s): 'inf' is infinite, which no figure is"),
        ("step,live_after_bytes\n1,-Infinity\n", "'-Infinity' is infinite, which no figure is"),
        ("step,live_after_bytes\n1,GB\n", "'GB' is not a size"),
        ("step,live_after_bytes\n1,5 GB\n", "'5 GB' has a unit that means two things"),
        ("step,step_s\n1,-1\n", "'-1' is negative, which no duration is"),
        ("step,capacity_bytes\n1,-1\n", "'-1' is negative; leave the cell empty"),
        ("step,capacity_bytes\n1,24 GB\n", "write bytes, or KiB, MiB, GiB"),
        (
            "step,capacity_bytes\n1,2\n2,many\n",
            "line 3: column 2 (capacity_bytes): 'many' is not a size; write bytes as a number",
        ),
        ("step,capacity_bytes\n1.5,2\n", "column 1 (step): '1.5' is not whole; write a whole number"),
        ("step,capacity_bytes\n1,1,024\n", "line 2: has 3 cells, the header has 2"),
        ("step,event\n1,\0\n", "is not text"),
        ('step,event\n1,"never ended\n2,x\n' + "x" * 200_000, "is a quote not closed?"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", "is not text"),
        (b"step,event\n1,\xff\xfe\xfa\n", "is not text; a trace is a CSV file in UTF-8"),
        (gzip.compress(LEAK.encode(), mtime=0)[:-200], "is damaged"),
        ("step," + "x" * (1 << 20), "is longer than any row"),
    ],
    ids=lambda value: repr(value[:25]),
)
def test_what_cannot_be_read_is_one_line(
    content: str | bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_of(tmp_path, content)
    assert run(["forecast", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert str(path) in error


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, reason in ((tmp_path / "none.csv", "No such file"), (tmp_path, "Is a directory")):
        assert run(["forecast", str(path)]) == 2
        assert reason in capsys.readouterr().err


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_lines_and_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["forecast", "--json", str(file_of(tmp_path, LEAK))]) == 0
    *alerts, summary = said(capsys)
    (alert,) = alerts
    assert (alert["cause"], alert["severity"]) == ("leak", "likely")
    for name in ("cause", "severity", "eta_steps", "eta_interval"):
        assert summary[name] == alert[name]
    assert summary["first_alert_step"] == alert["step"]
    # 16 GiB - 4 GiB - 2 GiB at 4 MiB a step: full at step 2,560.
    eta, first = summary["eta_steps"], summary["first_alert_step"]
    assert isinstance(eta, float)
    assert isinstance(first, int)
    assert first + eta == pytest.approx(2560, rel=0.02)
    chances = summary["p_oom"]
    assert isinstance(chances, dict)
    assert chances["1"] <= chances["10"] <= chances["100"] <= chances["run"]


@pytest.mark.parametrize("content", [f"{HEADER}\n", f"{HEADER}\n{LINE}\n", LEAK.replace(str(16 * GIB), "")])
def test_nulls_when_quiet(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["forecast", "--json", str(file_of(tmp_path, content))]) == 0
    (summary,) = said(capsys)
    for name in ("first_alert_step", "cause", "severity", "eta_steps", "eta_interval", "p_oom"):
        assert summary[name] is None


@pytest.mark.parametrize("content", [f"{HEADER}\n", LEAK.replace(str(16 * GIB), "")], ids=["no rows", "no capacity"])
def test_what_cannot_be_known_is_null(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file_of(tmp_path, content))
    assert run(["forecast", "--json", path]) == 0
    (summary,) = said(capsys)
    assert summary["at_end"]["p_oom"] is None  # type: ignore[index]
    assert run(["forecast", path]) == 0
    assert "P(out of memory): unknown" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["24GB", "24 gb", "24000MB"])
def test_a_capacity_of_two_meanings_is_refused_as_in_a_cell(
    size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        run(["forecast", "--capacity", size, str(file_of(tmp_path, LEAK))])
    assert error.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "means two things; write bytes, or KiB, MiB, GiB" in line


def test_capacity_can_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file_of(tmp_path, LEAK.replace(str(16 * GIB), "")))
    assert run(["forecast", "--json", "--capacity", "16GiB", path]) == 0
    assert said(capsys)[-1]["first_alert_step"] is not None


def test_words_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["forecast", str(file_of(tmp_path, LEAK))]) == 0
    text = capsys.readouterr().out
    assert "out of memory likely in about" in text
    assert "4 MiB per step" in text
    assert "First alert at step" in text


def test_standard_input_is_answered_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alert is out before the writer has gone on: nothing waits for the end of the file."""
    import os

    reading, writing = os.pipe()
    stdin = io.TextIOWrapper(os.fdopen(reading, "rb"))
    monkeypatch.setattr(sys, "stdin", stdin)
    told = threading.Event()

    class Out(io.StringIO):
        def flush(self) -> None:
            if "alert" in self.getvalue():
                told.set()

    out = Out()
    thread = threading.Thread(target=forecast_trace, args=(Path("-"),), kwargs={"as_json": True, "out": out})
    thread.start()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(LEAK)
        pipe.flush()
        assert told.wait(30), "no alert while the file is open"
    thread.join(30)
    stdin.close()
    assert json.loads(out.getvalue().splitlines()[-1])["first_alert_step"]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows = [ROW, TraceRow(t_s=0.1 + 0.2, step=4, event='said "so", twice', spills=1, host_used_bytes=7)]
    out = io.StringIO()
    assert write_rows(rows, out) == 2
    assert rows_of(tmp_path, out.getvalue()) == rows
    assert out.getvalue().splitlines()[0] == ",".join(TRACE_COLUMNS)


def test_memory_is_flat_over_a_long_file(tmp_path: Path) -> None:
    line = f"{LINE}\n"
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write(f"{HEADER}\n")
        for _ in range(30):
            file.write(line * 200)
    tracemalloc.start()
    with TraceFile(path) as trace:
        rows = trace.rows()
        for _ in range(2000):
            next(rows)
        early = tracemalloc.get_traced_memory()[0]
        assert sum(1 for _ in rows) == 4_000
        late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 64 * 1024


def _read(path: Path) -> list[TraceRow] | None:
    """The rows, or ``None`` after an error for users. Anything else is a traceback, and fails."""
    try:
        with TraceFile(path) as trace:
            return list(trace.rows())
    except ConfigError:
        return None


def test_two_thousand_damaged_files_end_in_a_line_or_an_answer(tmp_path: Path) -> None:
    rng = random.Random(4)
    whole = "\n".join(leak_lines(6)).encode()
    noise = [
        b",",
        b";",
        b"\n",
        b'"',
        b"\0",
        b"-",
        b"1e999",
        b"nan",
        b"\xff",
        b"9" * 30,
        b"train",
        b"\t",
        b"save end",
        b"oom",
    ]
    path = tmp_path / "trace.csv"
    answers = errors = 0
    for number in range(2000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at : at + rng.randint(1, 20)] = b""
                case 1:
                    data[at:at] = rng.choice(noise)
                case 2:
                    data[at] = rng.randrange(256)
                case _:
                    del data[at:]
            if not data:
                break
        path.write_bytes(data)
        rows = _read(path)
        errors += rows is None
        if rows is not None and number % 10 == 0:
            list(replay(rows))
            answers += 1
    assert answers > 20
    assert errors > 200


def test_a_line_that_is_no_text_is_not_put_where_it_is_not(tmp_path: Path) -> None:
    """Files are decoded in blocks of 8 KiB: the line at fault lies behind those that were read, not among them."""
    rows = "".join(f"{step},{10**9 + step}\n" for step in range(1, 2001))
    path = tmp_path / "run.csv"
    path.write_bytes(f"step,live_after_bytes\n{rows}".encode() + b"2001,\xe9\n")
    with pytest.raises(ConfigError) as caught, TraceFile(path) as trace:
        list(trace.rows())
    found = re.search(r"after line (\d+), is not text", str(caught.value))
    assert found is not None
    assert 1000 < int(found[1]) < 2002


def test_a_card_of_no_bytes_is_one_that_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.csv"
    lines = [f"{step},{step / 10},{10**9 + step * 10**7},{12 * 10**8 + step * 10**7},0" for step in range(1, 100)]
    path.write_text("\n".join(["step,t_s,live_after_bytes,reserved_peak_bytes,capacity_bytes", *lines]) + "\n")
    assert run(["forecast", str(path), "--json"]) == 0
    output = capsys.readouterr()
    summary = json.loads(output.out.splitlines()[-1])
    assert (summary["first_alert_step"], summary["capacity_bytes"]) == (None, None)
    assert "give --capacity" in output.err
