"""``--query-gpu`` CSV: any fields, units in the head or the cells, every way to say that there is no value."""

from __future__ import annotations

import random

import pytest
from log_samples import read, value

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs.kinds import open_log
from desktop_app.telemetry.logs.times import DateOrder


@pytest.mark.parametrize(
    ("head", "cell"),
    [
        ("memory.used [MiB]", "12288 MiB"),
        ("memory.used [MiB]", "12288"),
        ("memory.used", "12288 MiB"),
        ("memory.used", "12288"),
    ],
)
def test_mebibytes_wherever_the_unit_stands(head: str, cell: str) -> None:
    """NV-51: 12288 MiB are 12.9 GB."""
    records, _ = read(f"index, {head}\n0, {cell}\n")
    assert value(records[0], "memory_used_bytes") == 12288 * 1024**2 == 12_884_901_888


def test_a_megabyte_is_not_a_mebibyte() -> None:
    records, _ = read("index, memory.used [MB]\n0, 12288\n")
    assert value(records[0], "memory_used_bytes") == 12_288_000_000


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("[N/A]", Reason.NOT_SUPPORTED),
        ("[Not Supported]", Reason.NOT_SUPPORTED),
        ("N/A", Reason.NOT_SUPPORTED),
        ("[Unknown Error]", Reason.UNKNOWN_ERROR),
        ("ERR!", Reason.UNKNOWN_ERROR),
        ("[GPU is lost]", Reason.GPU_LOST),
        ("[Insufficient Permissions]", Reason.NO_PERMISSION),
        ("", Reason.NOT_READ_YET),
        ("18446744073709551615 %", Reason.IMPLAUSIBLE),
        ("104 %", Reason.IMPLAUSIBLE),
    ],
)
def test_every_way_to_have_no_value(cell: str, reason: Reason) -> None:
    records, log = read(f"index, utilization.gpu [%]\n0, {cell}\n")
    assert records[0].readings["utilization_percent"] == Reading(None, reason)
    assert not log.notes.left_out


def test_a_cell_that_is_no_number_is_missing_and_said() -> None:
    records, log = read("index, temperature.gpu, power.draw.instant [W]\n0, 4x, 12 MiB\n")
    assert value(records[0], "temperature_c") is Reason.UNKNOWN_ERROR
    assert value(records[0], "power_w") is Reason.UNKNOWN_ERROR
    assert [(item.line, item.text) for item in log.notes.left_out] == [(2, "4x"), (2, "12 MiB")]


def test_rows_that_do_not_fit_are_left_out_with_their_line() -> None:
    head = "timestamp, index, utilization.gpu [%], temperature.gpu"
    records, log = read(
        f"{head}\n2026/07/14 09:00:44.579, 0, 12 %, 50\n2026/07/14 09:00:45.579, 0\n{head}\n"
        "2026/07/14 09:00:46.579, 1, 7 %, 40\n"
    )
    assert [(r.line, r.card.index, value(r, "utilization_percent")) for r in records] == [(2, 0, 12.0), (5, 1, 7.0)]
    assert records[1].stamp.seconds - records[0].stamp.seconds == pytest.approx(2.0, abs=1e-6)
    assert [(item.line, item.why) for item in log.notes.left_out] == [(3, "2 cells, the header has 4")]


def test_old_card_with_three_fields() -> None:
    """NV-03: GTX 770, 52 °C, fan 52 %, P0, and nothing else."""
    names = "utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W]"
    records, log = read(
        f"name, {names}, clocks.sm [MHz], clocks.mem [MHz], power.limit [W], pcie.link.gen.current, "
        "temperature.gpu, fan.speed [%], pstate\n"
        "NVIDIA GeForce GTX 770, " + "[Not Supported], " * 9 + "52, 52 %, P0\n"
    )
    has = {name: reading.value for name, reading in records[0].readings.items() if reading.value is not None}
    assert has == {"temperature_c": 52.0, "fan_percent": 52.0, "performance_state": 0.0}
    assert {r.reason for r in records[0].readings.values() if r.value is None} == {Reason.NOT_SUPPORTED}
    assert not log.notes.left_out


