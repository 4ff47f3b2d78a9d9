"""What Prometheus is told: the names and units of dcgm-exporter, no value that is not there, and the way back."""

from __future__ import annotations

import math
import socket
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.forecasts import AlertSeverity, Cause, Forecast
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    GPU_FIELDS,
    Card,
    EnergySource,
    InstanceSample,
    MigInstance,
    Reading,
    Reason,
)
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.services.metrics_text import SessionText
from desktop_app.telemetry import metric_names
from desktop_app.telemetry.logs.prometheus_text import is_prometheus, read_prometheus
from desktop_app.telemetry.logs.record import Notes

from .doubles import make_alert, make_card, make_estimate, make_memory
from .metrics_session import make_session, only, real_card, samples_of, tool

VALUES = {
    "utilization_percent": 97.0,
    "memory_utilization_percent": 41.0,
    "memory_used_bytes": 2048.0 * MIB,
    "power_w": 151.5,
    "power_average_w": 148.0,
    "temperature_c": 61.0,
    "temperature_memory_c": 78.0,
    "sm_clock_mhz": 1890.0,
    "memory_clock_mhz": 9751.0,
    "throttle_power_percent": 12.5,
    "pcie_rx_bytes_per_s": 1.25e9,
    "pcie_tx_bytes_per_s": 3.0e8,
    "fan_percent": 55.0,
    "performance_state": 2.0,
    "power_limit_w": 350.0,
    "energy_j": 1234.5,
    "encoder_percent": 0.0,
    "decoder_percent": 3.0,
    "ecc_uncorrected": 0.0,
    "pcie_generation": 4.0,
    "pcie_width": 16.0,
    "bar1_used_bytes": 5.0 * MIB,
    "sm_activity_percent": 71.0,
    "pcie_replays": 3.0,
}
READINGS = {"GPU-a": {field: Reading(value) for field, value in VALUES.items()}}


def text_of(*cards: Card, **cells: object) -> str:
    return SessionText(make_session(*cards, **cells)).render().decode()


def test_a_card_under_the_names_of_dcgm() -> None:
    """As dcgm-exporter writes it: names and units of its default-counters.csv, labels of its template."""
    card = real_card(energy_source=EnergySource.COUNTER)
    text = text_of(card, readings=READINGS)
    host = socket.gethostname()
    labels = (
        f'DCGM_FI_DRIVER_VERSION="570.86.10",Hostname="{host}",UUID="GPU-a",device="nvidia0",gpu="0",'
        'modelName="NVIDIA GeForce RTX 3090",pci_bus_id="00000000:01:00.0"'
    )
    found = {series: value for series, value in samples_of(text).items() if series.startswith("DCGM_")}
    expected = {
        "DCGM_FI_DEV_GPU_UTIL": 97,
        "DCGM_FI_DEV_MEM_COPY_UTIL": 41,
        "DCGM_FI_DEV_ENC_UTIL": 0,
        "DCGM_FI_DEV_DEC_UTIL": 3,
        "DCGM_FI_DEV_FB_USED": 2048,
        "DCGM_FI_DEV_FB_FREE": 24576 - 320 - 2048,
        "DCGM_FI_DEV_FB_RESERVED": 320,
        "DCGM_FI_DEV_FB_TOTAL": 24576,
        "DCGM_FI_DEV_BAR1_USED": 5,
        "DCGM_FI_DEV_POWER_USAGE": 148,  # from Ampere on the call is an average
        "DCGM_FI_DEV_POWER_USAGE_INSTANT": 151.5,
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 350,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1234500,  # mJ
        "DCGM_FI_DEV_GPU_TEMP": 61,
        "DCGM_FI_DEV_MEMORY_TEMP": 78,
        "DCGM_FI_DEV_SM_CLOCK": 1890,
        "DCGM_FI_DEV_MEM_CLOCK": 9751,
        "DCGM_FI_DEV_FAN_SPEED": 55,
        "DCGM_FI_DEV_PSTATE": 2,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0,
        "DCGM_FI_DEV_PCIE_LINK_GEN": 4,
        "DCGM_FI_DEV_PCIE_LINK_WIDTH": 16,
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 3,
        "DCGM_FI_PROF_PCIE_RX_BYTES": 1.25e9,
        "DCGM_FI_PROF_PCIE_TX_BYTES": 3e8,
        "DCGM_FI_PROF_SM_ACTIVE": 0.71,
    }
    assert found == {f"{name}{{{labels}}}": value for name, value in expected.items()}
    for name, kind in (
        ("TOTAL_ENERGY_CONSUMPTION", "counter"),
        ("PCIE_REPLAY_COUNTER", "counter"),
        ("GPU_UTIL", "gauge"),
    ):
        assert f"# TYPE DCGM_FI_DEV_{name} {kind}\n" in text
    assert "_total" not in "".join(line for line in text.splitlines() if "DCGM_" in line)


