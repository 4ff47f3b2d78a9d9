"""Models built without values: in a moment and without memory, also where a constructor computes with data.

``torch.device("meta")`` alone fails 13 of 103 timm models, whose constructors read back what they compute
(``linspace(...).tolist()``). Here only what has no values anyway is meta: ``torch.empty``, out of which layers make
their weights, and large constants. Everything else is computed for real, on the CPU, and adopted afterwards.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.stage import Stage

_Built = TypeVar("_Built")

# Larger constants than this are weights or tables; constructors read back schedules and sizes. 4 MiB of floats.
_LARGE: Final = 1 << 20
_WITHOUT_VALUES: Final = frozenset({"empty", "empty_strided", "empty_like", "new_empty", "empty_permuted"})
_FILLED: Final = frozenset({"zeros", "ones", "full", "rand", "randn", "normal", "randint", "eye"})
_FACTORIES: Final = frozenset(_device_constructors())
_META: Final = torch.device("meta")
# In-place functions that only change values: nothing comes of them where there are none.
_CHANGES_VALUES: Final = frozenset(
    "normal_ uniform_ trunc_normal_ zero_ fill_ copy_ ones_ zeros_ constant_ xavier_uniform_ xavier_normal_ "  # noqa: SIM905
    "kaiming_uniform_ kaiming_normal_ orthogonal_ dirac_ eye_ sparse_ erfinv_ mul_ add_ sub_ div_ clamp_ bernoulli_ "
    "exponential_ random_ log_normal_ fill_diagonal_ masked_fill_ exp_ neg_ sqrt_ pow_ lerp_ clamp_min_ "
    "clamp_max_".split()
)
_MOVES: Final = frozenset({"to", "cuda"})


class ConstructionMode(TorchFunctionMode):
    """Gives weights no values, and takes what is meant for a GPU to where the model is built.

    ``real``: everything is on the CPU; large tensors are reserved and never touched, so they cost no memory.
    """

    def __init__(self, *, real: bool = False) -> None:
        super().__init__()
        self._real: Final = real

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = kwargs or {}
        if name in _CHANGES_VALUES:
            changed = args[0] if args else kwargs.get("tensor")  # torch.nn.init names its argument
            if _has_no_values(changed, real=self._real):
                return changed
        if name in _MOVES and args and isinstance(args[0], torch.Tensor):
            return _stay(func, name, args, kwargs)
        if (name in _WITHOUT_VALUES or func in _FACTORIES) and not _is_given(kwargs):
            kwargs = {**kwargs, "device": self._device(name, args, kwargs)}
        try:
            return func(*args, **kwargs)
        except (RuntimeError, NotImplementedError):
            if not _is_mixed((args, kwargs)):
                raise
            return func(*_as_meta(args), **_as_meta(kwargs))

    def _device(self, name: str, args: Any, kwargs: Any) -> str | None:
        """Where a tensor is made that is made nowhere in particular, or on a GPU."""
        if self._real:
            return "cpu"
        if name in _WITHOUT_VALUES:
            return "meta"
        large = name in _FILLED and kwargs.get("generator") is None and _size(args, kwargs) > _LARGE
        return "meta" if large else "cpu"


class MetaForCuda(TorchFunctionMode):
    """Takes what a step moves to a GPU to meta: for code that was not written for that rung."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "cuda" and args:
            return args[0].to("meta")
        args = tuple(_META if _is_accelerator(arg) else arg for arg in args)
        kwargs = {name: _META if _is_accelerator(value) else value for name, value in (kwargs or {}).items()}
        return func(*args, **kwargs)


def construct(build: Callable[[], _Built], *, stage: Stage) -> _Built:
    """What ``build`` returns, with weights that have no values: meta where possible, else untouched CPU memory.

    Meanwhile ``torch.cuda`` answers for the stage's card. The random numbers of the process are as before. Raises
    what ``build`` raises on its second try.
    """
    with torch.random.fork_rng(devices=[]), stage.building():
        try:
            with ConstructionMode():
                return build()
        except (RuntimeError, NotImplementedError):  # reads back values of weights
            with ConstructionMode(real=True):
                return build()


def import_library(name: str) -> Any:
    """A library that is not ours to require. Raises ``TracerError`` (``not_installed``), also where it is broken."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            message = f"{name} is not installed in {sys.executable}: pip install {name}"
            raise TracerError("not_installed", message, params={"package": name, "python": sys.executable}) from None
        raise _broken(name, error) from error
    except Exception as error:  # whatever a library does when it is imported
        raise _broken(name, error) from error


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """What an optimizer gets."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _broken(name: str, error: Exception) -> TracerError:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    message = f"{name} of {sys.executable} cannot be imported: {type(error).__name__}: {line}"
    return TracerError("not_installed", message, params={"package": name, "python": sys.executable})


def _has_no_values(value: Any, *, real: bool) -> bool:
    if not isinstance(value, torch.Tensor):
        return False
    return value.numel() > _LARGE if real else value.device.type == "meta"


def _stay(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """``tensor.to("cuda", dtype)`` keeps the dtype and stays where it is."""
    if name == "cuda":
        return args[0]
    kept = [arg for arg in args if not _is_accelerator(arg)]
    named = {key: value for key, value in kwargs.items() if not (key == "device" and _is_accelerator(value))}
    if len(kept) < len(args) or len(named) < len(kwargs):
        kept = [kept[0], *(arg for arg in kept[1:] if isinstance(arg, torch.dtype))]
        named.pop("non_blocking", None)
        if len(kept) == 1 and not named:
            return args[0]
    elif args[0].device.type == "meta" and any(_is_cpu(value) for value in (*args[1:], kwargs.get("device"))):
        return args[0]
    return func(*kept, **named)


def _is_given(kwargs: Any) -> bool:
    """Whether a factory is told to work on the CPU, or to write into a tensor that is there."""
    device = kwargs.get("device")
    return kwargs.get("out") is not None or (device is not None and not _is_accelerator(device))


def _is_accelerator(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type not in ("cpu", "meta")
    return isinstance(value, str) and value.split(":")[0] in ("cuda", "xpu", "mps", "hip")


def _is_cpu(value: Any) -> bool:
    return value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu")


def _size(args: Any, kwargs: Any) -> int:
    """How many elements a factory function is asked for; arguments that are no sizes are passed over."""
    sizes = kwargs.get("size") or kwargs.get("shape")
    if sizes is None:
        args = args[1:] if args and isinstance(args[0], torch.Tensor) else args
        lists = [arg for arg in args if isinstance(arg, (tuple, list, torch.Size))]
        sizes = lists[0] if lists else args
    count = 1
    for size in sizes if isinstance(sizes, (tuple, list, torch.Size)) else (sizes,):
        if not isinstance(size, int) or isinstance(size, bool):
            return 0
        count *= size
    return count


def _is_mixed(arguments: Any) -> bool:
    kinds = {tensor.device.type for tensor in _tensors(arguments)}
    return "meta" in kinds and len(kinds) > 1


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in _tensors(item)]


def _as_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    if isinstance(value, dict):
        return {key: _as_meta(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)([_as_meta(item) for item in value])
    return value
