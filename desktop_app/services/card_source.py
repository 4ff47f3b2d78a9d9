"""The cards of a session for which none was named: the machine's own, or a simulated one that stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.services.locations import data_folder
from desktop_app.services.torch_build import TorchBuild, installed_torch
from desktop_app.telemetry.backend import Backend
from desktop_app.telemetry.deferred import DeferredBackend
from desktop_app.telemetry.selection import DEFAULT_CARD, open_backend

_CARD_MEMORY: Final = "cards.json"


def machine_cards(
    *,
    load: CardLoad,
    clock: SessionClock,
    must_train: bool,
    on_simulated: Callable[[str], None],
    torch_build: Callable[[], TorchBuild | None] = installed_torch,
) -> DeferredBackend:
    """Chooses in the sampler thread, because the driver library can block. Returns at once and never raises.

    ``must_train``: a card that the installed torch cannot use is passed over too, for a demonstration. When the
    simulated card stands in, ``on_simulated`` gets the reason in one line.
    """

    def choose() -> Backend:
        own = open_backend(
            None,
            load=load,
            clock=clock,
            on_simulated=lambda error: on_simulated(_stands_in(f"No NVIDIA card can be read: {error.detail}")),
            card_memory=data_folder() / _CARD_MEMORY,
        )
        if not must_train or own.name == "simulated":
            return own
        cards, build = own.open(), torch_build()
        names = ", ".join(card.name for card in cards)
        if all(card.vendor != "NVIDIA" for card in cards):
            reason = f"Runs need an NVIDIA card, and here is {names}"
        elif build is not None and build.cuda is None:
            reason = f"torch {build.version} is built without CUDA and cannot train on {names}"
        else:
            return own
        own.close()
        on_simulated(_stands_in(reason))
        return open_backend(DEFAULT_CARD, load=load, clock=clock)

    return DeferredBackend(choose)


def _stands_in(reason: str) -> str:
    return f"{reason}. A simulated {DEFAULT_CARD} stands in."