def test_the_same_in_base_units_under_our_own_names() -> None:
    found = samples_of(text_of(real_card(), readings=READINGS))
    for name, value in (
        ("utilization_ratio", 0.97),
        ("memory_used_bytes", 2048 * MIB),
        ("memory_total_bytes", 24576 * MIB),
        ("memory_capacity_bytes", 24256 * MIB),
        ("power_watts", 151.5),
        ("temperature_celsius", 61),
        ("sm_clock_hertz", 1.89e9),
        ("throttle_power_ratio", 0.125),
        ("pcie_rx_bytes_per_second", 1.25e9),
        ("energy_joules_total", 1234.5),
        ("pcie_replays_total", 3),
        ("readable", 1),
    ):
        assert only(found, f"floodmark_gpu_{name}") == value, name


def test_every_field_has_a_name() -> None:
    assert sorted(metric.field for metric in metric_names.OWN) == sorted(ALL_GPU_FIELDS)
    assert len({metric.name for metric in (*metric_names.OWN, *metric_names.DCGM)}) == len(
        metric_names.OWN + metric_names.DCGM
    )


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(Reason)), min_size=1))
def test_what_is_missing_is_no_zero_and_no_nan(gone: dict[str, Reason]) -> None:
    readings = {"GPU-a": {**READINGS["GPU-a"], **{field: Reading(None, reason) for field, reason in gone.items()}}}
    found = samples_of(text_of(real_card(energy_source=EnergySource.COUNTER), readings=readings))
    names = {series.partition("{")[0] for series in found}
    for metric in (*metric_names.OWN, *metric_names.DCGM):
        assert (metric.name in names) == (metric.field in VALUES and metric.field not in gone), metric.name
    assert ("DCGM_FI_DEV_FB_FREE" in names) == ("memory_used_bytes" not in gone)
    assert ("DCGM_FI_DEV_POWER_USAGE" in names) == ("power_average_w" not in gone)
    assert not any(math.isnan(value) for value in found.values())


def test_a_card_that_cannot_be_read_says_so_and_no_more() -> None:
    readings = {"GPU-a": dict.fromkeys(ALL_GPU_FIELDS, Reading(None, Reason.GPU_LOST))}
    found = samples_of(text_of(real_card(), readings=readings))
    assert only(found, "floodmark_gpu_readable") == 0
    dcgm = {series.partition("{")[0] for series in found if series.startswith("DCGM_")}
    assert dcgm == {"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_RESERVED"}, "facts of the card, which do not change"


def test_a_simulated_card_is_labelled_and_never_under_a_name_of_dcgm() -> None:
    card = make_card("SIM-1", name="GeForce RTX 4090")
    text = text_of(card, readings={"SIM-1": READINGS["GPU-a"]})
    assert "DCGM_" not in text
    assert 'simulated="true"' in text
    assert 'simulated="false"' not in text


def test_a_card_of_another_maker_is_none_of_dcgm() -> None:
    card = make_card("AMD-1", simulated=False, name="Radeon RX 7900 XTX", vendor="AMD")
    text = text_of(card, readings={"AMD-1": READINGS["GPU-a"]})
    assert "DCGM_" not in text
    assert 'vendor="AMD"' in text


