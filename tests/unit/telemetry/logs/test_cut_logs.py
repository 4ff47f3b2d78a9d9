"""Files that end inside a line: a number of which half may be missing is none, and is said. The rest counts."""

from __future__ import annotations

import gzip
import random

import pytest
from log_samples import ALL, DMON, EXPORTER, MIB, PMON, QUERY, TABLE, TWO_ROWS, UUIDS, opened_figures, read, values
from training_samples import LLM_C, TITAN, TRAININGS, columns, opened

from desktop_app.telemetry.logs.kinds import OpenLog, open_log
from desktop_app.telemetry.logs.log_lines import is_open, numbered_lines


def _said(log: OpenLog, line: int) -> bool:
    return any(item.line == line and "the file ends inside line" in item.why for item in log.notes.left_out)


@pytest.mark.parametrize("end", ["6", "63", "5.", "1e-", "[N/A", "12 M", "30 Mi", "P1", "0x00", "na", "GeForce RTX 30"])
def test_the_last_value_may_be_half_of_one(end: str) -> None:
    ((_, line),) = numbered_lines("5 %, " + end)
    assert is_open(line)
    assert not any(is_open(line) for _, line in numbered_lines(f"5 %, {end}\n"))
    assert not any(is_open(line) for _, line in numbered_lines(f"5 %, {end}\r"))


@pytest.mark.parametrize(
    "end", ["62 %", "30 MiB", "[N/A]", "300.5 W", "1980 MHz", "}", '"6"', "1.5GiB", "21ms", UUIDS[1]]
)
def test_a_value_with_its_unit_or_mark_is_whole(end: str) -> None:
    ((_, line),) = numbered_lines("5 %, " + end)
    assert not is_open(line)


@pytest.mark.parametrize("packed", [False, True])
def test_a_csv_cut_in_its_last_number(packed: bool) -> None:
    """61 degrees cut to 6 are not 6 degrees; the rest of the row stands."""
    data = TWO_ROWS.removesuffix("1\n").encode()
    log = open_log(gzip.compress(data) if packed else data)
    first, last = log.records
    assert (values(first)["temperature_c"], values(first)["power_average_w"]) == (60.0, 300.5)
    assert values(last) == {"utilization_percent": 91.0, "memory_used_bytes": 10001 * MIB, "power_average_w": 301.5}
    assert last.facts["total_bytes"].value == 24576 * MIB
    assert _said(log, 3)


@pytest.mark.parametrize(
    ("kept", "wanted"),
    [
        ("91 %, 10001 MiB, 24576 MiB, 301.5 W", {"utilization_percent", "memory_used_bytes", "power_average_w"}),
        ("91 %, 10001 MiB, 24576 MiB, 301.", {"utilization_percent", "memory_used_bytes"}),
        ("91 %, 10001 MiB, 245", {"utilization_percent", "memory_used_bytes"}),
        ("91 %, 100", {"utilization_percent"}),
        ("9", None),
        ("", None),
    ],
)
def test_a_csv_row_with_fewer_cells(kept: str, wanted: set[str] | None) -> None:
    before, row = TWO_ROWS[: TWO_ROWS.index("91 %")], kept
    records, log = read(before + row)
    assert [record.readings.keys() for record in records[1:]] == ([] if wanted is None else [wanted])
    assert all(record.facts.get("total_bytes") is None or "24576" in kept for record in records[1:])
    assert _said(log, 3)


def test_a_row_whose_card_went_with_the_cut() -> None:
    records, log = read("utilization.gpu [%], temperature.gpu, index\n5 %, 40, 10\n6 %, 41, 1")
    assert [record.card.index for record in records] == [10]
    assert _said(log, 3)


def test_a_name_that_is_cut_is_no_other_card() -> None:
    records, _ = read("index, power.draw [W], name\n0, 50 W, Tesla T4\n0, 51 W, Tesl")
    assert [(record.card.name, values(record)) for record in records] == [
        ("Tesla T4", {"power_w": 50.0}),
        ("Tesla T4", {"power_w": 51.0}),
    ]


def test_monitors_cut() -> None:
    records, log = read(DMON.rstrip("\n"))  # its last cell is tviol, which is none of our fields
    assert values(records[2]) == values(read(DMON)[0][2])
    assert _said(log, 5)
    records, log = read(DMON[: DMON.index("1236") + 3])
    assert values(records[2])["sm_clock_mhz"] == 2520.0
    assert "memory_used_bytes" not in records[2].readings
    records, _ = read(PMON[: PMON.index("gpu_burn") + 3])
    assert [process.name for process in records[2].processes] == [None]
    records, _ = read(PMON[: PMON.index("21181") + 3])
    assert len(records) == 2


