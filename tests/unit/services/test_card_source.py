"""The cards of a session for which none was named."""

from __future__ import annotations

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import Card, Reason
from desktop_app.services.card_source import machine_cards
from desktop_app.services.torch_build import TorchBuild
from desktop_app.telemetry.backend import Advice, BackendUnavailable
from desktop_app.telemetry.deferred import DeferredBackend
from desktop_app.telemetry.nvml_backend import NvmlBackend

from .doubles import make_card

REAL = make_card("GPU-a", simulated=False, name="NVIDIA GeForce RTX 3090")
CUDA = TorchBuild("2.9.0+cu128", "12.8")
CPU_ONLY = TorchBuild("2.9.0+cpu", None)


@pytest.fixture
def told() -> list[str]:
    return []


def source(told: list[str], *, must_train: bool = False, build: TorchBuild | None = CUDA) -> DeferredBackend:
    return machine_cards(
        load=CardLoad(),
        clock=SessionClock(),
        must_train=must_train,
        on_simulated=told.append,
        torch_build=lambda: build,
    )


def use_driver(monkeypatch: pytest.MonkeyPatch, *cards: Card) -> None:
    """A driver that sees ``cards``; without any it is not installed."""

    def open_driver(_: NvmlBackend) -> tuple[Card, ...]:
        if not cards:
            raise BackendUnavailable(Reason.NO_DRIVER, "the driver is not loaded", Advice.LOAD_DRIVER)
        return cards

    monkeypatch.setattr(NvmlBackend, "open", open_driver)
    monkeypatch.setattr(NvmlBackend, "close", lambda _: None)


def test_without_a_driver_the_default_card_stands_in_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    use_driver(monkeypatch)
    backend = source(told)
    assert told == []
    (card,) = backend.open()
    assert (card.name, card.simulated) == ("GeForce GTX 1660", True)
    backend.close()
    backend.open()
    assert told == ["No NVIDIA card can be read: the driver is not loaded. A simulated GeForce GTX 1660 stands in."]


@pytest.mark.parametrize(("must_train", "build"), [(False, CPU_ONLY), (False, CUDA), (True, CUDA), (True, None)])
def test_the_machines_own_card_is_watched(
    monkeypatch: pytest.MonkeyPatch, told: list[str], must_train: bool, build: TorchBuild | None
) -> None:
    use_driver(monkeypatch, REAL)
    assert source(told, must_train=must_train, build=build).open() == (REAL,)
    assert told == []


def test_a_demonstration_passes_over_a_card_that_torch_cannot_use(
    monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    use_driver(monkeypatch, REAL)
    backend = source(told, must_train=True, build=CPU_ONLY)
    (card,) = backend.open()
    assert card.simulated
    assert backend.name == "simulated"
    assert told == [
        "torch 2.9.0+cpu is built without CUDA and cannot train on NVIDIA GeForce RTX 3090. "
        "A simulated GeForce GTX 1660 stands in."
    ]


def test_without_driver_and_cuda_there_is_one_reason(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    use_driver(monkeypatch)
    source(told, must_train=True, build=CPU_ONLY).open()
    assert len(told) == 1
    assert "driver" in told[0]


def test_a_demonstration_passes_over_a_card_of_another_maker(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    radeon = make_card("AMD-a", simulated=False, name="Radeon RX 7900 XTX", vendor="AMD")
    use_driver(monkeypatch, radeon)
    assert source(told).open() == (radeon,)
    use_driver(monkeypatch, radeon, REAL)
    assert source(told, must_train=True).open() == (radeon, REAL)
    use_driver(monkeypatch, radeon)
    (card,) = source(told, must_train=True).open()
    assert card.simulated
    assert told == ["Runs need an NVIDIA card, and here is Radeon RX 7900 XTX. A simulated GeForce GTX 1660 stands in."]
