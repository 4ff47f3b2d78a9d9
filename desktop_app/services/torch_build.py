"""What torch was built for, read from its files: importing it takes seconds."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """``cuda`` is the version of CUDA that torch was built with; ``None`` for a build without it."""

    version: str
    cuda: str | None


@cache
def installed_torch() -> TorchBuild | None:
    """The torch that an import would give; ``None`` when there is none or its files do not say. Read once."""
    spec = importlib.util.find_spec("torch")  # of a top-level package: imports nothing
    if spec is None or spec.origin is None:
        return None
    try:
        return parse_build((Path(spec.origin).parent / "version.py").read_text(encoding="utf-8"))
    except OSError:
        return None


def parse_build(text: str) -> TorchBuild | None:
    """From the text of ``torch/version.py``, which every build of torch since 1.0 writes as plain assignments."""
    values: dict[str, object] = {}
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if isinstance(target, ast.Name):
                    values[target.id] = node.value.value
    except (SyntaxError, ValueError):
        return None
    version, cuda = values.get("__version__"), values.get("cuda", False)
    if not isinstance(version, str) or cuda is False:
        return None
    return TorchBuild(version, cuda if isinstance(cuda, str) else None)
