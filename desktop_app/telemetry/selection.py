"""Which card this session watches: the one named, the one in the machine, or the default simulated one."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.telemetry.amdsmi import PACKAGE
from desktop_app.telemetry.amdsmi_backend import AmdSmiBackend
from desktop_app.telemetry.backend import Backend, BackendUnavailable
from desktop_app.telemetry.card_memory import CardMemory
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.telemetry.combined import CombinedBackend
from desktop_app.telemetry.nvml_backend import NvmlBackend, NvmlProbe
from desktop_app.telemetry.resting import RestingBackend
from desktop_app.telemetry.runtime_power import RuntimePower
from desktop_app.telemetry.simulated import SimulatedBackend

_log = logging.getLogger(__name__)

DEFAULT_CARD: Final = "GeForce GTX 1660"  # 6 GB


def open_backend(
    card_name: str | None,
    *,
    load: CardLoad,
    clock: SessionClock,
    seed: int = 0,
    on_simulated: Callable[[BackendUnavailable], None] | None = None,
    card_memory: Path | None = None,
) -> Backend:
    """An open backend: the simulated card of that name, or without a name the machine's own cards, or
    ``DEFAULT_CARD`` simulated where there are none.

    ``load`` is what a training writes and a simulated card reads. Without a name this loads the driver library, which
    can block for seconds; ``on_simulated`` hears why the machine's own cards cannot be had. ``card_memory``: a file
    that knows cards from before, so that those that sleep are left asleep. Raises ``NoSuchDeviceError`` for a name
    that is not, or not surely, in the catalogue.
    """
    if card_name is not None:
        return _simulated(card_name, load=load, clock=clock, seed=seed)
    real = _own_cards(clock, card_memory)
    try:
        cards = real.open()
    except BackendUnavailable as error:
        _log.info("no card in this machine (%s: %s): simulating a %s", error.reason, error.detail, DEFAULT_CARD)
        if on_simulated is not None:
            on_simulated(error)
        return _simulated(DEFAULT_CARD, load=load, clock=clock, seed=seed)
    _log.info("watching %s", ", ".join(card.name for card in cards))
    return real


def has_amdsmi() -> bool:
    """Whether the Python package for AMD's driver is installed. Imports nothing."""
    return importlib.util.find_spec(PACKAGE) is not None


def _own_cards(clock: SessionClock, card_memory: Path | None) -> Backend:
    """NVIDIA's cards, and AMD's behind them where their package is installed."""
    power = RuntimePower()
    memory = None if card_memory is None else CardMemory(card_memory, identity=power.identity)
    nvidia = RestingBackend(NvmlBackend(clock), now_s=clock.now_s, power=power, memory=memory)
    return CombinedBackend((nvidia, AmdSmiBackend(clock))) if has_amdsmi() else nvidia


def probe_nvml(clock: SessionClock | None = None) -> NvmlProbe:
    """What NVIDIA's driver says about this machine, with a reason for everything missing. Never raises."""
    return NvmlBackend(clock or SessionClock()).probe()


def _simulated(card_name: str, *, load: CardLoad, clock: SessionClock, seed: int) -> SimulatedBackend:
    backend = SimulatedBackend(find_simulable_card(card_name), load=load, clock=clock, seed=seed)
    backend.open()
    return backend
