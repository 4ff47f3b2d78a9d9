"""Fake CUDA tensors: the world of the rungs "native" and "shim".

PyTorch's own fake tensors say they are on ``cuda:0`` and compute nothing. What they need to be taken for real ones is
in the shim (the card's guard and hooks), in ``stage_answers`` (what ``torch.cuda`` says) and here: kernels that a
build without CUDA lacks, the attention chooser, multi-tensor optimizers, and models that are moved without data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import optimizer as torch_optimizer
from torch.utils import _foreach_utils

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.tensor_sources import tensors_in
from desktop_app.memory.tracing.attention import AttentionCall, AttentionChooser
from desktop_app.memory.tracing.shim import claim_guard
from desktop_app.memory.tracing.stage_answers import card_answers, patch
from desktop_app.memory.tracing.stage_choices import StageChoices
from desktop_app.memory.tracing.stage_guesses import NO_GUESS, Guesses
from desktop_app.memory.tracing.stage_kernels import FakeKernels
from desktop_app.memory.tracing.stage_meta_kernels import has_kernel, register_fast_paths
from desktop_app.memory.tracing.stage_models import Make, empty_as, replace_tensors

aten = torch.ops.aten

# Composite for backends without a kernel of their own, one kernel on CUDA (native_functions.yaml). On a CPU build
# fake CUDA tensors would take them apart and keep the parts.
_CUDA_KERNELS: Final = ("silu_backward", "mish_backward", "_fused_rms_norm")
# Their cuDNN kernels are missing in a CPU build, and what they keep is known to cuDNN alone.
_RECURRENT: Final = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_ATTENTION: Final = "scaled_dot_product_attention"

_libraries: list[torch.library.Library] = []  # a library that is collected takes its kernels with it
_choosers: list[AttentionChooser] = []  # of the stages that are running, innermost last


class CudaFakeMode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """Fake tensors for a card that is not there; what is on the host stays real, as the step counts of optimizers are.

    Answers for what needs values; attention by the chooser.
    """

    avoid_device_init = True  # else it would ask the driver for a context

    def __init__(self, guesses: Guesses) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.guesses = guesses

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.scaled_dot_product_attention.default:  # whole only in inference mode
            with self:
                return _attend(*args, **(kwargs or {}))
        made = self.guesses.answer(func, args, kwargs, self._call)
        if made is not NO_GUESS:
            return made
        if _is_on_host(args, kwargs):
            with torch._C._DisableTorchDispatch():  # noqa: SLF001
                return func(*args, **(kwargs or {}))
        if func is aten._to_copy.default:  # noqa: SLF001
            args = (self._known_by_shape(args[0]), *args[1:])
        return super().dispatch(func, types, args, kwargs or {})

    def _known_by_shape(self, tensor: torch.Tensor) -> torch.Tensor:
        """A real tensor that goes to the card, as a fake one: torch 2.6 would copy its values to a card, where its
        build has CUDA and the machine none."""
        if isinstance(tensor, FakeTensor):
            return tensor
        made: torch.Tensor = self.fake_tensor_converter.from_real_tensor(self, tensor)
        return made

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        with self:
            return func(*args, **kwargs)


class FakeCudaStage(StageChoices):
    """A ``Stage`` of fake CUDA tensors. Runs in: the process that traces, one at a time."""

    def __init__(self, card: CardSpec | None, *, rung: str, attention: str = "auto") -> None:
        super().__init__(card, attention=attention)
        self.rung: str = rung
        self.device: torch.device = torch.device("cuda", 0)
        self._mode: Final = CudaFakeMode(self.made_up)
        self._kernels: Final = FakeKernels(self._mode)

    def make(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._kernels.call(func, args, kwargs)

    def view(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._kernels.view(func, args, kwargs)

    @contextmanager
    def building(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(card_answers(self._card))
            stack.enter_context(torch.device("meta"))
            yield

    def adopt(self, model: nn.Module) -> nn.Module:
        replace_tensors(model, self._fake)
        return model

    @contextmanager
    def running(self, *, precision: str = "fp32") -> Iterator[None]:  # noqa: ARG002 - the meta stage needs it
        claim_guard()
        _register_kernels()
        with ExitStack() as stack:
            stack.enter_context(card_answers(self._card))
            patch(stack, nn.Module, "_apply", _as_method(self._moved))
            patch(stack, fake_tensor, "init_gpu_context", lambda *_: None)
            for module in (torch_optimizer, _foreach_utils):
                types = module._foreach_supported_types  # noqa: SLF001
                if FakeTensor not in types:
                    types.append(FakeTensor)
                    stack.callback(types.remove, FakeTensor)
            patch(stack, FakeTensor, "__deepcopy__", _copy_deeply)
            patch(stack, FakeTensor, "numpy", _as_array)
            patch(stack, nn.RNNBase, "flatten_parameters", lambda *_: None)  # looks at addresses
            stack.enter_context(torch.compiler.set_stance("force_eager"))  # what is compiled is traced as it is written
            _choosers.append(self._chooser)
            stack.callback(_choosers.pop)
            stack.enter_context(self._mode)
            yield

    def _fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same tensor on the card: size, strides and dtype, no values."""
        if isinstance(tensor, FakeTensor) and tensor.device.type == "cuda":
            return tensor
        return FakeTensor(self._mode, empty_as(tensor), self.device)

    def _moved(self, module: nn.Module, fn: Make, recurse: bool = True) -> nn.Module:  # noqa: ARG002, FBT001, FBT002
        """``nn.Module._apply``, which cannot put one fake tensor into another; ties are kept as by the stock one."""
        replace_tensors(module, lambda tensor: fn(tensor if isinstance(tensor, FakeTensor) else self._fake(tensor)))
        return module


