"""The models that the forecast's corpus is made from, and which of them may be looked at while tuning."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("forecast_models.py")


@dataclass(frozen=True, slots=True)
class Traced:
    """One model, the axis on which its micro-batch varies, and the two sizes it is traced at.

    Sizes are samples, the length of one sequence, or the edge of one image. ``tuning``: its runs may be looked at.
    """

    model: str
    axis: str
    low: int
    high: int
    batch: int
    tuning: bool
    precision: str = "bf16"
    optimizer: str = "adamw"
    more: dict[str, Any] = field(default_factory=dict)


def _ours(name: str) -> str:
    return f"python:{_FILE}:{name}"


# In pairs of one family: one for tuning, one for the untouched half.
MODELS: Final = (
    Traced("timm:resnet50", "samples", 16, 64, 0, tuning=True, precision="fp32"),
    Traced("timm:resnet18", "samples", 32, 128, 0, tuning=False, precision="fp32"),
    Traced("timm:vit_small_patch16_224", "samples", 32, 128, 0, tuning=True),
    Traced("timm:convnext_tiny", "samples", 16, 64, 0, tuning=False),
    Traced("transformers:gpt2", "tokens", 128, 1024, 8, tuning=True),
    Traced("transformers:gpt-neo-125m", "tokens", 128, 1024, 8, tuning=False),
    Traced("transformers:distilbert-base-uncased", "tokens", 64, 512, 32, tuning=True),
    Traced("transformers:bert-base-uncased", "tokens", 64, 512, 16, tuning=False),
    Traced("transformers:t5-small", "tokens", 64, 512, 16, tuning=False),
    Traced("transformers:roberta-base", "tokens", 64, 512, 16, tuning=True, precision="fp32"),
    Traced(_ours("lstm"), "tokens", 35, 280, 64, tuning=True, precision="fp32"),
    Traced(_ours("character_lstm"), "tokens", 64, 512, 128, tuning=False, precision="fp32"),
    Traced(_ours("unet"), "pixels", 128, 512, 4, tuning=True),
    Traced("timm:efficientnet_b0", "pixels", 128, 512, 16, tuning=False),
    Traced("timm:mobilenetv3_large_100", "pixels", 128, 512, 32, tuning=True),
    Traced(_ours("small_cnn"), "pixels", 32, 256, 64, tuning=False, precision="fp32"),
)


def short_name(model: str) -> str:
    """``timm:resnet50`` is ``resnet50``; a function of a file its own name."""
    return model.rpartition(":")[2]


def of_half(*, tuning: bool) -> tuple[str, ...]:
    """Names of the shapes of one half."""
    return tuple(f"{short_name(one.model)}/{one.axis}" for one in MODELS if one.tuning is tuning)


def traced(python: Path | None) -> Iterator[tuple[Any, ...]]:
    """What ``forecast_shapes.make_shape`` takes, for every model that ``python`` can trace."""
    from estimate_sets import RTX_3090
    from estimate_traces import Traces

    with Traces(python, tracers=1) as traces:
        for one in MODELS:
            specs = [_spec(one, size) for size in (one.low, one.high)]
            found = [traces.get(spec, RTX_3090) for spec in specs]
            if found[0] is None or found[1] is None:
                print(f"{one.model}: {traces.errors.get(one.model, 'not traced')}", file=sys.stderr)
                continue
            low, high = (_units(one, size) for size in (one.low, one.high))
            yield short_name(one.model), one.axis, low, high, one.batch, (found[0], found[1])


def _spec(one: Traced, size: int) -> Any:
    from desktop_app.memory.training_spec import TrainingSpec

    sizes = {"samples": "batch_size", "tokens": "sequence_length", "pixels": "image_size"}
    values = {"batch_size": one.batch, sizes[one.axis]: size}
    return TrainingSpec(model=one.model, precision=one.precision, optimizer=one.optimizer, **{**values, **one.more})


def _units(one: Traced, size: int) -> int:
    if one.axis == "samples":
        return size
    return one.batch * size * (size if one.axis == "pixels" else 1)
