"""Whose memory is it: the line of a stack that a user would call the owner, and the operation that asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from desktop_app.memory.snapshot import Frame

NO_STACK: Final = "no stack recorded"
BEFORE_RECORDING: Final = "allocated before the recording"
NO_PYTHON: Final = "no Python code (backward pass or library)"

# Code that a user did not write. Paths are those of the machine that recorded: both kinds of slashes.
_LIBRARIES: Final = ("site-packages/", "dist-packages/", "/lib/python", "<frozen ", "<string>", "<eval_with_key>")
_PYTHON: Final = (".py", ".ipynb")
_CELL: Final = re.compile(r"<ipython-input-\d+|ipykernel_\d+/|^<stdin>$|^Cell ")
# at::native::add_kernel, torch::autograd::generated::MulBackward0::apply, c10::cuda::...::malloc
_BACKWARD: Final = re.compile(r"([A-Za-z0-9_]+)Backward(?:\d+)?(?:::|$)")
_ATEN: Final = re.compile(r"at::(?:_ops|native|cuda|meta)::(\w+)")
# Where every allocation comes through, and what only passes calls on.
_PLUMBING: Final = ("empty", "new_empty", "resize", "zeros", "detail")


def owner_of(stack: Sequence[Frame]) -> str:
    """ "file.py:12 function" of the innermost line of the user's own code, else of the innermost Python line."""
    if not stack:
        return NO_STACK
    python = [frame for frame in stack if _is_python(frame)]
    for frame in python:
        if _is_own(frame):
            return describe(frame)
    if python:
        return describe(python[0])
    operation = backward_of(stack)
    return f"backward of {operation}" if operation else NO_PYTHON


def op_of(stack: Sequence[Frame]) -> str:
    """The operation that asked: of C++ frames where there are any, else the innermost Python function."""
    operation = backward_of(stack)
    if operation is not None:
        return f"{operation}Backward"
    for frame in stack:
        found = _ATEN.search(frame.name)
        if found and not found[1].startswith(_PLUMBING):
            return found[1]
    for frame in stack:
        if _is_python(frame):
            return frame.name
    return ""


def backward_of(stack: Sequence[Frame]) -> str | None:
    """The operation whose backward this is, if C++ frames say so."""
    for frame in stack:
        found = None if _is_python(frame) else _BACKWARD.search(frame.name)
        if found:
            return found[1]
    return None


def describe(frame: Frame) -> str:
    return f"{_name(frame.filename)}:{frame.line} {frame.name}"


def _name(filename: str) -> str:
    return PurePosixPath(filename.replace("\\", "/")).name or filename


def _is_python(frame: Frame) -> bool:
    return frame.filename.endswith(_PYTHON) or frame.filename.startswith("<") or bool(_CELL.search(frame.filename))


def _is_own(frame: Frame) -> bool:
    path = frame.filename.replace("\\", "/")
    if _CELL.search(path):
        return True
    return not any(part in path for part in _LIBRARIES) and not path.startswith("<")
