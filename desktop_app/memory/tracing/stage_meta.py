"""Meta tensors: the rung that every machine can stand on, with CUDA's choices written out.

Mixed precision and attention by ``cuda_autocast``, which follows the regions that ``torch.autocast("cuda")`` opens;
multi-tensor and fused optimizers because meta tensors are counted among the devices that have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.utils import _foreach_utils, checkpoint

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.cuda_autocast import clear_casts, follow_autocast
from desktop_app.memory.meta_kernels import META_KERNELS
from desktop_app.memory.tracing.stage_answers import card_answers, patch
from desktop_app.memory.tracing.stage_choices import StageChoices
from desktop_app.memory.tracing.stage_meta_kernels import register_fast_paths, register_meta_kernels
from desktop_app.memory.tracing.stage_models import empty_as, replace_tensors

_META: Final = torch.device("meta")
_SUPPORTED: Final = ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices")


class MetaStage(StageChoices):
    """A ``Stage`` of meta tensors. Runs in: the thread that opened it."""

    def __init__(self, card: CardSpec | None, *, attention: str = "auto") -> None:
        super().__init__(card, attention=attention)
        self.rung: str = "meta"
        self.device: torch.device = _META

    def make(self, func: Any, args: Any, kwargs: Any) -> Any:
        return META_KERNELS.call(func, args, kwargs)

    def view(self, func: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **kwargs) if kwargs else func(*args)

    @contextmanager
    def building(self) -> Iterator[None]:
        with card_answers(self._card), _META:
            yield

    def adopt(self, model: nn.Module) -> nn.Module:
        replace_tensors(model, lambda tensor: tensor if tensor.device.type == "meta" else empty_as(tensor))
        return model

    @contextmanager
    def running(self, *, precision: str = "fp32") -> Iterator[None]:  # noqa: ARG002 - one signature for all stages
        register_meta_kernels()
        register_fast_paths()
        with ExitStack() as stack:
            stack.enter_context(card_answers(self._card))
            for module in (torch_optimizer, _foreach_utils):
                for name in _SUPPORTED:
                    patch(stack, module, name, _with_meta(getattr(module, name)))
            # Recomputing restores the autocast region of the device that it finds: CUDA's is the one that counts.
            patch(stack, checkpoint, "_infer_device_type", lambda *_: "cuda")
            patch(stack, torch, "clear_autocast_cache", clear_casts)
            stack.enter_context(torch.compiler.set_stance("force_eager"))  # what is compiled is traced as it is written
            stack.enter_context(follow_autocast(self._chooser))
            yield


def _with_meta(supported: Callable[[], list[str]]) -> Callable[[], list[str]]:
    def answer() -> list[str]:
        return [*supported(), "meta"]

    return answer