def test_unified_memory_is_not_a_lost_card() -> None:
    """NV-31: no memory of its own, but load, power and heat. A lost card must not look like that."""
    head = "memory.total [MiB], memory.used [MiB], memory.free [MiB], "
    head += "utilization.gpu [%], power.draw.instant [W], temperature.gpu\n"
    records, _ = read(head + "[N/A], [N/A], [N/A], 0 %, 11.17 W, 35\n" + "[GPU is lost], " * 5 + "[GPU is lost]\n")
    shared, lost = records
    assert value(shared, "memory_used_bytes") is Reason.UNIFIED_MEMORY
    assert shared.facts["total_bytes"] == Reading(None, Reason.UNIFIED_MEMORY)
    assert (value(shared, "power_w"), value(shared, "temperature_c")) == (11.17, 35.0)
    assert {reading.reason for reading in lost.readings.values()} == {Reason.GPU_LOST}


_MEMORY_HEAD = "name, index, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("NVIDIA GB10", Reason.UNIFIED_MEMORY),
        ("Orin (nvgpu)", Reason.UNIFIED_MEMORY),
        ("NVIDIA Thor", Reason.UNIFIED_MEMORY),
        ("NVIDIA GeForce RTX 3090", Reason.NOT_SUPPORTED),
        ("NVIDIA GH200 480GB", Reason.NOT_SUPPORTED),
        ("NVIDIA GB100", Reason.NOT_SUPPORTED),
    ],
)
def test_only_a_part_without_memory_of_its_own_shares_it(name: str, reason: Reason) -> None:
    records, _ = read(f"{_MEMORY_HEAD}{name}, 0, [N/A], [N/A], 0 %, 35\n")
    assert value(records[0], "memory_used_bytes") is reason
    assert records[0].facts["total_bytes"] == Reading(None, reason)


@pytest.mark.parametrize("identity", ["index", "uuid", "gpu_note"])
def test_a_card_that_told_its_memory_does_not_share_it(identity: str) -> None:
    who = "GPU-11111111-2222-3333-4444-555555555555" if identity == "uuid" else "0"
    head = f"{identity}, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu\n"
    records, log = read(f"{head}{who}, 24576 MiB, 100 MiB, 0 %, 35\n{who}, [N/A], [N/A], 0 %, 35\n")
    assert value(records[1], "memory_used_bytes") is Reason.NOT_SUPPORTED
    assert not any("shared" in text for text in log.notes.remarks)


def test_one_good_row_then_unknown_errors() -> None:
    """NV-20: loop mode gives one good row and then no value at all, never the last one or 0."""
    bad = "2026/07/14 09:00:{:02d}.000, [Unknown Error], [Unknown Error]\n"
    records, _ = read(
        "timestamp, utilization.gpu [%], memory.used [MiB]\n2026/07/14 09:00:00.000, 35 %, 1024 MiB\n"
        + "".join(bad.format(s) for s in range(1, 51))
    )
    assert value(records[0], "utilization_percent") == 35.0
    assert len(records) == 51
    assert {reading for r in records[1:] for reading in r.readings.values()} == {Reading(None, Reason.UNKNOWN_ERROR)}


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Tesla T4", "power_w"),
        ("NVIDIA A100-SXM4-80GB", "power_w"),
        ("NVIDIA GeForce RTX 2080 SUPER", "power_w"),
        ("NVIDIA A10G", "power_average_w"),
        ("NVIDIA GeForce RTX 4090", "power_average_w"),
        ("NVIDIA H100 80GB HBM3", "power_average_w"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "power_average_w"),
        ("Quadro RTX 4000", "power_w"),
    ],
)
def test_the_draw_by_the_generation_of_the_card(name: str, field: str) -> None:
    """nvidia-smi --help-query-gpu: power.draw is a one-second average from Ampere on (not GA100), the moment before."""
    records, _ = read(f"name, power.draw [W]\n{name}, 98.14 W\n")
    assert records[0].readings == {field: Reading(98.14)}


