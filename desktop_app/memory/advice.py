"""What would lower a training's peak, each found by tracing the changed training, not by a rule of thumb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop_app.core.forecasts import Estimate, Lever, Verdict
from desktop_app.memory.estimate import device_peak_p50
from desktop_app.memory.overheads import CardSpec

if TYPE_CHECKING:
    from desktop_app.memory.trace import TraceTarget


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed training. ``changes`` are the fields of the run's config that differ, for whoever applies them."""

    changes: Mapping[str, object]
    target: TraceTarget
    batch_size: int


def levers(base: Estimate, card: CardSpec, variants: Mapping[str, Variant]) -> tuple[Lever, ...]:
    """The variants, by code, that lower the median of the device's peak, the largest saving first.

    Variants that cannot be traced are left out. One trace and one replay each.
    """
    if base.verdict is Verdict.CANNOT_SAY:
        return ()
    found = []
    for code, variant in variants.items():
        peak_bytes = _peak(variant, card, context_bytes=base.context_bytes)
        if peak_bytes is not None and peak_bytes < base.device_peak_bytes.p50:
            saved_bytes = base.device_peak_bytes.p50 - peak_bytes
            found.append(Lever(code, variant.changes, saved_bytes=saved_bytes, device_peak_bytes=peak_bytes))
    return tuple(sorted(found, key=lambda lever: -lever.saved_bytes))


def _peak(variant: Variant, card: CardSpec, *, context_bytes: int) -> int | None:
    from desktop_app.memory.trace import UntraceableError

    try:
        return device_peak_p50(variant.target, card, batch_size=variant.batch_size, context_bytes=context_bytes)
    except UntraceableError:
        return None
