"""The border between the loop and what is learnt: a recipe names data, model, optimizer and loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from desktop_app.training.recipes.data import Batch, DataInfo, DataWarning, PreparedData, SkippedFile
from desktop_app.training.recipes.image_folder import ImageFolder

if TYPE_CHECKING:
    from torch import Tensor, device, nn
    from torch.optim import Optimizer

    from desktop_app.training.config import RunConfig

__all__ = ["RECIPES", "Batch", "DataInfo", "DataWarning", "PreparedData", "Recipe", "SkippedFile"]


class Recipe(Protocol):
    """One kind of training. Objects hold no state of a run and may be shared."""

    @property
    def name(self) -> str: ...

    def describe(self, config: RunConfig) -> DataInfo:
        """Facts for the estimate and the form, fast: counts, no decoding of all files. ``FloodmarkError`` as below."""

    def prepare(self, config: RunConfig, *, cancelled: Callable[[], bool] | None = None) -> PreparedData:
        """Scan, split and decode. ``FloodmarkError`` with one line when the data cannot be learnt from;
        ``RunCancelled`` as soon as ``cancelled()`` says so."""

    def model(self, config: RunConfig, info: DataInfo) -> nn.Module:
        """The untrained model on the current default device, meta too."""

    def optimizer(self, config: RunConfig, model: nn.Module) -> Optimizer:
        """The optimizer with its switches (foreach) set explicitly, never left to torch's guess."""

    def example_batch(self, info: DataInfo, *, batch_size: int, device: str | device) -> Batch:
        """A batch of the shapes and dtypes of the real ones, on ``device`` (meta too)."""

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean loss (scalar) and logits (n, classes) of one micro-step."""


RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType({"image-folder": ImageFolder()})
