"""Cards for an estimate: of this machine, of the catalogue, or of nothing but a size."""

from __future__ import annotations

from dataclasses import dataclass, replace

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.telemetry import Card
from desktop_app.memory.card_spec import CardSpec
from desktop_app.telemetry.backend import BackendUnavailable
from desktop_app.telemetry.catalogue import CatalogueCard, find_simulable_card
from desktop_app.telemetry.nvml_backend import NvmlBackend


@dataclass(frozen=True, slots=True)
class EstimateCard:
    """A card and what other processes hold on it now."""

    spec: CardSpec
    others_bytes: int = 0


def card_spec(card: Card) -> CardSpec:
    """A card as the estimate sees it. ``NoSuchDeviceError`` when its memory is not known."""
    if not card.capacity_bytes or not card.total_bytes:
        raise NoSuchDeviceError(
            "device.memory_unknown",
            f"The memory of {card.name} is not known, so nothing can be estimated on it. Choose a card by --card.",
            params={"card": card.name},
        )
    return CardSpec(
        name=card.name,
        capacity_bytes=card.capacity_bytes,
        total_bytes=card.total_bytes,
        architecture=card.architecture,
        compute_capability=card.compute_capability,
        sm_count=card.sm_count,
    )


def named_card(name: str | None, *, capacity_bytes: int | None) -> EstimateCard:
    """The card that the command names, or the machine's own; ``capacity_bytes`` replaces what is known of it.

    With a capacity any name will do, also of a card that is not in the catalogue. ``NoSuchDeviceError`` in one line
    with the nearest names, or when no card is named and none is there.
    """
    try:
        found = machine_card() if name is None else EstimateCard(_of_catalogue(find_simulable_card(name)))
    except NoSuchDeviceError:
        if capacity_bytes is None:
            raise
        return EstimateCard(CardSpec(name or "a card", capacity_bytes, capacity_bytes))
    if capacity_bytes is None:
        return found
    total_bytes = max(capacity_bytes, found.spec.total_bytes)
    return replace(found, spec=replace(found.spec, capacity_bytes=capacity_bytes, total_bytes=total_bytes))


def machine_card() -> EstimateCard:
    """The first card of this machine, with what is used on it now. Asks the driver, which can block for seconds."""
    backend = NvmlBackend(SessionClock())
    try:
        card = backend.open()[0]
        used = backend.read_fast(card)["memory_used_bytes"].value
    except (BackendUnavailable, IndexError) as error:
        detail = f" ({error.detail})" if isinstance(error, BackendUnavailable) else ""
        raise NoSuchDeviceError(
            "device.none_named",
            f'No NVIDIA card can be read here{detail}. Name one by --gpu, such as --gpu "RTX 4090".',
        ) from None
    finally:
        backend.close()
    return EstimateCard(card_spec(card), 0 if used is None else int(used))


def _of_catalogue(part: CatalogueCard) -> CardSpec:
    assert part.total_bytes is not None  # find_simulable_card
    return CardSpec(
        name=part.name,
        capacity_bytes=part.total_bytes - (part.driver_reserved_bytes or 0),
        total_bytes=part.total_bytes,
        architecture=part.architecture,
        compute_capability=part.cuda_capability,
        sm_count=part.sm_count,
    )


def exact_context_bytes(card: CardSpec) -> int:
    """What the simulated card of this kind holds outside its allocator: a figure, not a distribution."""
    from desktop_app.memory.overheads import ContextPrior

    return min(ContextPrior.of(card).draw(0), card.capacity_bytes)
