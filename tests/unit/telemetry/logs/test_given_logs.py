"""Real captures: the figures that a careful reader takes from each, read by eye and typed in here."""

# ruff: noqa: E501 - tables are read line by line

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from log_samples import MIB, value

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.logs.kinds import OpenLog, open_log
from desktop_app.telemetry.logs.record import LogRecord

FILES: Final = Path(__file__).resolve().parents[5] / "shared" / "cases" / "files"
pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason="the captures are not beside the checkout")

NONE: Final = Reason.NOT_SUPPORTED
# In the order of ``FIELDS``; MiB where bytes are.
FIELDS: Final = (
    "utilization_percent", "memory_utilization_percent", "memory_used_bytes", "power_w", "power_average_w",
    "temperature_c", "sm_clock_mhz", "memory_clock_mhz", "fan_percent", "performance_state", "power_limit_w",
    "encoder_percent", "ecc_uncorrected", "pcie_generation", "pcie_width", "temperature_memory_c",
)  # fmt: skip
ABSENT: Final = "absent"
XML: Final = {
    "a100-sxm4-v12": (
        Reason.MIG,
        Reason.MIG,
        50,
        67.03,
        ABSENT,
        27,
        1275,
        1593,
        NONE,
        0,
        500,
        Reason.MIG,
        0,
        4,
        16,
        44,
    ),
    "a10g": (0, 0, 22, ABSENT, 25.58, 17, 210, 405, 0, 8, 300, 0, 0, 1, 8, NONE),
    "quadro-p2000-v12": (0, 0, 1, 4.61, ABSENT, 34, 139, 405, 46, 8, 75, 0, NONE, 1, 8, NONE),
    "rtx-3060-v12": (0, 0, 116, 11.63, 11.60, 42, 210, 405, 0, 8, 170, 0, NONE, 1, 16, NONE),
    "rtx-3080-v13": (65, 9, 9184, 142.33, 139.62, 27, 1950, 9251, 0, 2, 320, 0, NONE, 4, 16, NONE),
    "rtx-3090-v12": (0, 0, 1, ABSENT, 27.23, 37, Reason.IMPLAUSIBLE, 405, 0, 8, 200, 0, NONE, 1, 16, NONE),
    "rtx-4000-sff-ada-v13": (0, 37, 3534, 8.44, 8.81, 38, 210, 405, 30, 8, 70, 0, NONE, 1, 16, NONE),
    "tesla-t4": (0, 0, 1032, 26.78, ABSENT, 40, 585, 5000, NONE, 0, 70, 0, 0, 3, 8, NONE),
}
# Total, reserved and used BAR1 in MiB, bytes a second out and in, UUID, processes as (pid, MiB).
MORE_XML: Final = {
    "a100-sxm4-v12": (81920, 869, 1, 4000e3, 0, "GPU-513536b6-7d19-9063-b049-1e69664bb298", []),
    "a10g": (23028, 435, 1, 0, 0, "GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94", [(725, 22)]),
    "quadro-p2000-v12": (5120, 66, 5, 0, 0, "GPU-396caaed-39ca-3199-2e68-717cdb786ec6", []),
    "rtx-3060-v12": (12288, 368, 5, 550e3, 500e3, "GPU-d6889ff6-2523-9142-ca3c-1ca3f396a625", []),
    "rtx-3080-v13": (10240, 397, 9218, 1066699e3, 14742333e3, "GPU-19d6d965-2acc-f646-00f8-4c76979aabb4", []),
    "rtx-3090-v12": (24576, 316, 2, 0, 0, "GPU-12345678-aaaa-bbbb-cccc-0123456789ab", []),
    "rtx-4000-sff-ada-v13": (
        20475, 460, 3732, 830e3, 439e3, "GPU-37037c3f-65c8-ec4d-24a9-420204ad8026",
        [(1842, 410), (3190, 451), (4937, 160), (34626, 183)],
    ),
    "tesla-t4": (15360, 388, 5, 0, 0, "GPU-d37e67a5-91dd-3774-a5cb-99096249601a", [(675, 22), (5762, 1005)]),
}  # fmt: skip
MIG: Final = Reason.MIG
CSV: Final = {
    "nvidia-geforce-rtx-2080-super__610.57.04_load": (8, 3, 815, 98.14, NONE, 38, 2070, 7500, 38, 2, 250, 100, NONE, 3, 16, NONE),
    "nvidia-geforce-rtx-4080-super__595.71.05_idle": (0, 23, 596, 28.77, 26.20, 43, 210, 405, 0, 8, 320, 0, NONE, 1, 16, NONE),
    "nvidia-h100-80gb-hbm3__590.48.01_load": (100, 11, 19818, 625.68, 631.95, 59, 1980, 2619, NONE, 0, 700, 0, 0, 5, 16, 54),
    "nvidia-h100-mig__590.48.01_load": (MIG, MIG, 11125, 447.35, 433.78, 53, 1980, 2619, NONE, 0, 700, MIG, 0, 5, 16, 59),
    "nvidia-l40s__595.80_load": (9, 2, 1235, 112.38, 110.23, 54, 2520, 9001, NONE, 0, 350, 60, 0, 4, 16, NONE),
    "win_nvidia-geforce-rtx-2080-super__591.86_idle": (0, 0, 702, 38.92, NONE, 40, 300, 405, 37, 8, 250, 0, NONE, 3, 16, NONE),
    "win_nvidia-geforce-rtx-2080-super__591.86_load": (7, 3, 1296, 97.43, NONE, 45, 2055, 7500, 38, 2, 250, 100, NONE, 3, 16, NONE),
}  # fmt: skip
TOTALS: Final = {
    "2080": (8192, 400),
    "4080": (16376, 434),
    "h100": (81559, 479),
    "l40s": (46068, 609),
    "win_": (8192, 205),
}


