"""A Python of its own in which the shim is loaded before torch, and that runs functions of ours and answers in JSON."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
LIMIT_S = 120


class ShimProcess:
    """Runs ``function(stage, **arguments)`` of a module, one call after the other."""

    def __init__(self, cache: Path) -> None:
        code = f"from {__name__} import serve; serve({str(cache)!r})"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.reason = str(self._read())

    def run(self, module: str, function: str, arguments: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([module, function, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=LIMIT_S)
        self._process.stdout.close()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the process ended with {self._process.wait(timeout=LIMIT_S)}"
        return json.loads(line)


def serve(cache: str) -> None:
    """The other end."""
    from desktop_app.memory.tracing.shim import load_shim

    answers = sys.stdout
    sys.stdout = sys.stderr
    state = load_shim(cache=Path(cache))
    print(json.dumps(state.reason), file=answers, flush=True)
    for line in sys.stdin:
        module, function, arguments = json.loads(line)
        try:
            answer = {"result": call(module, function, arguments, rung="shim")}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def call(module: str, function: str, arguments: dict[str, Any], *, rung: str) -> Any:
    """The function on a stage of this process."""
    return getattr(importlib.import_module(module), function)(rung, **arguments)
