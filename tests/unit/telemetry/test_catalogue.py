"""The catalogue: known values, forgiving names, blanks that stay blank."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.errors import ExitCode, NoSuchDeviceError
from desktop_app.telemetry.catalogue import find_card, find_simulable_card, load_catalogue

MIB = 2**20
GIB = 2**30


def test_all_parts_are_there_once() -> None:
    cards = load_catalogue()
    assert len(cards) == 188
    assert len({card.card_id for card in cards}) == 188
    assert len({card.name for card in cards}) == 188
    assert {card.confidence for card in cards} == {"A", "B", "C"}


def test_known_values() -> None:
    gtx = find_card("GeForce GTX 1660")
    assert (gtx.memory_gb, gtx.compute_capability, gtx.sm_count, gtx.tensor_cores) == (6.0, "7.5", 22, 0)
    assert (gtx.boost_clock_mhz, gtx.tdp_w, gtx.memory_bandwidth_gb_s) == (1785.0, 120.0, 192.0)
    assert gtx.fp32_tflops == pytest.approx(22 * 64 * 2 * 1.785 / 1000, abs=0.01)
    assert gtx.total_bytes == 6 * GIB
    rtx = find_card("RTX 3060")
    assert (rtx.nvml_total_mib, rtx.driver_reserved_mib, rtx.sm_count, rtx.tdp_w) == (12288, 368, 28, 170.0)
    assert rtx.driver_reserved_bytes == 368 * MIB
    assert (rtx.temperature_target_c, rtx.temperature_slowdown_c, rtx.temperature_shutdown_c) == (83.0, 95.0, 98.0)
    assert rtx.pcie_link == (4, 16)
    t4 = find_card("T4")
    assert t4.total_bytes == 15360 * MIB  # not the 16 GB on the box
    assert t4.fp16_tensor_tflops == 65.0
    h100 = find_card("NVIDIA H100 80GB HBM3")
    assert (h100.bf16_tensor_tflops, h100.sm_count, h100.nvml_total_mib) == (989.0, 132, 81559)
    assert find_card("MI300X").memory_bandwidth_gb_s == 5300.0
    assert find_card("MI300X").cuda_capability is None
    assert find_card("GB10").shared_memory is True
    assert find_card("L4").sm_count == 58


def test_blanks_stay_blank() -> None:
    assert find_card("GTX 1660").bf16_tensor_tflops is None  # no matrix units
    assert find_card("A10G").bf16_tensor_tflops is None  # sources disagree
    assert find_card("H20").boost_clock_mhz is None
    assert find_card("GTX 1660 Ti Mobile").tdp_w is None
    tpu = find_card("TPU v7x")
    assert (tpu.memory_gb, tpu.total_bytes, tpu.driver_reserved_bytes, tpu.pcie_link) == (None, None, None, None)


def test_the_reserve_is_typical_where_no_capture_has_it() -> None:
    assert find_card("RTX 4090").driver_reserved_bytes == round(24 * 1024 * 0.017) * MIB


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("GTX 1660 6 GB", "GeForce GTX 1660"),
        ("gtx1660", "GeForce GTX 1660"),
        ("NVIDIA GeForce GTX 1660", "GeForce GTX 1660"),
        ("  nvidia   gtx-1660  6GB ", "GeForce GTX 1660"),
        ("1660", "GeForce GTX 1660"),
        ("GTX 1660 SUPER", "GeForce GTX 1660 SUPER"),
        ("geforce-gtx-1660-ti", "GeForce GTX 1660 Ti"),
        ("rtx 4060 ti 16gb", "GeForce RTX 4060 Ti 16 GB"),
        ("RTX 4060 Ti 8 GiB", "GeForce RTX 4060 Ti 8 GB"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "GeForce RTX 3060 Mobile"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("Tesla V100-SXM2-32GB", "Tesla V100 SXM2 32 GB"),
        ("NVIDIA H200", "H200 SXM 141 GB"),
        ("A100 80GB", "A100 SXM4 80 GB"),  # as PCIe: HBM2e, 108 SMs
        ("a100 40 gb", "A100 SXM4 40 GB"),
        ("b200", "B200 SXM"),
        ("5090", "GeForce RTX 5090"),
        ("RTX 6000 Ada", "RTX 6000 Ada Generation"),
        ("AMD Radeon RX 7900 XTX", "Radeon RX 7900 XTX"),
        ("amd instinct mi300x", "Radeon Instinct MI300X"),
    ],
)
def test_names_are_forgiven(text: str, name: str) -> None:
    assert find_card(text).name == name


def test_every_card_finds_itself() -> None:
    for card in load_catalogue():
        assert find_card(card.name) is card
        assert find_card(card.card_id) is card
        assert find_card(f"{card.vendor} {card.name}".upper()) is card


@pytest.mark.parametrize(
    ("text", "code", "nearest"),
    [
        ("GTX 1666", "device.unknown_card", "GeForce GTX 1660"),
        ("GTX 1660 8 GB", "device.unknown_card", "GeForce GTX 1660"),
        ("RTX 4060 Ti", "device.ambiguous_card", "GeForce RTX 4060 Ti 8 GB"),
        ("A100", "device.ambiguous_card", "A100 SXM4 80 GB"),  # all four are named
        ("H100 80GB", "device.ambiguous_card", "H100 PCIe 80 GB"),  # 114 SMs, SXM5 has 132
        ("", "device.unknown_card", None),
    ],
)
def test_a_name_that_is_none_gets_one_line_with_the_nearest(text: str, code: str, nearest: str | None) -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        find_card(text)
    error = caught.value
    assert error.code == code
    assert error.exit_code is ExitCode.NO_DEVICE
    assert "\n" not in error.message
    names = error.params["nearest"]
    assert isinstance(names, list)
    assert 1 < len(names) <= (6 if code == "device.ambiguous_card" else 3)
    assert all(name in error.message for name in names)
    assert nearest is None or nearest in names


def test_unknown_memory_cannot_be_simulated() -> None:
    assert find_simulable_card("gtx 1660").total_bytes == 6 * GIB
    with pytest.raises(NoSuchDeviceError, match="TPU v7x"):
        find_simulable_card("TPU v7x")


@settings(max_examples=25)
@given(st.text(max_size=60))
def test_any_text_finds_a_card_or_says_so_in_one_line(text: str) -> None:
    try:
        card = find_card(text)
    except NoSuchDeviceError as error:
        assert len(error.message.splitlines()) == 1  # noqa: PT017
    else:
        assert card in load_catalogue()