def load(*parts: str) -> tuple[list[LogRecord], OpenLog]:
    log = open_log(FILES.joinpath(*parts).read_bytes())
    return list(log.records), log


def figures(record: LogRecord) -> tuple[object, ...]:
    """In the order of ``FIELDS``, bytes in MiB."""
    found = (value(record, field) if field in record.readings else ABSENT for field in FIELDS)
    return tuple(
        figure / MIB if field == "memory_used_bytes" and isinstance(figure, float) else figure
        for field, figure in zip(FIELDS, found, strict=True)
    )


@pytest.mark.parametrize("name", XML)
def test_xml(name: str) -> None:
    records, log = load("smi_xml", f"telegraf_{name}.xml")
    (record,) = records
    assert figures(record) == XML[name]
    total, reserved, bar1, tx, rx, uuid, processes = MORE_XML[name]
    assert (record.facts["total_bytes"].value, record.facts["driver_reserved_bytes"].value) == (
        total * MIB,
        reserved * MIB,
    )
    assert value(record, "bar1_used_bytes") == bar1 * MIB
    assert (value(record, "pcie_tx_bytes_per_s"), value(record, "pcie_rx_bytes_per_s")) == (tx, rx)
    assert record.card.uuid == uuid
    assert [(p.pid, p.memory_bytes.value / MIB) for p in record.processes] == processes
    assert not log.notes.left_out


def test_the_instances_of_the_a100() -> None:
    records, log = load("smi_xml", "telegraf_a100-sxm4-v12.xml")
    instances = [(i.index, i.total_bytes.value / MIB, i.used_bytes.value / MIB) for i in records[0].instances]
    assert instances == [(number, 19968, 12) for number in range(4)]
    assert records[0].raw["module_power_readings/power_draw"] == "N/A"
    assert log.notes.remarks == {"attached_gpus says 4, the document holds 1": 1}


@pytest.mark.parametrize("name", CSV)
def test_csv(name: str) -> None:
    records, log = load("smi_csv", f"exporter_{name}.csv")
    (record,) = records
    assert figures(record) == CSV[name]
    total, reserved = next(sizes for part, sizes in reversed(TOTALS.items()) if part in name)
    assert (record.facts["total_bytes"].value, record.facts["driver_reserved_bytes"].value) == (
        total * MIB,
        reserved * MIB,
    )
    assert record.card.uuid is None  # masked with zeros: no identity
    assert record.card.index == 0
    assert not log.notes.left_out


