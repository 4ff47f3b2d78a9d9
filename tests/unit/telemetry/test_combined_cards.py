"""Cards of two makers beside each other: each fails alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    FAST_FIELDS,
    Card,
    CardError,
    GpuSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry import selection
from desktop_app.telemetry.backend import Advice, Backend, BackendUnavailable, missing
from desktop_app.telemetry.combined import CombinedBackend

NO_DRIVER = BackendUnavailable(Reason.NO_DRIVER, "no driver", Advice.INSTALL_DRIVER)
LOST = BackendUnavailable(Reason.GPU_LOST, "no card", Advice.CHECK_CARD)


class Maker:
    """A backend with one card; ``trouble`` stands in its way."""

    def __init__(self, name: str, *, trouble: BackendUnavailable | None = None) -> None:
        self.name = name
        self.trouble = trouble
        self.changed = False
        self.closed = 0
        self.card = Card(uuid=name, name=name, nvml_index=0, bus_id=None, simulated=False, total_bytes=1)

    def open(self) -> tuple[Card, ...]:
        self._check()
        return (self.card,)

    def has_changed(self) -> bool:
        return self.changed

    def read_fast(self, _: Card) -> Mapping[str, Reading]:
        self._check()
        return dict.fromkeys(FAST_FIELDS, Reading(7.0))

    def read_slow(self, _: Card) -> Mapping[str, Reading]:
        self._check()
        return missing(set(ALL_GPU_FIELDS) - set(FAST_FIELDS), Reason.NOT_SUPPORTED)

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        self._check()
        return (ProcessSample(1, card.uuid, "p", None, None, "compute", None),)

    def close(self) -> None:
        self.closed += 1
        if self.closed == 1 and self.name == "nvidia":
            raise RuntimeError("closing is hard")

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble


def test_all_cards_in_order() -> None:
    nvidia, amd = Maker("nvidia"), Maker("amd")
    both: Backend = CombinedBackend((nvidia, amd))
    assert both.name == "nvidia+amd"
    assert both.open() == (nvidia.card, amd.card)
    for card in (nvidia.card, amd.card):
        assert set(both.read_fast(card).values()) == {Reading(7.0)}
        assert [process.uuid for process in both.processes(card)] == [card.uuid]


def test_one_maker_without_a_driver_is_no_outage_of_the_other() -> None:
    nvidia, amd = Maker("nvidia", trouble=NO_DRIVER), Maker("amd")
    both = CombinedBackend((nvidia, amd))
    assert both.open() == (amd.card,)
    nvidia.trouble = None
    assert both.open() == (nvidia.card, amd.card)


def test_none_at_all_says_what_the_first_said() -> None:
    both = CombinedBackend((Maker("nvidia", trouble=NO_DRIVER), Maker("amd", trouble=LOST)))
    with pytest.raises(BackendUnavailable) as refused:
        both.open()
    assert refused.value is NO_DRIVER


def test_a_driver_that_goes_away_leaves_the_others_cards() -> None:
    nvidia, amd = Maker("nvidia"), Maker("amd")
    both = CombinedBackend((nvidia, amd))
    both.open()
    amd.trouble = BackendUnavailable(Reason.NO_DRIVER, "not open", Advice.TRY_AGAIN)
    assert set(both.read_fast(amd.card).values()) == {Reading(None, Reason.NO_DRIVER)}
    assert both.read_slow(amd.card).keys() == set(ALL_GPU_FIELDS) - set(FAST_FIELDS)
    assert both.processes(amd.card) == ()
    assert both.read_fast(nvidia.card)["power_w"] == Reading(7.0)
    amd.trouble = BackendUnavailable(Reason.DRIVER_MISMATCH, "updated", Advice.RESTART_AFTER_UPDATE)
    both.open()
    amd.trouble = BackendUnavailable(Reason.NO_DRIVER, "not open", Advice.TRY_AGAIN)
    assert both.read_fast(amd.card)["power_w"] == Reading(None, Reason.DRIVER_MISMATCH), "why it cannot be opened"


def test_each_is_closed_whatever_another_does(caplog: pytest.LogCaptureFixture) -> None:
    nvidia, amd = Maker("nvidia"), Maker("amd")
    CombinedBackend((nvidia, amd)).close()
    assert (nvidia.closed, amd.closed) == (1, 1)
    assert "nvidia did not close" in caplog.text


def test_a_card_plugged_in_anywhere_is_a_change() -> None:
    nvidia, amd = Maker("nvidia"), Maker("amd")
    both = CombinedBackend((nvidia, amd))
    assert not both.has_changed()
    amd.changed = True
    assert both.has_changed()


def test_what_only_one_maker_has_is_passed_on() -> None:
    nvidia, amd = Maker("nvidia"), Maker("amd")
    told, sample = CardError(1.0, "nvidia", 79), GpuSample(1.0, "nvidia", {})
    vars(nvidia).update(
        card_errors=lambda: (told,), instances=lambda card: (card.uuid,), back_fill=lambda *_, **__: (sample,)
    )
    both = CombinedBackend((nvidia, amd))
    both.open()
    assert both.card_errors() == (told,)
    assert (both.instances(nvidia.card), both.instances(amd.card)) == (("nvidia",), ())
    assert both.back_fill(nvidia.card, since_s=0.0, readings={}) == (sample,)
    assert both.back_fill(amd.card, since_s=0.0, readings={}) == ()


def test_nothing_to_combine_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="nothing to combine"):
        CombinedBackend(())


@pytest.mark.parametrize(("installed", "name"), [(False, "nvml"), (True, "nvml+amdsmi")])
def test_amd_is_looked_for_only_where_its_package_is(
    monkeypatch: pytest.MonkeyPatch, installed: bool, name: str
) -> None:
    card = Card(uuid="GPU-1", name="Real", nvml_index=0, bus_id=None, simulated=False, total_bytes=1)
    monkeypatch.setattr(selection.NvmlBackend, "open", lambda _: (card,))
    monkeypatch.setattr(selection.AmdSmiBackend, "open", lambda _: (_ for _ in ()).throw(NO_DRIVER))
    monkeypatch.setattr(selection, "has_amdsmi", lambda: installed)
    backend = selection.open_backend(None, load=CardLoad(), clock=SessionClock())
    assert (backend.name, backend.open()) == (name, (card,))
