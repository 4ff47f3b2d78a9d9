"""Which card a run gets, by its configuration and what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.telemetry import Card
from desktop_app.services.torch_build import TorchBuild, installed_torch
from desktop_app.telemetry.selection import DEFAULT_CARD
from desktop_app.training.config import RunConfig


def simulated_name(config: RunConfig, cards: Sequence[Card]) -> str | None:
    """The catalogue name of the card that a run wants simulated; ``None`` when it takes one that is there."""
    if config.device not in ("auto", "simulated"):
        return None
    if config.card:
        return config.card
    return DEFAULT_CARD if config.device == "simulated" and not any(card.simulated for card in cards) else None


def choose_card(device: str, cards: Sequence[Card], selected: Card | None) -> Card | None:
    """The card for a ``RunConfig.device``; ``None`` for a run on the CPU.

    ``selected`` is the card that the user looks at: it is taken wherever it fits. Raises ``NoSuchDeviceError`` in one
    line when no card does, or when none is known yet.
    """
    if device == "cpu":
        return None
    if selected is None:
        raise NoSuchDeviceError(
            "device.not_known_yet",
            'No card is known yet: the driver has not answered. Wait a moment, or run on the CPU with device = "cpu".',
        )
    if device == "auto":
        return selected
    ordered = [selected, *(card for card in cards if card.uuid != selected.uuid)]
    fitting = [card for card in ordered if _fits(card, device)]
    if not fitting:
        raise _no_such(device, cards)
    return fitting[0]


def check_trainable(card: Card | None, *, torch_build: Callable[[], TorchBuild | None] = installed_torch) -> None:
    """``NoSuchDeviceError`` in one line when torch cannot train on ``card``, as far as it is known without torch."""
    if card is None or card.simulated:
        return
    if card.vendor != "NVIDIA":
        raise NoSuchDeviceError(
            "device.other_maker",
            f"{card.name} is read, but runs need an NVIDIA card or a simulated one: name one with --card NAME, or run "
            'on the CPU with device = "cpu".',
            params={"card": card.name, "vendor": card.vendor},
        )
    build = torch_build()
    if build is not None and build.cuda is None:
        raise NoSuchDeviceError(
            "device.no_cuda",
            f"torch {build.version} is built without CUDA and cannot train on {card.name}. Install a CUDA build of "
            'torch, simulate a card with --card NAME, or run on the CPU with device = "cpu".',
            params={"card": card.name, "torch": build.version},
        )
    if card.torch_index is None:
        raise NoSuchDeviceError(
            "device.index_unknown",
            f"Which CUDA device {card.name} is cannot be told: CUDA_VISIBLE_DEVICES hides it, or there are cards of "
            "several models. Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or simulate a card with --card NAME.",
            params={"card": card.name},
        )


def _fits(card: Card, device: str) -> bool:
    if device == "simulated":
        return card.simulated
    _, _, index = device.partition(":")
    return not card.simulated and (not index or card.torch_index == int(index))


def _no_such(device: str, cards: Sequence[Card]) -> NoSuchDeviceError:
    if device == "simulated":
        text = 'there is no simulated card here; name one with --card, such as --card "GeForce GTX 1660"'
    elif all(card.simulated for card in cards):
        text = 'only a simulated card is here; use device = "auto" for it, or device = "cpu"'
    else:
        there = ", ".join(f"cuda:{card.torch_index} {card.name}" for card in cards if card.torch_index is not None)
        text = f"there is no such card; torch can use {there or 'none of those here'}"
    return NoSuchDeviceError("device.no_such_index", f"device {device}: {text}.", params={"device": device})
