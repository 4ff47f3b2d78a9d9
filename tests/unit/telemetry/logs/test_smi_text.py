"""Tables, ``-q``, dmon and pmon, alone and in the midst of other text."""

from __future__ import annotations

from log_samples import CSV, DMON, MIB, PMON, QUERY, TABLE, UUIDS, read, value, values

from desktop_app.core.telemetry import Reading, Reason


def test_a_table_in_the_midst_of_a_training_log() -> None:
    records, log = read(TABLE)
    first, second, running, in_instance = records
    assert values(first) == {
        "ecc_uncorrected": 0.0,
        "fan_percent": Reason.NOT_SUPPORTED,
        "temperature_c": 36.0,
        "performance_state": 0.0,
        "power_w": 54.0,  # GA100: the draw of the moment
        "power_limit_w": 400.0,
        "memory_used_bytes": 1234.0 * MIB,
        "utilization_percent": 37.0,
    }
    assert (first.card.index, first.card.bus_id, first.stamp.seconds) == (0, "00000000:07:00.0", 1784019626.0)
    assert first.facts["total_bytes"].value == 40960.0 * MIB
    assert values(second) == {
        "fan_percent": Reason.UNKNOWN_ERROR,
        "temperature_c": 35.0,
        "performance_state": 0.0,
        "power_w": Reason.UNKNOWN_ERROR,
        "power_limit_w": Reason.UNKNOWN_ERROR,
        "memory_used_bytes": 16.0 * MIB,
        "utilization_percent": Reason.MIG,
    }
    assert [(p.pid, p.name, p.memory_bytes.value) for p in running.processes] == [
        (100123, "/opt/conda/bin/python", 1210.0 * MIB)
    ]
    assert (in_instance.card.bus_id, in_instance.processes[0].memory_bytes) == (
        "00000000:0F:00.0",
        Reading(None, Reason.NOT_SUPPORTED),
    )
    assert [item.text for item in log.notes.left_out] == ["epoch 3 loss 2.345", "epoch 4 loss 2.234"]


def test_a_table_of_2019() -> None:
    text = """
| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla K80           Off  | 00000000:00:04.0 Off |                    0 |
| N/A   36C    P8    29W / 149W |      0MiB / 11441MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Quadro RTX 6000     Off  | 00000000:00:05.0 Off |                  Off |
| 33%   41C    P8    ERR! / 260W|  Not Supported       |      4%      Default |
+-------------------------------+----------------------+----------------------+
|    0      4242      C   python                                       1005MiB |
"""
    records, _ = read(text)
    assert values(records[0])["power_w"] == 29.0
    assert value(records[0], "memory_used_bytes") == 0.0
    assert value(records[1], "memory_used_bytes") is Reason.NOT_SUPPORTED
    assert records[2].processes[0].memory_bytes == Reading(1005.0 * MIB)


def test_a_query_in_words() -> None:
    records, log = read(QUERY)
    assert values(records[0]) == {
        "pcie_generation": 1.0,
        "pcie_width": 8.0,
        "pcie_tx_bytes_per_s": 12e3,
        "pcie_rx_bytes_per_s": 34e3,
        "fan_percent": Reason.NOT_SUPPORTED,
        "performance_state": 8.0,
        "memory_used_bytes": 1032.0 * MIB,
        "bar1_used_bytes": 5.0 * MIB,
        "utilization_percent": 71.0,
        "memory_utilization_percent": 23.0,
        "temperature_c": 40.0,
        "power_w": 26.78,
        "power_limit_w": 70.0,
        "sm_clock_mhz": 585.0,
        "memory_clock_mhz": 5000.0,
    }
    assert (records[0].card.uuid, records[0].card.name) == (UUIDS[0], "Tesla T4")
    assert [(p.pid, p.name, p.kind, p.memory_bytes.value) for p in records[0].processes] == [
        (5762, "python", "compute", 1005.0 * MIB)
    ]
    assert not log.notes.left_out


