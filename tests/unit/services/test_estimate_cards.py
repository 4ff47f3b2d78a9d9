"""Cards for an estimate: known ones, near misses, and sizes without a card."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from desktop_app.core.errors import ExitCode, NoSuchDeviceError
from desktop_app.core.telemetry import Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.services import estimate_cards
from desktop_app.services.estimate_cards import card_spec, exact_context_bytes, named_card
from desktop_app.telemetry.backend import Advice, BackendUnavailable

from .doubles import make_card


def test_a_card_of_the_machine_is_described() -> None:
    spec = card_spec(make_card(architecture="Turing", compute_capability=(7, 5), sm_count=22))
    assert (spec.name, spec.capacity_bytes, spec.total_bytes) == ("GeForce GTX 1660", 6 * GIB - 128 * MIB, 6 * GIB)
    assert (spec.compute_capability, spec.sm_count) == ((7, 5), 22)


@pytest.mark.parametrize("total_bytes", [None, 0])
def test_a_card_of_unknown_memory_cannot_be_estimated(total_bytes: int | None) -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        card_spec(make_card(total_bytes=total_bytes, driver_reserved_bytes=None))
    assert caught.value.code == "device.memory_unknown"
    assert "--card" in str(caught.value)


def test_a_card_of_the_catalogue_is_found_by_a_forgiving_name() -> None:
    found = named_card("rtx 3090", capacity_bytes=None)
    # GA102 in the RTX 3090: 82 SMs, compute capability 8.6 (NVIDIA Ampere GA102 whitepaper); 24 GB.
    assert (found.spec.sm_count, found.spec.compute_capability) == (82, (8, 6))
    assert 23 * GIB < found.spec.capacity_bytes < found.spec.total_bytes <= 24 * GIB
    assert found.others_bytes == 0


def test_a_near_miss_names_the_nearest() -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        named_card("RTX 3091", capacity_bytes=None)
    assert caught.value.exit_code is ExitCode.NO_DEVICE
    assert "RTX 3090" in caught.value.message


def test_the_cards_of_the_guide_are_found() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guide" / "estimate.md").read_text(encoding="utf-8")
    named = re.findall(r'^floodmark estimate .*--gpu "([^"]+)"', page, re.MULTILINE)
    assert len(named) >= 4
    for name in named:
        assert named_card(name, capacity_bytes=None).spec.sm_count
    # Both forms of the A100 with 80 GB have 108 SMs (NVIDIA A100 data sheet).
    assert named_card("A100 80GB", capacity_bytes=None).spec.sm_count == 108


def test_with_a_capacity_any_name_will_do() -> None:
    unknown = named_card("Card of 2031", capacity_bytes=48 * GIB).spec
    assert (unknown.name, unknown.capacity_bytes, unknown.compute_capability) == ("Card of 2031", 48 * GIB, None)
    smaller = named_card("RTX 3090", capacity_bytes=10 * GIB).spec
    assert (smaller.sm_count, smaller.capacity_bytes) == (82, 10 * GIB)
    larger = named_card("RTX 3090", capacity_bytes=30 * GIB).spec
    assert larger.capacity_bytes == larger.total_bytes == 30 * GIB


class NoDriver:
    def __init__(self, _: object) -> None: ...

    def open(self) -> tuple[()]:
        raise BackendUnavailable(Reason.NO_DRIVER, "no library", Advice.INSTALL_DRIVER)

    def close(self) -> None: ...


def test_without_a_name_and_without_a_card_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_cards, "NvmlBackend", NoDriver)
    with pytest.raises(NoSuchDeviceError) as caught:
        named_card(None, capacity_bytes=None)
    assert "--gpu" in caught.value.message
    assert "no library" in caught.value.message
    assert named_card(None, capacity_bytes=GIB).spec.capacity_bytes == GIB


def test_the_context_of_a_simulated_card_is_what_it_holds() -> None:
    spec = named_card("GTX 1660", capacity_bytes=None).spec
    with SimulatedDevice(spec) as device:
        assert exact_context_bytes(spec) == device.outside_bytes