# Of the idle and the load table: load, used MiB, draw (rounded down), temperature, fan, state.
TABLES: Final = {
    "nvidia-h100-mig__590.48.01": [(MIG, 59, 98, 42, NONE, 0), (MIG, 11125, 432, 52, NONE, 0)],
    "nvidia-geforce-rtx-4080-super__595.71.05": [(0, 596, 25, 43, 0, 8), (7, 1474, 83, 45, 0, 2)],
    "win_nvidia-geforce-rtx-2080-super__591.86": [(0, 702, 38, 40, 37, 8), (7, 1296, 97, 45, 38, 2)],
}
DRAW: Final = {"nvidia-h100": "power_average_w", "nvidia-gefo": "power_average_w", "win_nvidia-": "power_w"}
# Of the last dmon row: draw, temperature, load, encoder, memory clock, SM clock.
DMON: Final = {
    "nvidia-h100-mig__590.48.01": (439, 56, MIG, MIG, 2619, 1980),
    "nvidia-geforce-rtx-4080-super__595.71.05": (84, 46, 6, 70, 11251, 2805),
    "win_nvidia-geforce-rtx-2080-super__591.86": (97, 45, 7, 100, 7500, 2055),
}
# Of -q under load: average, moment (or absent), used MiB, used BAR1 MiB, bytes a second out and in.
QUERY: Final = {
    "nvidia-h100-mig__590.48.01": (432.21, 444.72, 11125, 81081, 9139e3, 19191e3),
    "nvidia-geforce-rtx-4080-super__595.71.05": (84.03, 86.41, 1474, 35, 174169e3, 1436230e3),
}


@pytest.mark.parametrize("name", TABLES)
def test_captures_of_everything(name: str) -> None:
    records, log = load("smi_text", f"exporter_{name}_capture.txt")
    assert set(log.kinds) == {
        "nvidia-smi table",
        "nvidia-smi -q",
        "nvidia-smi CSV",
        "nvidia-smi pmon",
        "nvidia-smi dmon",
    }
    assert set(log.notes.counts) == {"neither about cards nor a step of a training"}
    assert len({record.card.bus_id for record in records}) == 1
    draw = DRAW[name[:11]]
    rows = [record for record in records if record.readings]
    assert len(rows) == 2 * (1 + 1 + 1 + 5)  # idle and load: table, -q, CSV, five of dmon
    used = [value(row, "memory_used_bytes") for row in (rows[0], rows[8])]
    tables = [
        tuple(
            value(row, field)
            for field in ("utilization_percent", draw, "temperature_c", "fan_percent", "performance_state")
        )
        for row in (rows[0], rows[8])
    ]
    assert [(load, size / MIB, *rest) for (load, *rest), size in zip(tables, used, strict=True)] == TABLES[name]
    last = (draw, "temperature_c", "utilization_percent", "encoder_percent", "memory_clock_mhz", "sm_clock_mhz")
    assert tuple(value(rows[-1], field) for field in last) == DMON[name]
    if name in QUERY:
        average, moment, used_mib, bar1_mib, tx, rx = QUERY[name]
        query = rows[9]
        assert (value(query, "power_average_w"), value(query, "power_w")) == (average, moment)
        assert (value(query, "memory_used_bytes"), value(query, "bar1_used_bytes")) == (used_mib * MIB, bar1_mib * MIB)
        assert (value(query, "pcie_tx_bytes_per_s"), value(query, "pcie_rx_bytes_per_s")) == (tx, rx)


def test_processes_of_the_captures() -> None:
    records, _ = load("smi_text", "exporter_nvidia-geforce-rtx-4080-super__595.71.05_capture.txt")
    listed = [record for record in records if record.processes and not record.readings]
    assert max(len(record.processes) for record in listed) == 7
    last_table = next(record for record in listed if len(record.processes) == 7)
    assert {p.pid: p.memory_bytes.value / MIB for p in last_table.processes} == {
        2165: 25, 2496: 200, 2620: 4, 2954: 120, 3527: 3, 5021: 360, 5022: 503,
    }  # fmt: skip
    windows, _ = load("smi_text", "exporter_win_nvidia-geforce-rtx-2080-super__591.86_capture.txt")
    reasons = {
        p.memory_bytes.reason for r in windows for p in r.processes if p.memory_bytes.reason is not Reason.NOT_READ_YET
    }
    assert reasons == {Reason.WDDM}
    assert all(p.memory_bytes.value is None for r in windows for p in r.processes)