@pytest.mark.parametrize(
    ("facts", "drawn_w"),
    [
        ({"compute_capability": (8, 6)}, 148.0),
        ({"compute_capability": (7, 5), "architecture": "Turing", "name": "NVIDIA GeForce RTX 2080"}, 151.5),
        ({"compute_capability": (8, 0), "name": "NVIDIA A100-SXM4-40GB"}, 151.5),  # GA100 is as the older ones
    ],
)
def test_the_draw_is_what_the_older_call_says_on_this_generation(facts: dict[str, object], drawn_w: float) -> None:
    assert only(samples_of(text_of(real_card(**facts), readings=READINGS)), "DCGM_FI_DEV_POWER_USAGE") == drawn_w


def test_energy_by_integral_is_no_counter_of_the_driver() -> None:
    text = text_of(real_card(energy_source=EnergySource.INTEGRAL), readings=READINGS)
    assert "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" not in text
    assert only(samples_of(text), "floodmark_gpu_energy_joules_total") == 1234.5


def test_shared_memory_is_no_frame_buffer() -> None:
    text = text_of(real_card(shared_memory=True), readings=READINGS)
    assert "DCGM_FI_DEV_FB_" not in text
    assert only(samples_of(text), "floodmark_gpu_memory_used_bytes") == 2048 * MIB


def test_instances_of_a_split_card_are_no_cards() -> None:
    card = real_card(instances=(MigInstance("MIG-1", "1g.10gb", 7, 0, total_bytes=10 * GIB),))
    samples = {
        "GPU-a": (
            InstanceSample(
                "MIG-1",
                {
                    "memory_used_bytes": Reading(float(GIB)),
                    "sm_activity_percent": Reading(40.0),
                    "utilization_percent": Reading(None, Reason.NOT_SUPPORTED),
                },
            ),
        )
    }
    found = samples_of(text_of(card, readings=READINGS, instances=samples))
    labels = 'UUID="GPU-a",gpu="0",gpu_instance="7",instance_uuid="MIG-1",profile="1g.10gb"'
    of_instance = {series: value for series, value in found.items() if series.startswith("floodmark_gpu_instance_")}
    assert of_instance == {
        f"floodmark_gpu_instance_memory_total_bytes{{{labels}}}": 10 * GIB,
        f"floodmark_gpu_instance_memory_used_bytes{{{labels}}}": GIB,
        f"floodmark_gpu_instance_sm_activity_ratio{{{labels}}}": 0.4,
    }
    assert only(found, "DCGM_FI_DEV_FB_USED") == 2048, "of the whole card, once"


def test_the_last_xid_of_a_card() -> None:
    session = make_session(real_card(), readings=READINGS)
    told = SessionText(session)
    assert "XID" not in told.render().decode(), "none was seen: no zero in its place"
    for xid in (13, 79):
        session.events.post(Event(1.0, EventKind.XID, Level.ERROR, "telemetry.xid", {"uuid": "GPU-a", "xid": xid}))
    for _ in range(2):
        assert only(samples_of(told.render().decode()), "DCGM_FI_DEV_XID_ERRORS") == 79


def test_without_a_run_nothing_is_said_of_one() -> None:
    names = {series.partition("{")[0] for series in samples_of(text_of())}
    assert names == {
        "floodmark_build_info",
        "floodmark_samples_total",
        "floodmark_late_samples_total",
        "floodmark_sampling_hertz",
    }


RUN = RunStatus(
    RunState.RUNNING,
    run_name="gpt",
    step=120,
    total_steps=1000,
    epoch=2,
    batch_size=64,
    loss_last=2.25,
    samples_per_s=410.0,
    eta_s=300.0,
)
FORECAST = Forecast(
    t_s=9.0,
    step=120,
    device_bytes=5,
    capacity_bytes=6,
    p_oom={1: 0.0, 10: 0.25, 100: 0.75},
    p_oom_run=0.9,
    eta_s=60.0,
    eta_low_s=50.0,
    eta_high_s=80.0,
)


