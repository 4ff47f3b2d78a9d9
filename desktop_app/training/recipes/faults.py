"""Real mistakes for demonstrations. They are made in the loop as a user would make them in theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch import Tensor, nn

    from desktop_app.training.checkpoints import Checkpoint
    from desktop_app.training.devices import TrainingDevice
    from desktop_app.training.recipes.data import PreparedData
    from desktop_app.training.step import StepEngine


class Fault:
    """A mistake in the training; this one makes none. Objects belong to one run.

    Runs in: trainer thread. What a hook raises, a full card among it, is the run's own failure.
    """

    retain_graph: bool = False
    """Passed on to ``backward``."""
    validates_with_graph: bool = False
    """Validation forgets ``torch.no_grad``."""

    def alter_data(self, data: PreparedData) -> PreparedData:
        """The data as the mistake has them, before the run."""
        return data

    def alter_model(self, model: nn.Module) -> nn.Module:
        """The model as it is trained, before it is on the device."""
        return model

    def on_loss(self, loss: Tensor) -> None:
        """Called with the loss of each micro-step after its backward pass."""

    def on_prediction(self, logits: Tensor) -> None:
        """Called with the output for each batch of validation."""

    def on_step(self, engine: StepEngine, device: TrainingDevice) -> None:
        """Called after each update, when the gradients are cleared; outside ``step_scope``."""

    def on_saved(self, engine: StepEngine, device: TrainingDevice) -> None:
        """Called after each checkpoint, outside ``step_scope``."""

    def on_resumed(self, checkpoint: Checkpoint, device: TrainingDevice) -> None:
        """Called when model and optimizer have their state back, outside ``step_scope``."""

    def clear(self) -> None:
        """Forget everything; called when the run has ended."""


class KeepsLossGraph(Fault):
    """Keeps every loss for a later average without ``detach``, and the graph with it: the activations of every
    step stay in memory. (``retain_graph``: without it, backward itself would free most of them.)"""

    retain_graph = True

    def __init__(self) -> None:
        self._losses: list[Tensor] = []

    def on_loss(self, loss: Tensor) -> None:
        self._losses.append(loss)

    def clear(self) -> None:
        self._losses.clear()


def _late(name: str) -> Callable[[], Fault]:
    """A class of ``faults_torch``, which needs torch, looked up when a run wants it."""

    def make() -> Fault:
        import desktop_app.training.recipes.faults_torch as faults_torch

        kind: type[Fault] = getattr(faults_torch, name)
        return kind()

    return make


FAULTS: Final[Mapping[str, Callable[[], Fault]]] = MappingProxyType(
    {
        "keeps-loss-graph": KeepsLossGraph,
        "largest-batches-last": _late("LargestBatchesLast"),
        "scatters-small-blocks": _late("ScattersSmallBlocks"),
        "empties-cache": _late("EmptiesCache"),
        "keeps-predictions": _late("KeepsPredictions"),
        "keeps-saved-copies": _late("KeepsSavedCopies"),
        "keeps-checkpoint": _late("KeepsCheckpoint"),
        "compiles-each-step": _late("CompilesEachStep"),
        "caches-samples": _late("CachesSamples"),
        "late-teacher": _late("LateTeacher"),
    }
)