def test_dmon_with_dates() -> None:
    records, _ = read(DMON)
    assert [(r.card.index, r.stamp.seconds) for r in records] == [
        (0, 1784019600.0),
        (1, 1784019600.0),
        (0, 1784019601.0),
    ]
    assert values(records[0]) == {
        "power_average_w": 122.0,
        "temperature_c": 51.0,
        "temperature_memory_c": Reason.NOT_SUPPORTED,
        "utilization_percent": 88.0,
        "memory_utilization_percent": 41.0,
        "encoder_percent": 0.0,
        "decoder_percent": 0.0,
        "memory_clock_mhz": 9001.0,
        "sm_clock_mhz": 2520.0,
        "memory_used_bytes": 1235.0 * MIB,  # dmon writes MB and means MiB
        "bar1_used_bytes": 17.0 * MIB,
        "pcie_rx_bytes_per_s": 120e6,
        "pcie_tx_bytes_per_s": 45e6,
        "throttle_power_percent": 3.0,
    }
    assert records[0].raw == {"tviol [bool]": "0"}
    assert value(records[1], "utilization_percent") is Reason.NOT_SUPPORTED


def test_dmon_knows_of_its_card_what_the_file_has_said() -> None:
    """The draw of a Turing card is of the moment; dmon alone does not say which card it is."""
    head = "index, pci.bus_id, name, utilization.gpu [%]\n0, 00000000:0C:00.0, NVIDIA GeForce RTX 2080 SUPER, 5 %\n"
    records, _ = read(head + DMON)
    assert value(records[1], "power_w") == 122.0
    assert records[1].card.bus_id == "00000000:0C:00.0"


def test_pmon() -> None:
    records, _ = read(PMON)
    assert [
        (r.card.index, [(p.pid, p.name, p.kind, p.memory_bytes, dict(p.raw)) for p in r.processes]) for r in records
    ] == [
        (0, [(21180, "python train.py", "compute", Reading(2296.0 * MIB), {"sm": "45", "mem": "12"})]),
        (0, []),
        (1, [(21181, "gpu_burn", "compute", Reading(None, Reason.NOT_SUPPORTED), {})]),
    ]


def test_two_cards_that_take_turns() -> None:
    records, _ = read(CSV)
    assert [(r.card.uuid, value(r, "utilization_percent"), value(r, "memory_used_bytes")) for r in records] == [
        (UUIDS[0], 97.0, 41234.0 * MIB),
        (UUIDS[1], Reason.UNKNOWN_ERROR, 533.0 * MIB),
        (UUIDS[0], 98.0, 41236.0 * MIB),
        (UUIDS[1], Reason.GPU_LOST, Reason.GPU_LOST),
    ]


def test_lines_are_counted_as_an_editor_does() -> None:
    """Progress bars overwrite their line; a form feed is no new one."""
    text = "10%|#\r20%|##\r30%|###\nform\x0cfeed\r\nindex, temperature.gpu\r\n0, 44\r\n0, x\r\n"
    records, log = read(text)
    assert [(record.line, value(record, "temperature_c")) for record in records] == [
        (4, 44.0),
        (5, Reason.UNKNOWN_ERROR),
    ]
    assert log.notes.left_out[-1].line == 5


def test_the_command_is_no_header() -> None:
    command = "+ nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv -l 1\n"
    command += command[2:]
    records, log = read(command + "0, 5 %, 7 MiB\n")
    assert (records, log.kinds) == ([], {})


def test_an_error_of_the_tool_is_told() -> None:
    records, log = read("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.54\n")
    assert records == []
    assert log.kinds == {"nvidia-smi": 1}
    assert "reboot" in log.notes.left_out[0].why


def test_a_lost_card_in_the_midst() -> None:
    lost = "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system\n"
    records, log = read(CSV + lost + CSV)
    assert len(records) == 8
    assert [(item.line, "lost" in item.why) for item in log.notes.left_out] == [(6, True)]
