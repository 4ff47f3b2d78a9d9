"""The border to a source of telemetry: NVML, the simulated card, later a replayed session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Protocol

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.core.telemetry import Card, CardError, GpuSample, InstanceSample, ProcessSample, Reading, Reason

# Reasons that mean "this card cannot be read at all until it is opened again".
# The worst first. A driver that answers "unknown error" to everything (containers whose devices were taken away) does
# so until the library is initialised again.
OUTAGE_REASONS: Final = (Reason.GPU_LOST, Reason.NO_DRIVER, Reason.DRIVER_MISMATCH, Reason.UNKNOWN_ERROR)


class Advice(StrEnum):
    """What the user can do about a missing backend; windows make the text."""

    INSTALL_DRIVER = "install_driver"
    LOAD_DRIVER = "load_driver"
    RESTART_AFTER_UPDATE = "restart_after_update"
    ALLOW_ACCESS = "allow_access"
    CHECK_CARD = "check_card"
    TRY_AGAIN = "try_again"


class BackendUnavailable(FloodmarkError):  # noqa: N818  a state of the machine, not a fault of the program
    """The whole backend cannot be read. ``reason`` is typed, ``detail`` is one technical English line."""

    def __init__(self, reason: Reason, detail: str, advice_code: Advice) -> None:
        super().__init__(
            f"telemetry.{reason.value}",
            detail,
            exit_code=ExitCode.NO_DEVICE,
            params={"advice": advice_code.value},
        )
        self.reason = reason
        self.detail = detail
        self.advice_code = advice_code


class Backend(Protocol):
    """Cards and their fields. One thread at a time for each card; the sampler owns it once it runs.

    ``open`` may be called again: while open it returns the same cards, after ``close`` it looks anew. Every ``read_*``
    returns a reading for each field of its lane and raises ``BackendUnavailable`` only when nothing can be read.
    ``open`` and ``close`` are never called while another call is under way.
    """

    @property
    def name(self) -> str: ...

    def open(self) -> tuple[Card, ...]: ...

    def read_fast(self, card: Card) -> Mapping[str, Reading]: ...

    def read_slow(self, card: Card) -> Mapping[str, Reading]: ...

    def processes(self, card: Card) -> tuple[ProcessSample, ...]: ...

    def close(self) -> None: ...


def has_changed(backend: Backend) -> bool:
    """Whether opening anew would find other cards, for backends that know (``has_changed``). Never blocks."""
    ask = getattr(backend, "has_changed", None)
    return ask is not None and bool(ask())


def card_errors(backend: Backend) -> tuple[CardError, ...]:
    """What was pushed since the last time, of backends that hear of errors (``card_errors``). Never blocks."""
    ask = getattr(backend, "card_errors", None)
    return () if ask is None else tuple(ask())


def instances(backend: Backend, card: Card) -> tuple[InstanceSample, ...]:
    """The card's MIG instances, of backends that know such (``instances``). May block as ``read_slow``."""
    ask = getattr(backend, "instances", None)
    return () if ask is None else tuple(ask(card))


def back_fill(
    backend: Backend, card: Card, *, since_s: float, readings: Mapping[str, Reading]
) -> tuple[GpuSample, ...]:
    """What the driver has recorded itself between ``since_s`` and now, of fields that have a value in ``readings``;
    of backends that keep such (``back_fill``). May block as ``read_fast``."""
    ask = getattr(backend, "back_fill", None)
    return () if ask is None else tuple(ask(card, since_s=since_s, readings=readings))


def wake(backend: Backend) -> None:
    """Something is about to use a card: backends that let one sleep (``wake``) read it from now on. Any thread."""
    tell = getattr(backend, "wake", None)
    if tell is not None:
        tell()


def missing(fields: Iterable[str], reason: Reason) -> dict[str, Reading]:
    """The same absence for several fields."""
    return dict.fromkeys(fields, Reading(None, reason))


def outage_reason(readings: Mapping[str, Reading]) -> Reason | None:
    """The reason, when no field has a value and at least one says that the card is gone."""
    for reading in readings.values():
        if reading.value is not None:  # nearly always the first
            return None
    seen = {reading.reason for reading in readings.values()}
    return next((reason for reason in OUTAGE_REASONS if reason in seen), None)
