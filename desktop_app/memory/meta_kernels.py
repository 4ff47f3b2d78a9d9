"""Results of ops on meta tensors, remembered: the same shapes come again in every layer, step and trace.

A meta kernel written in Python takes up to a millisecond; making its result from memory takes a hundredth.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from desktop_app.memory.tensor_sources import tensors_in

_CAPACITY: Final = 20_000  # results; some 500 bytes each

_Layout = tuple[torch.Size, tuple[int, ...], torch.dtype]


class MetaKernels:
    """Calls ops on meta tensors whose results are new storages, and remembers the layouts of those results.

    A result that shares a storage, has an offset or is no tensor is computed every time, and so is an op whose
    arguments have no hash. Safe to share between threads: entries are only added, and dropped all at once.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[type[Any], tuple[_Layout, ...]]] = {}

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """``func(*args, **kwargs)``."""
        try:
            key = (func, _signature(args), _signature(tuple(kwargs.items())) if kwargs else None)
            known = self._known.get(key)
        except TypeError:  # something in the arguments cannot be hashed
            return func(*args, **kwargs) if kwargs else func(*args)
        if known is not None:
            return _make(*known)
        out = func(*args, **kwargs) if kwargs else func(*args)
        layouts = _layouts(out, arguments=(args, kwargs))
        if layouts is not None:
            if len(self._known) >= _CAPACITY:
                self._known.clear()
            self._known[key] = (type(out), layouts)
        return out


def _signature(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride(), value.device.type, value.storage_offset()
    if isinstance(value, (tuple, list)):
        return tuple(_signature(item) for item in value)
    return type(value), value


def _layouts(out: Any, *, arguments: Any) -> tuple[_Layout, ...] | None:
    """``None`` where the result cannot be made again from its layouts."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    layouts = []
    storages = {tensor.untyped_storage()._cdata for tensor in tensors_in(arguments)}  # noqa: SLF001
    known = len(storages)
    for tensor in outputs:
        if type(tensor) is not torch.Tensor or tensor.device.type != "meta" or tensor.storage_offset():
            return None
        storages.add(tensor.untyped_storage()._cdata)  # noqa: SLF001
        layouts.append((tensor.shape, tensor.stride(), tensor.dtype))
    return tuple(layouts) if len(storages) == known + len(layouts) else None


def _make(kind: type[Any], layouts: tuple[_Layout, ...]) -> Any:
    made = [torch.empty_strided(size, stride, dtype=dtype, device="meta") for size, stride, dtype in layouts]
    return made[0] if issubclass(kind, torch.Tensor) else kind(made)


META_KERNELS: Final = MetaKernels()
