"""What an optimizer that nobody named will allocate in its first step, guessed from what is live before it.

After the first backward pass parameters and gradients are live, hardly more: each is about a half. What the optimizer
makes is a multiple of the trained parameters that depends on its kind. Shares are a guess at how common each is among
the reports of ``cases.csv`` and public training scripts; nearly all use Adam or AdamW with their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class OptimizerGuess:
    """One possibility. ``demand_bytes`` at the peak of the call, of which ``kept_bytes`` stay."""

    share: float
    demand_bytes: int
    kept_bytes: int


# (parameter-sized tensors at the peak of the call, those kept, share). A foreach step adds about one parameter-sized
# temporary (facts/allocator.md).
_KINDS: Final = (
    (3.0, 2.0, 0.55),  # Adam and AdamW, foreach: the default on a GPU
    (2.0, 2.0, 0.13),  # the same fused or in a loop
    (4.0, 3.0, 0.12),  # AMSGrad, or a copy of the weights in fp32
    (1.0, 1.0, 0.10),  # SGD with momentum
    (0.0, 0.0, 0.10),  # SGD
)
_ADAM: Final = _KINDS[0]
# (share of the highest possible size of the trained parameters, probability). The rest of what is live are inputs,
# outputs and buffers; some parameters may be frozen.
_OF_HALF_LIVE: Final = ((1.0, 0.6), (0.9, 0.25), (0.75, 0.15))
_OF_GRADIENTS: Final = ((1.0, 0.8), (0.9, 0.2))


def guess_optimizer(live_bytes: int, *, before_forward_bytes: int | None) -> Iterator[OptimizerGuess]:
    """Possibilities whose shares add up to 1. ``live_bytes``: just before the call.

    ``before_forward_bytes``: live before the first forward pass, where that was seen: what has come since is gradients,
    so frozen parameters do not count.
    """
    parameters, sizes = _trained_at_most(live_bytes, before_forward_bytes)
    for size, size_share in sizes:
        for at_peak, kept, share in _KINDS:
            yield OptimizerGuess(size_share * share, int(at_peak * size * parameters), int(kept * size * parameters))


def usual_demand(live_bytes: int, *, before_forward_bytes: int | None) -> int:
    """What Adam with its defaults would ask for."""
    return int(_ADAM[0] * _trained_at_most(live_bytes, before_forward_bytes)[0])


def _trained_at_most(
    live_bytes: int, before_forward_bytes: int | None
) -> tuple[float, tuple[tuple[float, float], ...]]:
    half = live_bytes / 2.0
    if before_forward_bytes is None or before_forward_bytes <= 0 or before_forward_bytes >= live_bytes:
        return half, _OF_HALF_LIVE
    return min(float(live_bytes - before_forward_bytes), float(before_forward_bytes)), _OF_GRADIENTS
