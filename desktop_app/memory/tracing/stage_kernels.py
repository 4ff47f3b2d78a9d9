"""Ops on fake tensors without the detours: results made from layouts that are known, views made by the meta kernels.

A fake tensor mode takes up to half a millisecond per op; the same shapes come again in every layer and step.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

_CAPACITY: Final = 20_000  # results; some 500 bytes each

_Layout = tuple[torch.Size, tuple[int, ...], torch.dtype, torch.device]


class FakeKernels:
    """Calls ops on the fake tensors of one mode. Runs in: one thread at a time."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode: Final = mode
        self._known: dict[Any, tuple[type[Any], tuple[_Layout, ...]]] = {}
        self._marks: dict[torch.device, dict[str, Any]] = {}  # what a fake tensor's attributes are, by device
        self._guard_data: Final = getattr(torch._C, "_set_throw_on_mutable_data_ptr", None)  # noqa: SLF001

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)`` for an op whose results are new storages."""
        try:
            key = (func, _signature(args), _signature(tuple(kwargs.items())) if kwargs else None)
            known = self._known.get(key)
        except (TypeError, _UnlikeError):  # something without a hash, or a tensor that is not one of ours
            return func(*args, **kwargs) if kwargs else func(*args)
        if known is not None:
            return self._make(*known)
        out = func(*args, **kwargs) if kwargs else func(*args)
        layouts = _layouts(out, (args, kwargs))
        if layouts is not None:
            if len(self._known) >= _CAPACITY:
                self._known.clear()
            self._known[key] = (type(out), layouts)
        return out

    def view(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)`` for an op that gives views of its first argument, or at most a copy of it."""
        first = args[0] if args else None
        if type(first) is not FakeTensor or first.constant is not None or _has_tensor(args[1:]):
            return func(*args, **kwargs) if kwargs else func(*args)
        with in_kernel_invocation_manager(self._mode):
            out = func(*args, **(kwargs or {}))
        device = first.fake_device
        if isinstance(out, torch.Tensor):
            return self._fake(out, device)
        return type(out)([self._fake(item, device) for item in out])

    def _make(self, kind: type[Any], layouts: tuple[_Layout, ...]) -> Any:
        with torch._C._DisableTorchDispatch():  # noqa: SLF001
            made = [
                self._fake(torch.empty_strided(size, stride, dtype=dtype, device="meta"), device)
                for size, stride, dtype, device in layouts
            ]
        return made[0] if issubclass(kind, torch.Tensor) else kind(made)

    def _fake(self, elem: torch.Tensor, device: torch.device) -> FakeTensor:
        """What ``FakeTensor(mode, elem, device)`` gives, but faster: its marks are copied from the first."""
        marks = self._marks.get(device)
        if marks is None:
            first = FakeTensor(self._mode, elem, device)
            self._marks[device] = dict(first.__dict__)
            return first
        out = torch.Tensor._make_subclass(  # noqa: SLF001
            FakeTensor,
            elem,
            False,  # noqa: FBT003 - requires_grad
            dispatch_device=True,
            device_for_backend_keys=device,
        )
        if self._guard_data is not None:
            self._guard_data(out)
        out.__dict__.update(marks)
        return out


class _UnlikeError(Exception):
    """A tensor whose layout does not say all: real, or a fake one that knows its value."""


def _signature(value: Any) -> Any:
    kind = type(value)
    if kind is FakeTensor:
        if value.constant is not None:
            raise _UnlikeError
        return value.dtype, value.shape, value.stride(), value.storage_offset(), value.fake_device
    if kind is tuple or kind is list:
        return tuple([_signature(item) for item in value])
    if isinstance(value, torch.Tensor):
        raise _UnlikeError
    return kind, value


def _has_tensor(values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)


def _layouts(out: Any, arguments: Any) -> tuple[_Layout, ...] | None:
    """``None`` where the result cannot be made again from its layouts."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    layouts: list[_Layout] = []
    storages = set(_storages(arguments))
    known = len(storages)
    for tensor in outputs:
        if type(tensor) is not FakeTensor or tensor.constant is not None or tensor.storage_offset():
            return None
        storages.add(tensor.untyped_storage()._cdata)  # noqa: SLF001
        layouts.append((tensor.shape, tensor.stride(), tensor.dtype, tensor.fake_device))
    return tuple(layouts) if len(storages) == known + len(layouts) else None


def _storages(value: Any) -> list[int]:
    if isinstance(value, torch.Tensor):
        return [value.untyped_storage()._cdata]  # noqa: SLF001
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [key for item in value for key in _storages(item)]
