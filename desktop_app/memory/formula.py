"""The lowest rung: what a training needs by closed forms, where no trace came about. Torch-free.

States follow from the number of parameters, the optimizer and the precision; the activations of a transformer from
its shape. Activations of anything else are not known: then only a floor is, and the verdict is ``CANNOT_SAY`` unless
the floor alone is too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from desktop_app.core.estimates import Quantiles
from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.estimate_unknowns import Setting
from desktop_app.memory.training_spec import DEFAULT_OPTIMIZER, TrainingSpec

RUNG_FORMULA: Final = "formula"
RUNG_NONE: Final = "none"
WARN_UNTRACEABLE: Final = "untraceable"
WARN_STATES_ONLY: Final = "states_only"  # activations are not in it

# Relative standard deviation of a peak by closed forms: reserved lies 3 to 12 % above live for transformers, head,
# loss and recomputation vary with the implementation, and whether attention writes its scores is not known. Judgement.
_WIDTH: Final = 0.25
_RESERVED_SHARE: Final = 1.08  # of live: the middle of +3 to +12 % over transformers (facts of the tracing prototype)
_GRID: Final = 15

# Bytes per parameter of what the optimizer keeps, for parameters of 4 bytes; ×½ where parameters have 2.
_STATE_BYTES: Final = {
    "sgd": 4,  # momentum
    "adam": 8,
    "adamw": 8,
    "adamax": 8,
    "nadam": 8,
    "radam": 8,
    "adadelta": 8,
    "adagrad": 4,
    "rmsprop": 4,
    "rprop": 8,
    "asgd": 4,
    "adafactor": 0,  # two vectors per matrix
    "adam8bit": 2,
    "adamw8bit": 2,
}
_DEFAULT_STATE_BYTES: Final = 8
_EIGHT_BIT: Final = frozenset({"adam8bit", "adamw8bit"})
_PURE: Final = frozenset({"pure_bf16", "pure_fp16"})


@dataclass(frozen=True, slots=True)
class FormulaFacts:
    """What is known of a model that could not be traced. The shape is that of a transformer, ``None`` where unknown.

    ``parameters``: all of them; ``trainable``: those that learn (``None``: all).
    """

    parameters: int
    trainable: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    sequence_length: int | None = None
    vocabulary: int = 0
    optimizer: str = ""  # the training's own, in lower case, where it has one

    @property
    def has_shape(self) -> bool:
        return None not in (self.layers, self.hidden, self.heads, self.sequence_length)


def state_bytes(spec: TrainingSpec, facts: FormulaFacts) -> dict[Category, int]:
    """Parameters, gradients and optimizer state, shared out over the cards where the training is sharded."""
    learns = facts.parameters if facts.trainable is None else facts.trainable
    element = 2 if spec.precision in _PURE else 4
    name = (spec.optimizer or facts.optimizer or DEFAULT_OPTIMIZER).lower().replace("_", "").replace("-", "")
    kept = _STATE_BYTES.get(name, _DEFAULT_STATE_BYTES)
    if name not in _EIGHT_BIT:
        kept = kept * element // 4
    shares = {
        Category.PARAMETERS: (facts.parameters * element, ("zero3",)),
        Category.GRADIENTS: (learns * element, ("zero2", "zero3")),
        Category.OPTIMIZER_STATE: (learns * kept, ("zero1", "zero2", "zero3")),
    }
    return {
        category: size // spec.world_size if spec.sharding in sharded else size
        for category, (size, sharded) in shares.items()
    }


def activation_bytes(spec: TrainingSpec, facts: FormulaFacts) -> int:
    """What a transformer keeps for backward, and its head and loss. Raises ``ValueError`` without its shape.

    Per layer in 16 bit: s·b·h·(34 + 5·a·s/h), without the second term where attention keeps no scores, 2·s·b·h and one
    live layer under full recomputation (Korthikanti et al., 2022, and facts of the tracing prototype). Head and loss:
    4·s·b·h·(1 + V/h). In fp32 twice that, but for the dropout masks.
    """
    layers, hidden, heads, length = facts.layers, facts.hidden, facts.heads, facts.sequence_length
    if layers is None or hidden is None or heads is None or length is None:
        raise ValueError("the shape of the transformer is needed")
    tokens = length * spec.batch_size
    scores = 5 * heads * length / hidden if spec.attention == "math" else 0.0
    wide = 1 if spec.precision in _PURE or spec.precision in ("bf16", "fp16") else 2
    layer = wide * tokens * hidden * (34 + scores)
    every = {"full": 1, "every_2": 2, "every_3": 3, "every_4": 4}.get(spec.checkpointing)
    if every is None:
        kept = layers * layer
    else:
        recomputed = -(-layers // every)
        kept = recomputed * 2 * wide * tokens * hidden + (layers - recomputed + 1) * layer
    head = 4 * tokens * (hidden + facts.vocabulary)
    return int(kept + head)


def estimate_by_formula(
    spec: TrainingSpec,
    setting: Setting,
    facts: FormulaFacts | None,
    *,
    op: str,
    others_bytes: int,
    seconds: float,
) -> Estimate:
    """The answer without a trace; ``op`` is what stopped it. There is no largest batch and there are no levers."""
    card = setting.card
    contexts = setting.contexts()
    context_bytes = contexts[len(contexts) // 2]
    room_bytes = max(0, card.capacity_bytes - others_bytes)
    owners = dict.fromkeys(Category, 0) | (state_bytes(spec, facts) if facts is not None else {})
    known = facts is not None and facts.has_shape
    if facts is not None and known:
        owners[Category.ACTIVATIONS] = activation_bytes(spec, facts)
    live_bytes = sum(owners.values())
    width = _WIDTH if known else 0.0
    live = _around(live_bytes, width)
    reserved = _around(int(live_bytes * _RESERVED_SHARE) if known else live_bytes, width)
    device, fits = _on_device(reserved.p50, width, contexts, room_bytes=room_bytes)
    warnings = [f"{WARN_UNTRACEABLE}:{op}"]
    if facts is not None and not known:
        warnings.append(WARN_STATES_ONLY)
    return Estimate(
        live_peak_bytes=live,
        reserved_peak_bytes=reserved,
        device_peak_bytes=device if facts is not None else Quantiles(0, 0, 0),
        capacity_bytes=card.capacity_bytes,
        others_bytes=others_bytes,
        fits_probability=fits if known else 0.0,
        verdict=_verdict(fits, floor_only=not known),
        batch_size=spec.batch_size,
        largest_batch=None,
        peak_phase=Phase.BACKWARD if known else Phase.BUILD,
        phases={},
        categories=owners,
        context_bytes=context_bytes,
        idle_bytes=reserved.p50 - live.p50,
        optimizer_demand_bytes=owners[Category.OPTIMIZER_STATE],
        rung=RUNG_FORMULA if facts is not None else RUNG_NONE,
        seconds=seconds,
        warnings=tuple(warnings),
        rung_width=width,
    )


def _around(middle_bytes: int, width: float) -> Quantiles:
    normal = NormalDist(1.0, width) if width else None
    p90, p95 = (normal.inv_cdf(share) if normal else 1.0 for share in (0.9, 0.95))
    return Quantiles(middle_bytes, int(middle_bytes * p90), int(middle_bytes * p95))


def _on_device(middle_bytes: int, width: float, contexts: Sequence[int], *, room_bytes: int) -> tuple[Quantiles, float]:
    """The peak with the context, and how likely it is to fit."""
    normal = NormalDist(1.0, width) if width else None
    factors = [normal.inv_cdf((index + 0.5) / _GRID) for index in range(_GRID)] if normal else [1.0]
    values = sorted(context + middle_bytes * max(factor, 0.0) for context in contexts for factor in factors)
    fits = sum(value <= room_bytes for value in values) / len(values)
    middle = middle_bytes + contexts[len(contexts) // 2]
    p90, p95 = (max(middle, int(values[min(len(values) - 1, int(share * len(values)))])) for share in (0.9, 0.95))
    return Quantiles(middle, p90, p95), fits


def _verdict(fits: float, *, floor_only: bool) -> Verdict:
    """A floor can only say no."""
    if floor_only:
        return Verdict.DOES_NOT_FIT if not fits else Verdict.CANNOT_SAY
    if fits >= 0.95:
        return Verdict.FITS
    return Verdict.TIGHT if fits >= 0.5 else Verdict.DOES_NOT_FIT
