"""Which module of a model makes a tensor: by hooks in forward, by the running autograd node in backward.

Autograd numbers its nodes as they are made, per thread. What a module's forward makes lies between the number at its
beginning and at its end, so backward needs no hook: the number of the node that runs says whose it is.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import Any, Final

import torch

_MANY: Final = 1 << 60  # AccumulateGrad nodes have the largest number there is


class ModuleOwners:
    """Follows one model. ``current`` is the path in ``named_modules()`` of the module at work, "" for none.

    Hooks are on the model from the start until ``close``. Autograd may run in a thread of its own, one thread at a
    time.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._paths: Final[dict[int, str]] = {}  # of parameters, by id
        self._stack: list[str] = []
        self._marks: dict[int, tuple[list[int], list[str]]] = {}  # by thread: numbers, and who begins there
        self._outer_task = -1
        self._hooks: Final[list[Any]] = []
        for path, module in model.named_modules():
            for parameter in module.parameters(recurse=False):
                self._paths.setdefault(id(parameter), path)
            for buffer in module.buffers(recurse=False):
                self._paths.setdefault(id(buffer), path)
            self._watch(module, path)

    def close(self) -> None:
        """No hook is left on the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._stack.clear()
        self._marks.clear()

    def of(self, tensor: torch.Tensor) -> str:
        """The module that a parameter or buffer belongs to."""
        return self._paths.get(id(tensor), "")

    def begin_forward(self) -> None:
        """A new graph: nothing of the one before matters any more."""
        self._stack.clear()
        self._marks.clear()
        self._outer_task = -1

    def current(self) -> str:
        """Who is at work: a module in its forward (also one that is computed again), else the node that runs."""
        if self._stack:
            return self._stack[-1]
        node: Any = torch._C._current_autograd_node()  # noqa: SLF001 - no public way to ask for the running node
        return "" if node is None else self._owner(node)

    def _owner(self, node: Any) -> str:
        number = node._sequence_nr()  # noqa: SLF001
        if number >= _MANY:
            variable = getattr(node, "variable", None)
            return self.of(variable) if variable is not None else ""
        numbers, owners = self._marks_of_node()
        position = bisect_right(numbers, number)
        return owners[position - 1] if position else ""

    def _marks_of_node(self) -> tuple[list[int], list[str]]:
        """The outermost backward runs nodes of the forward thread; one inside it those of its own thread."""
        task = torch._C._current_graph_task_id()  # noqa: SLF001
        if self._outer_task < 0:
            self._outer_task = task
        own = self._marks.get(threading.get_ident())
        if own is not None and (task != self._outer_task or len(self._marks) == 1):
            return own
        return next(iter(self._marks.values()), ([], []))

    def _watch(self, module: torch.nn.Module, path: str) -> None:
        def begin(*_: Any) -> None:
            self._stack.append(path)
            self._mark(path)

        def end(*_: Any) -> None:
            if self._stack:
                self._stack.pop()
            self._mark(self._stack[-1] if self._stack else "")

        self._hooks.append(module.register_forward_pre_hook(begin, prepend=True))
        self._hooks.append(module.register_forward_hook(end, always_call=True))

    def _mark(self, path: str) -> None:
        numbers, owners = self._marks.setdefault(threading.get_ident(), ([], []))
        number = torch._C._autograd._get_sequence_nr()  # noqa: SLF001
        if numbers and numbers[-1] == number:
            owners[-1] = path
        else:
            numbers.append(number)
            owners.append(path)
