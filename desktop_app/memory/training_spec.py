"""What is trained, in plain values: the job of a trace, readable by any Python with torch.

Standard library only: it is sent as JSON to the interpreter that traces.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRECISIONS = ("fp32", "bf16", "fp16", "pure_bf16", "pure_fp16")  # bf16, fp16: autocast; pure: weights and all
CHECKPOINTING = ("none", "full", "every_2", "every_3", "every_4")  # of the model's repeated blocks
ATTENTION = ("auto", "flash", "efficient", "cudnn", "math")
DEFAULT_OPTIMIZER = "adamw"  # where neither the training nor its model names one
SHARDING = ("none", "zero1", "zero2", "zero3")  # zero3 is FSDP's full sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """One training. Every field that is ``None`` is chosen as the field's users would: see its comment.

    ``model`` is one of

    * ``entry:MODULE:FUNCTION`` – a function of ours, called with ``arguments``, that returns a ``TraceSubject``;
    * ``timm:NAME`` and ``transformers:NAME-or-folder-with-config.json``, with random weights, nothing downloaded;
    * ``python:FILE:FUNCTION`` – the user's function, that returns model, optimizer and step (docs/guide/estimate.md).
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 1
    accumulation: int = 1
    precision: str = "fp32"
    optimizer: str | None = None  # a class of torch.optim by any case, adam8bit, adamw8bit; None: its own, or adamw
    optimizer_arguments: Mapping[str, Any] = field(default_factory=dict)
    foreach: bool | None = None  # None: as CUDA chooses
    fused: bool | None = None
    set_to_none: bool = True  # zero_grad
    grad_clip: float | None = None
    image_size: int | None = None  # None: the model's own
    sequence_length: int | None = None
    classes: int | None = None
    channels_last: bool = False
    checkpointing: str = "none"
    attention: str = "auto"
    frozen: tuple[str, ...] = ()  # prefixes of parameter names; "backbone": all but the head
    lora_rank: int | None = None  # adapters on every linear layer but the head, the rest frozen
    sharding: str = "none"
    world_size: int = 1
    validates: bool = True
    saves: bool = False
    cudnn_benchmark: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (
            ("precision", PRECISIONS),
            ("checkpointing", CHECKPOINTING),
            ("attention", ATTENTION),
            ("sharding", SHARDING),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name in ("batch_size", "accumulation", "world_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def changed(self, **changes: Any) -> TrainingSpec:
        """The same training but for these fields."""
        return dataclasses.replace(self, **changes)

    def as_json(self) -> dict[str, Any]:
        """Only what JSON holds; ``from_json`` reads it back."""
        return {item.name: _plain(getattr(self, item.name)) for item in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainingSpec:
        """Raises ``ValueError`` for an unknown field or a value that is not allowed."""
        names = {item.name for item in dataclasses.fields(cls)}
        unknown = sorted(set(values) - names)
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r}")
        frozen = values.get("frozen", ())
        return cls(**{**values, "frozen": tuple(frozen)})


def shown_model(model: str) -> str:
    """The model in a line for people: what the user wrote, or that it is one of ours."""
    return "the model of this run" if model.startswith("entry:") else model


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