def test_a_sample_of_prometheus_cut() -> None:
    """2.21249536e+08 bytes cut to 2.21."""
    records, log = read(EXPORTER[: EXPORTER.index("2.2124") + 4])
    assert values(records[0]) == {"sm_clock_mhz": 765.0, "fan_percent": 38.0}
    assert _said(log, 5)
    dcgm = ALL["dcgm"]
    records, _ = read(dcgm[: dcgm.index("20481 17840") + 11])  # only its time is cut
    assert (values(records[0])["memory_used_bytes"], records[0].stamp.seconds) == (20481 * MIB, 1784019600.25)
    records, _ = read(dcgm[: dcgm.index("20481 17840") + 3])
    assert values(records[0]) == {"utilization_percent": 64.0}


def test_a_query_in_words_cut() -> None:
    records, log = read(QUERY[: QUERY.index(": 40 C") + 3])
    assert "temperature_c" not in records[0].readings
    assert values(records[0])["utilization_percent"] == 71.0
    assert _said(log, 1 + QUERY[: QUERY.index(": 40 C")].count("\n"))


def test_a_table_cut() -> None:
    records, _ = read(TABLE[: TABLE.index("37%") + 1])
    assert values(records[0])["memory_used_bytes"] == 1234 * MIB
    assert "utilization_percent" not in records[0].readings
    records, _ = read(TABLE[: TABLE.index("37%") + 3])
    assert values(records[0])["utilization_percent"] == 37.0
    records, _ = read(TABLE[: TABLE.index("40960MiB") + 3])
    assert records[0].facts == {}
    records, _ = read(TABLE[: TABLE.index("1234MiB") + 7])
    assert (records[0].facts, "memory_used_bytes" in records[0].readings) == ({}, False)
    assert values(records[0])["temperature_c"] == 36.0


def test_lines_of_trainings_cut() -> None:
    log = opened(LLM_C.removesuffix("887\n"))
    assert columns(log.training, "tel") == [(0, 10.983), (250, 6.3097)]
    assert _said(log, 4)
    log = opened(TITAN[: TITAN.index("tps: 1,934") + 7])
    assert columns(log.training, "loss")[-1] == (9, 8.9234)
    assert (len(columns(log.training, "loss")), len(log.training.values()["mfu [%]"])) == (9, 8)
    log = opened("step 0: train loss 4.2874, val loss 4.2823\nstep 5: train loss 4.1874, val loss 4.1")
    assert log.training.values() == {"train loss": [4.2874, 4.1874], "val loss": [4.2823]}
    for lines in ("iter 5: loss 2.9", "0 train 10.9", "val loss 4.2", "s:60000 tel:2.92"):
        assert len(opened("step 0: train loss 4.2874, val loss 4.2823\n" + lines).training) == 1


def test_metrics_cut() -> None:
    log = opened("epoch,step,train_loss,lr\n0,1,2.50,0.5\n0,2,2.25,0.2")
    assert log.training.values() == {"epoch": [0, 0], "train_loss": [2.5, 2.25], "lr": [0.5]}
    assert _said(log, 3)
    log = opened("epoch,step,train_loss\n0,1,2.50\n0,2")
    assert log.training.values() == {"epoch": [0], "train_loss": [2.5]}
    log = opened('{"step":1,"loss":2.5}\n{"step":2,"loss":2.25}')
    assert log.training.values() == {"loss": [2.5, 2.25]}
    log = opened('{"step":1,"loss":2.5}\n{"step":2,"loss":2')
    assert log.training.values() == {"loss": [2.5]}
    assert _said(log, 2)


@pytest.mark.parametrize("kind", [*ALL, *TRAININGS, "llm.c", "torchtitan"])
def test_a_cut_file_says_nothing_that_the_whole_one_does_not(kind: str) -> None:
    text = {**ALL, **TRAININGS, "llm.c": LLM_C, "torchtitan": TITAN}[kind]
    whole = opened_figures(text)
    rng = random.Random(f"cuts {kind}")
    for place in sorted(rng.sample(range(1, len(text)), min(150, len(text) - 1))):
        assert opened_figures(text[:place]) - whole == set(), repr(text[max(0, place - 60) : place])


def test_times_in_seconds_whose_end_mark_was_cut() -> None:
    """OpenMetrics has seconds where the Prometheus text has milliseconds, and says so in its last line."""
    text = 'nvidia_smi_utilization_gpu_ratio{uuid="aa"} 0.65 1784019600.25\n# EOF\n'
    for whole in (
        text,
        text.removesuffix("# EOF\n"),
        text.replace("1784019600.25", "1784019600250").removesuffix("# EOF\n"),
    ):
        records, _ = read(whole)
        assert records[0].stamp.seconds == 1784019600.25