def test_a_run_its_memory_and_its_forecast() -> None:
    alerts = (
        make_alert(1, cause=Cause.LEAK, severity=AlertSeverity.IMMINENT),
        make_alert(2, cause=Cause.NEIGHBOUR, cleared_t_s=4.0),
        make_alert(3, cause=Cause.SPILL, severity=AlertSeverity.WATCH),
    )
    estimate = EstimateStatus(EstimateState.READY, make_estimate())
    found = samples_of(
        text_of(run=RUN, memory=make_memory(512 * MIB), forecast=FORECAST, alerts=alerts, estimate=estimate)
    )
    for series, value in (
        ('floodmark_run_state{run="gpt",state="running"}', 1),
        ('floodmark_run_state{run="gpt",state="paused"}', 0),
        ('floodmark_run_step{run="gpt"}', 120),
        ('floodmark_run_steps_planned{run="gpt"}', 1000),
        ('floodmark_run_loss{run="gpt"}', 2.25),
        ('floodmark_run_samples_per_second{run="gpt"}', 410),
        ('floodmark_run_eta_seconds{run="gpt"}', 300),
        ('floodmark_memory_live_bytes{run="gpt"}', 256 * MIB),
        ('floodmark_memory_reserved_bytes{run="gpt"}', 512 * MIB),
        ('floodmark_oom_probability{run="gpt",within="10_steps"}', 0.25),
        ('floodmark_oom_probability{run="gpt",within="100_steps"}', 0.75),
        ('floodmark_oom_probability{run="gpt",within="run"}', 0.9),
        ('floodmark_oom_eta_seconds{percentile="50",run="gpt"}', 60),
        ('floodmark_estimate_device_peak_bytes{percentile="50"}', 500 * MIB),
        ('floodmark_estimate_device_peak_bytes{percentile="95"}', 700 * MIB),
    ):
        assert found[series] == value, series
    held = {series: value for series, value in found.items() if series.startswith("floodmark_alert_open") and value}
    assert held == {'floodmark_alert_open{cause="leak",run="gpt",severity="imminent"}': 1.0}
    assert 'floodmark_oom_probability{run="gpt",within="epoch"}' not in found, "nobody knows the epoch"
    assert "floodmark_flood_mark_bytes" not in {series.partition("{")[0] for series in found}


def test_an_ended_run_has_no_rate_and_no_forecast() -> None:
    ended = RunStatus(RunState.FINISHED, run_name="gpt", step=1000, samples_per_s=410.0, eta_s=0.0)
    names = {series.partition("{")[0] for series in samples_of(text_of(run=ended, forecast=FORECAST))}
    assert "floodmark_run_step" in names
    assert not names & {"floodmark_run_samples_per_second", "floodmark_run_eta_seconds", "floodmark_oom_probability"}


@pytest.mark.parametrize("simulated", [False, True])
def test_our_own_importer_reads_the_same_values_back(simulated: bool) -> None:
    """Also of a card that has no name of DCGM."""
    card = real_card() if not simulated else make_card("SIM-1", name="GeForce RTX 4090", total_bytes=24576 * MIB)
    text = text_of(card, readings={card.uuid: READINGS["GPU-a"]}, run=RUN)
    assert is_prometheus(text)
    notes = Notes()
    (record,) = read_prometheus(text, notes)
    assert record.card.name == card.name
    assert record.card.index == 0
    assert record.facts["total_bytes"].value == 24576 * MIB
    importable = (VALUES.keys() & set(GPU_FIELDS)) - {"energy_j"}  # a session has its own beginning
    assert {field: record.readings[field].value for field in importable} == {
        field: VALUES[field] for field in importable
    }
    assert set(notes.counts) == {"a metric of the exporter itself, not of a card"}


def test_promtool_finds_no_fault_but_the_names_of_dcgm() -> None:
    promtool = tool("promtool")
    alerts = (make_alert(1, cause=Cause.LEAK),)
    text = text_of(
        real_card(energy_source=EnergySource.COUNTER),
        readings={"GPU-a": dict.fromkeys(ALL_GPU_FIELDS, Reading(1.0))},
        run=RUN,
        memory=make_memory(),
        forecast=FORECAST,
        alerts=alerts,
        estimate=EstimateStatus(EstimateState.READY, make_estimate()),
    )
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    faults = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("DCGM_")]
    assert (faults, done.returncode) == ([], 3)