def test_eight_cards_in_a_training_log() -> None:
    records, log = load("text_logs", "modded_nanogpt_smi_plus_steps.txt")
    assert [
        (r.card.index, r.card.bus_id[9:11], value(r, "temperature_c"), value(r, "power_average_w"), value(r, "memory_used_bytes") / MIB, value(r, "utilization_percent"))
        for r in records
    ] == [
        (0, "65", 36, 74, 7, 0),
        (1, "67", 45, 128, 533, 0),
        (2, "69", 45, 123, 533, 0),
        (3, "6B", 39, 114, 533, 1),
        (4, "6F", 38, 117, 533, 0),
        (5, "71", 44, 121, 533, 0),
        (6, "73", 45, 126, 533, 0),
        (7, "75", 38, 123, 533, 0),
    ]  # fmt: skip
    assert {record.stamp.seconds for record in records} == {1733660665.0}  # 8 December 2024, 12:24:25
    assert {record.facts["total_bytes"].value for record in records} == {81559 * MIB}
    assert set(log.notes.counts) == {"neither about cards nor a step of a training"}


def scalars(log: OpenLog, name: str) -> list[tuple[float, float]]:
    training = log.training
    number = training.names.index(name)
    return [
        (training.step[row], value)
        for row, of, value in zip(training.scalar_row, training.scalar_name, training.scalar_value, strict=True)
        if of == number
    ]


def test_the_steps_below_the_table() -> None:
    _, log = load("text_logs", "modded_nanogpt_smi_plus_steps.txt")
    losses = scalars(log, "val_loss")
    assert len(losses) == 13
    assert (losses[0], losses[-1]) == ((0, 10.8258), (1480, 3.2773))
    assert [step for step, _ in losses] == [*range(0, 1480, 125), 1480]
    times = dict(scalars(log, "train_time [ms]"))
    assert (times[1], times[2], times[4], times[1479]) == (23764, 23887, 24167, 236597)
    assert scalars(log, "step_avg [ms]")[-2:] == [(1480, 161.07), (1480, 161.12)]
    assert log.notes.counts == {"neither about cards nor a step of a training": 3}


def test_llm_c() -> None:
    _, log = load("text_logs", "llmc_track2_main.log")
    losses = scalars(log, "tel")
    assert [step for step, _ in losses] == list(range(0, 60_001, 250))
    assert (losses[0][1], losses[1][1], losses[4][1], losses[-2][1], losses[-1][1]) == (
        10.983,
        6.3097,
        4.3734,
        2.9281,
        2.9282,
    )
    assert not log.notes.left_out


def test_events_of_lax() -> None:
    """The figures are those of tensorboard 2.21.0."""
    _, log = load("tfevents", "lax", "run_2", "events.out.tfevents.1622543341.host-a.2.4")
    assert {name: len(scalars(log, name)) for name in log.training.names} == {
        "lax/foo": 120,
        "lax/bar_2": 120,
        "lax/bar_3": 120,
    }
    assert (scalars(log, "lax/foo")[0], scalars(log, "lax/foo")[-1]) == (
        (0, 2.8140063285827637),
        (119, 2.4575743675231934),
    )
    assert scalars(log, "lax/bar_3")[-1] == (119, 2.7924323081970215)
    assert (log.training.seconds[0], log.training.seconds[-1]) == (1622543341.818728, 1622543341.848019)
    assert not log.notes.left_out


def test_events_of_lightning() -> None:
    _, log = load("tfevents", "mnist_lightning", "events.out.tfevents.1785441771.host-c.3.3")
    assert scalars(log, "hp_metric") == [(0, -1.0)]
    assert scalars(log, "val_loss")[0] == (1718, 0.07071327418088913)
    assert scalars(log, "val_accuracy")[-1] == (8594, 0.9846000075340271)
    assert [scalars(log, "train_loss")[at] for at in (0, -1)] == [
        (1718, 0.146479994058609),
        (8594, 0.019999271258711815),
    ]
    assert [value for _, value in scalars(log, "epoch")] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert list(log.training.kept_out) == ["hparams"]