def test_unknown_columns_are_kept_as_written() -> None:
    records, _ = read("index, utilization.gpu [%], clocks.max.video [MHz], my_note\n0, 5 %, 1545 MHz, hot today\n")
    assert records[0].raw == {"clocks.max.video [MHz]": "1545 MHz", "my_note": "hot today"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026/07/14 09:00:44.579", 1784019644.579),
        ("2026-07-14T09:00:44Z", 1784019644.0),
        ("2026-07-14 11:00:44+02:00", 1784019644.0),
        ("14.07.2026 09:00:44", 1784019644.0),
        ("14/07/2026 09:00:44", 1784019644.0),
        ("7/14/2026 9:00:44 AM", 1784019644.0),
        ("1784019644.5", 1784019644.5),
    ],
)
def test_dates_of_many_places(text: str, seconds: float) -> None:
    records, log = read(f"timestamp,utilization.gpu [%]\n{text},5 %\n")
    assert records[0].stamp.seconds == pytest.approx(seconds, abs=1e-6)
    assert not log.notes.left_out


def test_a_date_with_two_readings_is_not_guessed() -> None:
    text = "timestamp,utilization.gpu [%]\n03/04/2026 09:00:44,5 %\n"
    records, log = read(text)
    assert records[0].stamp is None
    assert "--dates" in log.notes.left_out[0].why
    days = [read(text, dates=order)[0][0].stamp for order in (DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST)]
    assert [day.seconds for day in days] == [1775206844.0, 1772614844.0]  # 3 April, 4 March


def test_a_spreadsheet_with_semicolons_and_decimal_commas() -> None:
    records, _ = read("index;power.draw.instant [W];temperature.gpu\n0;433,78 W;53\n")
    assert (value(records[0], "power_w"), value(records[0], "temperature_c")) == (433.78, 53.0)


def test_used_beyond_total_is_implausible() -> None:
    records, _ = read("index, memory.total [MiB], memory.used [MiB]\n0, 8192 MiB, 9000 MiB\n")
    assert value(records[0], "memory_used_bytes") is Reason.IMPLAUSIBLE


def test_powershell_writes_utf_16() -> None:
    log = open_log("index, utilization.gpu [%]\r\n0, 12 %\r\n".encode("utf-16"))
    assert [value(record, "utilization_percent") for record in log.records] == [12.0]


def test_processes_under_wddm_have_no_memory() -> None:
    records, _ = read(
        "gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n"
        "00000000:0C:00.0, 2056, C:\\Windows\\dwm.exe, [N/A]\n"
        "00000000:0C:00.0, 77, python, 1005 MiB\n"
    )
    found = [(p.pid, p.name, p.memory_bytes) for r in records for p in r.processes]
    assert found == [
        (2056, "C:\\Windows\\dwm.exe", Reading(None, Reason.NOT_SUPPORTED)),
        (77, "python", Reading(1005 * 1024.0**2)),
    ]


_WORDS = {
    "[N/A]": Reason.NOT_SUPPORTED,
    "[Not Supported]": Reason.NOT_SUPPORTED,
    "[Unknown Error]": Reason.UNKNOWN_ERROR,
    "ERR!": Reason.UNKNOWN_ERROR,
    "[GPU is lost]": Reason.GPU_LOST,
    "[Insufficient Permissions]": Reason.NO_PERMISSION,
    "[GPU requires reset]": Reason.UNKNOWN_ERROR,
}
# Field, head, unit, the largest value, places, and what one is in our unit.
_COLUMNS = (
    ("utilization_percent", "utilization.gpu", "%", 100, 0, 1.0),
    ("memory_utilization_percent", "utilization.memory", "%", 100, 0, 1.0),
    ("memory_used_bytes", "memory.used", "MiB", 81559, 0, 1024.0**2),
    ("power_w", "power.draw.instant", "W", 700, 2, 1.0),
    ("power_average_w", "power.draw.average", "W", 700, 2, 1.0),
    ("power_limit_w", "enforced.power.limit", "W", 700, 2, 1.0),
    ("temperature_c", "temperature.gpu", "", 95, 0, 1.0),
    ("temperature_memory_c", "temperature.memory", "", 95, 0, 1.0),
    ("sm_clock_mhz", "clocks.current.sm", "MHz", 2100, 0, 1.0),
    ("memory_clock_mhz", "clocks.mem", "MHz", 9501, 0, 1.0),
    ("fan_percent", "fan.speed", "%", 100, 0, 1.0),
    ("ecc_uncorrected", "ecc.errors.uncorrected.volatile.total", "", 9, 0, 1.0),
    ("pcie_generation", "pcie.link.gen.current", "", 5, 0, 1.0),
    ("encoder_percent", "utilization.encoder", "%", 100, 0, 1.0),
)


