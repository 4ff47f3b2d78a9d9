"""``nvidia-smi -q -x`` of all drivers: names of power, MIG, WDDM, many documents, damage, and attacks."""

from __future__ import annotations

import pytest
from log_samples import MIB, POWER_525, POWER_535, POWER_570, UUIDS, XML, read, value, xml, xml_card

from desktop_app.core.telemetry import Reading, Reason


def test_every_field_of_a_card() -> None:
    records, log = read(XML)
    assert [(r.card.uuid, r.card.bus_id, r.card.index) for r in records] == [
        (UUIDS[0], "00000000:01:00.0", 0),
        (UUIDS[1], "00000000:02:00.0", 1),
    ]
    first = records[0]
    assert {name: reading.value for name, reading in first.readings.items()} == {
        "pcie_tx_bytes_per_s": 550e3,
        "pcie_rx_bytes_per_s": 1234e3,
        "fan_percent": 41.0,
        "performance_state": 2.0,
        "memory_used_bytes": 4321.0 * MIB,
        "utilization_percent": 77.0,
        "memory_utilization_percent": 77.0,
        "temperature_c": 58.0,
        "power_average_w": 61.25,
        "power_w": 63.5,
        "power_limit_w": 170.0,
        "sm_clock_mhz": 1807.0,
        "memory_clock_mhz": 7300.0,
        "ecc_uncorrected": 5.0,
        "power_module_w": None,  # beside the card's, and N/A
    }
    assert first.facts["total_bytes"].value == 12288.0 * MIB
    assert first.facts["driver_reserved_bytes"].value == 368.0 * MIB
    assert first.facts["temperature_slowdown_c"].value == 95.0
    assert first.texts["driver_version"] == "570.124.04"
    assert [(p.pid, p.name, p.kind, p.memory_bytes.value) for p in first.processes] == [
        (4242, "python", "compute", 3999.0 * MIB)
    ]
    assert not log.notes.left_out


@pytest.mark.parametrize(
    ("power", "architecture", "name", "expected"),
    [
        (POWER_525, "Pascal", "Quadro P2000", {"power_w": 61.25}),
        (POWER_525, "Ampere", "NVIDIA GeForce RTX 3090", {"power_average_w": 61.25}),
        (POWER_535, "Ampere", "NVIDIA A100-SXM4-80GB", {"power_w": 61.25}),
        (POWER_535, "Hopper", "NVIDIA H100 80GB HBM3", {"power_average_w": 61.25}),
        (POWER_570, "Ampere", "NVIDIA GeForce RTX 3060", {"power_average_w": 61.25, "power_w": 63.5}),
    ],
)
def test_power_under_its_three_names(power: str, architecture: str, name: str, expected: dict[str, float]) -> None:
    """NV-75, NV-76: the N/A of the module does not overwrite the card's; average and moment are not mixed."""
    record = read(xml(xml_card(power, architecture=architecture, name=name)))[0][0]
    found = {
        field: record.readings[field].value for field in ("power_w", "power_average_w") if field in record.readings
    }
    assert found == expected
    assert value(record, "power_limit_w") == 170.0


def test_mig_has_its_reason_and_its_instances() -> None:
    instances = (
        "<mig_devices><mig_device><index>0</index>"
        "<fb_memory_usage><total>19968 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device>"
        "<mig_device><index>1</index>"
        "<fb_memory_usage><total>9984 MiB</total><used>N/A</used></fb_memory_usage></mig_device></mig_devices>"
    )
    record = read(xml(xml_card(POWER_535, mig="Enabled", load="N/A", instances=instances)))[0][0]
    assert value(record, "utilization_percent") is Reason.MIG
    assert value(record, "memory_used_bytes") == 4321.0 * MIB  # the card's, not an instance's
    assert [(i.index, i.total_bytes.value, i.used_bytes) for i in record.instances] == [
        (0, 19968.0 * MIB, Reading(12.0 * MIB)),
        (1, 9984.0 * MIB, Reading(None, Reason.NOT_SUPPORTED)),
    ]


def test_processes_under_windows_have_no_memory() -> None:
    record = read(xml(xml_card(POWER_570, model="WDDM", process="N/A")))[0][0]
    assert record.processes[0].memory_bytes == Reading(None, Reason.WDDM)


@pytest.mark.parametrize("memory", ["17592186044416 MiB", "13000 MiB", "18446744073709551615 MiB"])
def test_a_process_with_more_than_there_is(memory: str) -> None:
    """NV-46: 2^64 bytes is how WSL says that it does not know."""
    record = read(xml(xml_card(POWER_570, process=memory)))[0][0]
    assert record.processes[0].memory_bytes == Reading(None, Reason.IMPLAUSIBLE)


def test_documents_in_a_row() -> None:
    """``nvidia-smi -q -x -l 1 >> file``; the last one was cut off in the midst of its second card."""
    later = XML.replace("09:00:00", "09:00:05").replace("77 %", "78 %")
    records, log = read(XML + later + XML[: XML.rindex("<clocks>")])
    assert [(value(r, "utilization_percent"), r.stamp.seconds) for r in records] == [
        (77.0, 1784019600.0),
        (77.0, 1784019600.0),
        (78.0, 1784019605.0),
        (78.0, 1784019605.0),
        (77.0, 1784019600.0),
        (77.0, 1784019600.0),
    ]
    assert records[-1].card.uuid == UUIDS[1]
    assert "sm_clock_mhz" not in records[-1].readings
    assert "cut off" in log.notes.left_out[0].why
    assert "one whole card, 2" in log.notes.left_out[0].text


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_wherever_a_document_is_cut_what_stands_before_is_right(share: float) -> None:
    whole, _ = read(XML)
    cut, log = read(XML[: int(len(XML) * share)])
    assert cut
    for record, before in zip(cut, whole, strict=False):
        assert record.readings.items() <= before.readings.items()
        assert record.facts.items() <= before.facts.items()
        assert all(process in before.processes for process in record.processes)
    assert "copy it whole" in log.notes.left_out[0].why


def test_a_damaged_card_does_not_take_the_next_with_it() -> None:
    records, log = read(XML.replace("<fan_speed>", "<fan_speed", 1))
    assert [record.card.uuid for record in records] == [UUIDS[1]]
    assert log.notes.left_out


def test_a_card_with_some_others_left_out_has_no_index() -> None:
    records, log = read(XML.replace("<attached_gpus>2<", "<attached_gpus>4<"))
    assert [record.card.index for record in records] == [None, None]
    assert log.notes.remarks == {"attached_gpus says 4, the document holds 2": 1}


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
    ],
)
def test_entities_are_refused(declaration: str) -> None:
    text = xml(xml_card(POWER_570, name="&a;"), head=f"<!DOCTYPE nvidia_smi_log [{declaration}]>\n")
    records, log = read(text)
    assert records == []
    assert "entities" in log.notes.left_out[0].why


def test_nesting_without_end_is_refused() -> None:
    records, log = read("<nvidia_smi_log>" + "<a>" * 100_000)
    assert records == []
    assert log.notes.left_out


def test_a_clock_of_zero_is_no_clock() -> None:
    """An idle RTX 3090 under driver 525 writes ``0 MHz``."""
    record = read(xml(xml_card(POWER_525)).replace("1807 MHz", "0 MHz"))[0][0]
    assert value(record, "sm_clock_mhz") is Reason.IMPLAUSIBLE
