"""Cards of several makers as one backend: each maker's driver fails alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import (
    Backend,
    BackendUnavailable,
    back_fill,
    card_errors,
    has_changed,
    instances,
    missing,
    wake,
)

_log = logging.getLogger(__name__)


class CombinedBackend:
    """Several backends in order; their cards one after the other. Runs in: one thread at a time for each card.

    ``open`` raises only when none of them has a card, with the first one's reason. A card whose backend is away answers
    that backend's reason in every field, so that the sampler looks for it again; the others go on.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        if not backends:
            raise ValueError("there is nothing to combine")
        self._backends = tuple(backends)
        self._owners: dict[str, Backend] = {}
        self._away: dict[str, Reason] = {}  # by name of the backend

    @property
    def name(self) -> str:
        return "+".join(backend.name for backend in self._backends)

    def open(self) -> tuple[Card, ...]:
        """The cards of all that can be opened."""
        found: list[Card] = []
        errors: list[BackendUnavailable] = []
        for backend in self._backends:
            try:
                cards = backend.open()
            except BackendUnavailable as error:
                errors.append(error)
                self._away[backend.name] = error.reason
                _log.info("%s cannot be read: %s", backend.name, error.detail)
                continue
            self._away.pop(backend.name, None)
            self._owners.update(dict.fromkeys((card.uuid for card in cards), backend))
            found.extend(cards)
        if not found:
            raise errors[0]
        return tuple(found)

    def has_changed(self) -> bool:
        return any(has_changed(backend) for backend in self._backends)

    def wake(self) -> None:
        for backend in self._backends:
            wake(backend)

    def card_errors(self) -> tuple[CardError, ...]:
        return tuple(error for backend in self._backends for error in card_errors(backend))

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        return instances(self._owner(card), card)

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        return back_fill(self._owner(card), card, since_s=since_s, readings=readings)

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        try:
            return self._owner(card).read_fast(card)
        except BackendUnavailable as error:
            return missing(FAST_FIELDS, self._reason(card, error))

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        try:
            return self._owner(card).read_slow(card)
        except BackendUnavailable as error:
            return missing(SLOW_FIELDS + DETAIL_FIELDS, self._reason(card, error))

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        try:
            return self._owner(card).processes(card)
        except BackendUnavailable:
            return ()

    def close(self) -> None:
        """Close each, whatever another one does."""
        for backend in self._backends:
            try:
                backend.close()
            except Exception:
                _log.exception("%s did not close", backend.name)

    def _owner(self, card: Card) -> Backend:
        return self._owners[card.uuid]

    def _reason(self, card: Card, error: BackendUnavailable) -> Reason:
        """Why it could not be opened last, which says more than that it is not open."""
        return self._away.get(self._owner(card).name, error.reason)
