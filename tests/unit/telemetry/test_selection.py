"""Which card a session watches."""

from __future__ import annotations

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import Card, Reason
from desktop_app.telemetry import selection
from desktop_app.telemetry.backend import Advice, BackendUnavailable
from desktop_app.telemetry.nvml_backend import NvmlBackend
from desktop_app.telemetry.selection import open_backend, probe_nvml


def test_a_name_is_a_simulated_card() -> None:
    backend = open_backend("RTX 3090", load=CardLoad(), clock=SessionClock())
    (card,) = backend.open()
    assert backend.name == "simulated"
    assert (card.name, card.simulated) == ("GeForce RTX 3090", True)
    assert card.driver_reserved_bytes == 316 * 2**20


@pytest.mark.parametrize("name", ["RTX 9999", "TPU v7x"])
def test_a_name_that_cannot_be_simulated_is_an_error(name: str) -> None:
    with pytest.raises(NoSuchDeviceError):
        open_backend(name, load=CardLoad(), clock=SessionClock())


def test_no_card_in_the_machine_gives_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver(_: NvmlBackend) -> tuple[Card, ...]:
        raise BackendUnavailable(Reason.NO_DRIVER, "no driver", Advice.INSTALL_DRIVER)

    monkeypatch.setattr(NvmlBackend, "open", no_driver)
    (card,) = open_backend(None, load=CardLoad(), clock=SessionClock()).open()
    assert (card.name, card.simulated, card.total_bytes) == (selection.DEFAULT_CARD, True, 6 * 2**30)
    probe = probe_nvml()
    assert (probe.reason, probe.advice_code) == (Reason.NO_DRIVER, Advice.INSTALL_DRIVER)


def test_the_card_of_the_machine_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Card(uuid="GPU-1", name="Real", nvml_index=0, bus_id=None, simulated=False, total_bytes=1)
    monkeypatch.setattr(NvmlBackend, "open", lambda _: (real,))
    backend = open_backend(None, load=CardLoad(), clock=SessionClock())
    assert (backend.name, backend.open()) == ("nvml", (real,))


def test_an_unavailable_backend_is_one_line_for_the_user() -> None:
    error = BackendUnavailable(Reason.DRIVER_MISMATCH, "versions differ", Advice.RESTART_AFTER_UPDATE)
    assert (error.code, error.params["advice"], str(error)) == (
        "telemetry.driver_mismatch",
        "restart_after_update",
        "versions differ",
    )