def test_rocm() -> None:
    (navi,), _ = load("rocm", "telegraf_rx6700xt_rocm612.json")
    (vega,), _ = load("rocm", "telegraf_vega-20-WKS-GL-XE.json")
    fields = (
        "utilization_percent",
        "memory_used_bytes",
        "power_average_w",
        "temperature_c",
        "temperature_memory_c",
        "memory_clock_mhz",
        "pcie_generation",
        "pcie_width",
        "power_limit_w",
    )
    assert tuple(value(navi, field) for field in fields) == (0, 1572745216, 6, 45, 46, 96, 4, 16, 211)
    assert tuple(value(vega, field) for field in fields) == (0, 10850304, 26, 36, 35, 1000, 4, 16, 225)
    assert (value(navi, "sm_clock_mhz"), value(vega, "sm_clock_mhz")) == (Reason.IMPLAUSIBLE, 1725)
    assert [card.facts["total_bytes"].value for card in (navi, vega)] == [12868124672, 34342961152]
    assert (navi.card.bus_id, vega.card.bus_id) == ("00000000:07:00.0", "00000000:63:00.0")


def test_prometheus() -> None:
    (record,), _ = load("prom", "exporter_nvidia-geforce-rtx-2080-super__610.57.04__idle.metrics.txt")
    assert {name: reading.value for name, reading in record.readings.items()} == {
        "utilization_percent": 0, "memory_utilization_percent": 0, "encoder_percent": 0, "decoder_percent": 0,
        "memory_used_bytes": 221249536, "power_w": 39.17, "temperature_c": 33, "sm_clock_mhz": 765,
        "memory_clock_mhz": 810, "fan_percent": 38, "performance_state": 8, "power_limit_w": 250,
        "pcie_generation": 1, "pcie_width": 16, "graphics_clock_mhz": 765, "video_clock_mhz": 675, "encoder_sessions": 0,
        "jpeg_percent": 0, "optical_flow_percent": 0, "throttle_reasons": 1,
    }  # fmt: skip
    assert record.facts["total_bytes"].value == 8192 * MIB


# Details as they stand in the captures.
DETAILS: Final = {
    ("smi_csv", "exporter_nvidia-h100-80gb-hbm3__590.48.01_load.csv"): {
        "graphics_clock_mhz": 1980, "video_clock_mhz": 1545, "temperature_margin_c": 26, "power_module_w": NONE,
        "throttle_reasons": 0, "jpeg_percent": 0, "optical_flow_percent": 0, "encoder_sessions": 0, "ecc_corrected": 0,
        "ecc_corrected_total": 0, "ecc_uncorrected_total": 0, "remapped_rows_corrected": 0,
        "remapped_rows_uncorrected": 0, "remapping_pending": 0, "remapping_failed": 0, "retired_pages": NONE,
    },
    ("smi_csv", "exporter_nvidia-l40s__595.80_load.csv"): {
        "graphics_clock_mhz": 2520, "video_clock_mhz": 1965, "temperature_margin_c": 34, "encoder_sessions": 2,
    },
    ("smi_xml", "telegraf_tesla-t4.xml"): {
        "graphics_clock_mhz": 585, "video_clock_mhz": 810, "pcie_replays": 0, "retired_pages": 0, "ecc_corrected": 0,
        "ecc_corrected_total": 0, "ecc_uncorrected_total": 0, "temperature_margin_c": ABSENT,
    },
    ("smi_xml", "telegraf_a100-sxm4-v12.xml"): {
        "graphics_clock_mhz": 1275, "video_clock_mhz": 1275, "retired_pages": NONE, "temperature_margin_c": NONE,
        "jpeg_percent": Reason.MIG, "optical_flow_percent": Reason.MIG,
    },
}  # fmt: skip


@pytest.mark.parametrize("parts", DETAILS, ids=lambda parts: parts[1])
def test_details(parts: tuple[str, str]) -> None:
    record = load(*parts)[0][0]
    expected = DETAILS[parts]
    assert {name: value(record, name) if name in record.readings else ABSENT for name in expected} == expected
