"""What a run will need on a card: its recipe handed to the tracer, and the changes that would help. Imported late."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import torch

from desktop_app.core.forecasts import Estimate
from desktop_app.memory.advice import Variant, levers
from desktop_app.memory.estimate import estimate
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.trace import TraceSubject
from desktop_app.training.config import RunConfig, field_spec
from desktop_app.training.recipes.recipe import RECIPES, Batch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from desktop_app.training.recipes.data import DataInfo

# bf16 is computed in hardware from Ampere on (CUDA C++ Programming Guide, compute capability 8.0).
_BF16_CAPABILITY: Final = (8, 0)
WARN_LIMITED_BY_DATA: Final = "batch_limited_by_data"  # a larger batch would fit, but there are no more images


class RunTarget:
    """One run as the tracer sees it: the recipe's own model, optimizer, batch and loss."""

    def __init__(self, config: RunConfig, info: DataInfo) -> None:
        self._config = config
        self._info = info
        self._recipe = RECIPES[config.recipe]

    def build(self) -> TraceSubject:
        """A fresh model and optimizer on the current default device."""
        model = self._recipe.model(self._config, self._info)
        return TraceSubject(
            model=model,
            optimizer=self._recipe.optimizer(self._config, model),
            batch=self._batch,
            micro_step=self._forward,
            accumulation=self._config.accumulation,
            precision=self._config.precision,
            grad_clip=self._config.grad_clip or None,
        )

    def _batch(self, batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
        batch = self._recipe.example_batch(self._info, batch_size=batch_size, device=device)
        return batch.inputs, batch.targets

    def _forward(self, model: nn.Module, tensors: Any) -> Tensor:
        return self._recipe.loss(model, Batch(*tensors))[0]


def trace_target(config: RunConfig, info: DataInfo) -> RunTarget:
    """The run that ``config`` and its data describe, for ``memory.trace``."""
    return RunTarget(config, info)


def estimate_run(
    config: RunConfig,
    card: CardSpec,
    *,
    others_bytes: int = 0,
    info: DataInfo | None = None,
    with_levers: bool = True,
) -> Estimate:
    """The peak of a run on a card. ``info``: what the data are, where that is known already.

    Raises ``FloodmarkError`` for data that cannot be read.
    """
    known = info or RECIPES[config.recipe].describe(config)
    base = estimate(trace_target(config, known), card, batch_size=config.batch_size, others_bytes=others_bytes)
    base = _within_data(base, known.train_samples // config.accumulation)
    if not with_levers:
        return base
    variants = {
        code: Variant(changes, trace_target(changed, known), changed.batch_size)
        for code, changes in _changes(config, card)
        for changed in (dataclasses.replace(config, **changes),)
    }
    return dataclasses.replace(base, levers=levers(base, card, variants))


def _within_data(answer: Estimate, most_samples: int) -> Estimate:
    """No batch is larger than the data: advice that cannot be followed is none."""
    largest = answer.largest_batch
    if largest is None or largest <= most_samples:
        return answer
    warnings = (*answer.warnings, WARN_LIMITED_BY_DATA)
    return dataclasses.replace(answer, largest_batch=max(1, most_samples), warnings=warnings)


def _changes(config: RunConfig, card: CardSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """What could be changed without learning something else."""
    most = field_spec("accumulation").maximum
    assert most is not None
    if config.batch_size % 2 == 0 and 2 * config.accumulation <= most:
        yield (
            "batch_accumulate",
            {"batch_size": config.batch_size // 2, "accumulation": 2 * config.accumulation},
        )
    capability = card.compute_capability
    if config.precision == "fp32" and (capability is None or capability >= _BF16_CAPABILITY):
        yield "bf16", {"precision": "bf16"}
    if config.foreach:
        yield "no_foreach", {"foreach": False}
    if config.optimizer != "sgd":
        yield "sgd", {"optimizer": "sgd"}
