"""Which card a run gets."""

from __future__ import annotations

import pytest

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.telemetry import Card
from desktop_app.services.card_choice import check_trainable, choose_card, simulated_name
from desktop_app.services.torch_build import TorchBuild
from desktop_app.training.config import RunConfig

from .doubles import make_card

SIMULATED = make_card("SIM-1", simulated=True)
FIRST = make_card("GPU-a", simulated=False, name="NVIDIA GeForce RTX 3090", torch_index=0)
SECOND = make_card("GPU-b", simulated=False, name="NVIDIA GeForce RTX 3060", torch_index=1)
CUDA = TorchBuild("2.9.0+cu128", "12.8")
CPU_ONLY = TorchBuild("2.9.0+cpu", None)


@pytest.mark.parametrize(
    ("device", "cards", "selected", "chosen"),
    [
        ("cpu", (FIRST,), FIRST, None),
        ("cpu", (), None, None),
        ("auto", (FIRST, SECOND), SECOND, SECOND),
        ("auto", (SIMULATED,), SIMULATED, SIMULATED),
        ("simulated", (SIMULATED,), SIMULATED, SIMULATED),
        ("cuda", (FIRST, SECOND), SECOND, SECOND),
        ("cuda:0", (FIRST, SECOND), SECOND, FIRST),
        ("cuda:1", (FIRST, SECOND), FIRST, SECOND),
    ],
)
def test_a_device_means_a_card(
    device: str, cards: tuple[Card, ...], selected: Card | None, chosen: Card | None
) -> None:
    assert choose_card(device, cards, selected) == chosen


@pytest.mark.parametrize(
    ("device", "cards", "line"),
    [
        (
            "cuda:2",
            (FIRST, SECOND),
            "device cuda:2: there is no such card; torch can use cuda:0 NVIDIA GeForce RTX 3090",
        ),
        ("cuda", (SIMULATED,), 'only a simulated card is here; use device = "auto" for it, or device = "cpu"'),
        ("simulated", (FIRST,), 'name one with --card, such as --card "GeForce GTX 1660"'),
    ],
)
def test_a_device_that_is_not_there_is_one_line(device: str, cards: tuple[Card, ...], line: str) -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        choose_card(device, cards, cards[0])
    assert line in str(caught.value)
    assert caught.value.code == "device.no_such_index"
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", ["auto", "cuda", "simulated"])
def test_before_the_driver_has_answered_no_run_falls_back_to_the_cpu(device: str) -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        choose_card(device, (), None)
    assert caught.value.code == "device.not_known_yet"


def test_the_cpu_and_simulated_cards_need_no_cuda() -> None:
    for card in (None, SIMULATED):
        check_trainable(card, torch_build=lambda: CPU_ONLY)


def test_a_card_is_trainable_by_a_torch_that_knows_it() -> None:
    check_trainable(FIRST, torch_build=lambda: CUDA)
    check_trainable(FIRST, torch_build=lambda: None)  # not known: torch itself will say


def test_a_torch_without_cuda_is_said_with_the_ways_out() -> None:
    with pytest.raises(NoSuchDeviceError) as caught:
        check_trainable(FIRST, torch_build=lambda: CPU_ONLY)
    line = str(caught.value)
    assert "torch 2.9.0+cpu is built without CUDA and cannot train on NVIDIA GeForce RTX 3090" in line
    assert "--card" in line
    assert 'device = "cpu"' in line
    assert (caught.value.code, caught.value.exit_code) == ("device.no_cuda", 4)


def test_a_card_without_a_known_index_is_never_taken_for_the_first() -> None:
    hidden = make_card("GPU-c", simulated=False, torch_index=None)
    with pytest.raises(NoSuchDeviceError) as caught:
        check_trainable(hidden, torch_build=lambda: CUDA)
    assert caught.value.code == "device.index_unknown"
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in str(caught.value)


@pytest.mark.parametrize(
    ("device", "card", "cards", "wanted"),
    [
        ("auto", None, (), None),
        ("auto", "RTX 4090", (), "RTX 4090"),
        ("simulated", "RTX 4090", (), "RTX 4090"),
        ("simulated", None, (), "GeForce GTX 1660"),
        ("cuda:0", "RTX 4090", (), None),
        ("cpu", "RTX 4090", (), None),
    ],
)
def test_a_named_card_is_simulated_unless_the_device_says_otherwise(
    device: str, card: str | None, cards: tuple[Card, ...], wanted: str | None
) -> None:
    assert simulated_name(RunConfig(device=device, card=card), cards) == wanted


def test_a_card_of_another_maker_is_read_and_not_trained_on() -> None:
    radeon = make_card("AMD-a", simulated=False, name="Radeon RX 7900 XTX", vendor="AMD", torch_index=None)
    with pytest.raises(NoSuchDeviceError) as caught:
        check_trainable(radeon, torch_build=lambda: TorchBuild("2.9.0+rocm6.4", None))
    assert caught.value.code == "device.other_maker"
    assert str(caught.value).startswith("Radeon RX 7900 XTX is read, but runs need an NVIDIA card or a simulated one")