@pytest.mark.parametrize("units", ["both", "head", "cells", "none"])
def test_any_fields_with_any_errors(units: str) -> None:
    """No reading is ever a value that the driver did not give: 40 random logs of random fields and errors."""
    rng = random.Random(f"fields {units}")
    for _ in range(40):
        columns = rng.sample(_COLUMNS, rng.randint(1, len(_COLUMNS)))
        heads = [f"{head} [{unit}]" if unit and units in ("both", "head") else head for _, head, unit, *_ in columns]
        lines, expected = [", ".join(("index", *heads))], []
        for row in range(12):
            cells, wanted = [str(row % 3)], {}
            for field, _, unit, largest, places, scale in columns:
                if rng.random() < 0.3:
                    word = rng.choice(sorted(_WORDS))
                    cells.append(word)
                    wanted[field] = Reading(None, _WORDS[word])
                else:
                    text = f"{rng.uniform(1, largest):.{places}f}"
                    cells.append(f"{text} {unit}".strip() if units in ("both", "cells") else text)
                    wanted[field] = Reading(float(text) * scale)
            lines.append(", ".join(cells))
            expected.append((row % 3, wanted))
        records, log = read("\n".join(lines) + "\n")
        assert [(record.card.index, dict(record.readings)) for record in records] == expected
        assert not log.notes.left_out


def test_details_of_a_card() -> None:
    header = (
        "index, clocks.gr [MHz], clocks.video [MHz], temperature.gpu.tlimit, clocks_throttle_reasons.active, "
        "remapped_rows.uncorrectable, remapped_rows.pending, remapped_rows.failure, "
        "retired_pages.single_bit_ecc.count, retired_pages.double_bit.count, "
        "ecc.errors.corrected.aggregate.total, module.power.draw.instant [W]"
    )
    records, log = read(f"{header}\n0, 1905 MHz, 1665 MHz, -3, 0x0000000000000024, 2, Yes, No, 4, 3, 61, 612.5 W\n")
    assert {name: reading.value for name, reading in records[0].readings.items()} == {
        "graphics_clock_mhz": 1905,
        "video_clock_mhz": 1665,
        "temperature_margin_c": -3,
        "throttle_reasons": 36,
        "remapped_rows_uncorrected": 2,
        "remapping_pending": 1,
        "remapping_failed": 0,
        "retired_pages": 7,
        "ecc_corrected_total": 61,
        "power_module_w": 612.5,
    }
    assert not log.notes.left_out


@pytest.mark.parametrize(
    ("column", "cell", "field"),
    [
        ("remapped_rows.pending", "perhaps", "remapping_pending"),
        ("clocks_event_reasons.active", "0xZZ", "throttle_reasons"),
        ("retired_pages.double_bit.count", "[N/A]", "retired_pages"),
        ("clocks_event_reasons.active", "0xFFFFFFFFFFFFFFFF", "throttle_reasons"),
    ],
)
def test_a_detail_that_is_none_is_missing(column: str, cell: str, field: str) -> None:
    records, _ = read(f"index, utilization.gpu [%], {column}\n0, 5 %, {cell}\n")
    assert records[0].readings[field].value is None
