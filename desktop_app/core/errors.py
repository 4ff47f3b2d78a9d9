"""Errors that a user sees, and the exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``floodmark`` (docs/guide/command-line.md)."""

    DONE = 0
    RUN_FAILED = 1
    USAGE = 2
    OUT_OF_MEMORY = 3
    NO_DEVICE = 4


class FloodmarkError(Exception):
    """One clear line for the user: what is wrong, where, and what to do.

    ``code`` is a stable identifier such as ``data.empty_class``; windows translate by it and fill in
    ``params``; the command line prints ``str(error)``.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        exit_code: ExitCode = ExitCode.RUN_FAILED,
        params: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.exit_code = exit_code
        self.params = params or {}


class ConfigError(FloodmarkError):
    """A configuration that cannot be run: exit code 2."""

    def __init__(self, code: str, message: str, *, params: dict[str, object] | None = None) -> None:
        super().__init__(code, message, exit_code=ExitCode.USAGE, params=params)


class NoSuchDeviceError(FloodmarkError):
    """A card that is not there or not in the catalogue: exit code 4."""

    def __init__(self, code: str, message: str, *, params: dict[str, object] | None = None) -> None:
        super().__init__(code, message, exit_code=ExitCode.NO_DEVICE, params=params)