def _is_on_host(args: Any, kwargs: Any) -> bool:
    """Whether an op takes and gives nothing but real tensors."""
    device = kwargs.get("device") if kwargs else None
    return (device is None or device.type == "cpu") and all(
        not isinstance(tensor, FakeTensor) and tensor.device.type == "cpu" for tensor in tensors_in((args, kwargs))
    )


def _as_method(function: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def method(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        return function(module, *args, **kwargs)

    return method


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - the op's own signature
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    call = AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    chooser = _choosers[-1] if _choosers else AttentionChooser()
    return chooser.attend(call, scale=scale)


def _step_by_step(op: Any) -> Callable[..., Any]:
    """A recurrent layer as CUDA computes it without cuDNN: one fused cell per step, which keep about as much."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        enabled = torch._C._get_cudnn_enabled()  # noqa: SLF001
        torch._C._set_cudnn_enabled(False)  # noqa: FBT003, SLF001
        try:
            return op.decompose(*args, **kwargs)
        finally:
            torch._C._set_cudnn_enabled(enabled)  # noqa: SLF001

    return kernel


def _copy_deeply(tensor: FakeTensor, memo: dict[int, Any]) -> Any:
    """``Tensor.__deepcopy__``, which wants to see the data."""
    known = memo.get(id(tensor))
    if known is None:
        known = tensor.detach().clone()
        if isinstance(tensor, nn.Parameter):
            known = nn.Parameter(known, requires_grad=tensor.requires_grad)
        else:
            known.requires_grad_(tensor.requires_grad)
        memo[id(tensor)] = known
    return known


def _as_array(tensor: FakeTensor, *, force: bool = False) -> Any:
    """``Tensor.numpy``, with its own words for what is still on the card."""
    if tensor.device.type != "cpu" and not force:
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return tensor.detach().to("cpu", copy=True).numpy()


def _missing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("fake CUDA tensors have no kernels")


def _register_kernels() -> None:
    """Once per process: autograd stops at these ops, and sdpa asks the chooser."""
    register_fast_paths()
    if _libraries:
        return
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name in _CUDA_KERNELS:
        if hasattr(aten, name) and not has_kernel(name, "CUDA"):
            library.impl(name, _missing, "CUDA")  # type: ignore[no-untyped-call]
    library.impl(_ATTENTION, _attend, "AutogradCUDA")  # type: ignore[no-untyped-call]
    for name in _RECURRENT:
        library.impl(f"{name}.input", _step_by_step(getattr(aten, name).input), "AutogradCUDA")  # type: ignore[no-untyped-call]
    _libraries.append(library)
