"""Why a training could not be traced. Standard library only: raised in the interpreter that traces, told by ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.errors import ExitCode, FloodmarkError

# What the user can put right in the command, the file or the environment that it names: exit code 2. The rest is 1.
_USAGE: Final = frozenset(
    {
        "no_interpreter",  # the file is not there or cannot be run
        "not_python",  # it runs, and is no Python
        "interpreter_too_old",
        "missing_torch",
        "old_torch",
        "bad_spec",  # a value of the training that does not go with the model
        "bad_model",  # the model cannot be built, or its file raises
        "syntax_error",  # in the user's file
        "function_missing",  # the user's file has no such function
        "unknown_model",  # not in timm or transformers
        "unknown_optimizer",
        "not_installed",  # timm, transformers
        "recipe_needs_own_python",  # our recipes need our own interpreter
    }
)
_FAILED: Final = frozenset(
    {
        "needs_data",  # the model asks for values that a trace does not have
        "interrupted",
        "cancelled",  # by a newer request
        "killed",  # by a signal that is not ours
        "crashed",  # ended by itself
        "time_limit",
        "memory_limit",
        "no_space",  # nowhere to put the shim
        "failed",  # an error nobody expected
    }
)
CODES: Final = _USAGE | _FAILED


class UntraceableError(Exception):
    """The training needs values, which a trace does not have. ``op`` is where.

    ``facts`` are what is known of the model all the same: fields of ``memory.formula.FormulaFacts``.
    """

    def __init__(self, op: str, detail: str = "", *, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{op} cannot be traced without data{': ' if detail else ''}{detail}")
        self.op = op
        self.detail = detail
        self.facts = dict(facts or {})


class TracerError(FloodmarkError):
    """A trace that did not come about, in one clear line. ``kind`` is one of ``CODES``; ``code`` is ``trace.kind``."""

    def __init__(self, kind: str, message: str, *, params: dict[str, object] | None = None) -> None:
        if kind not in CODES:
            raise ValueError(f"unknown kind of trace error: {kind!r}")
        exit_code = ExitCode.USAGE if kind in _USAGE else ExitCode.RUN_FAILED
        super().__init__(f"trace.{kind}", message, exit_code=exit_code, params=params)
        self.kind = kind
