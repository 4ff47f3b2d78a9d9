"""A stage for every rung that this machine has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.memory.tracing import shim_process
from tests.unit.memory.tracing.shim_process import ShimProcess

OnRung = Callable[..., Any]


@pytest.fixture(scope="session")
def shim_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests keep the shim: with pytest's own cache, so that it is built once and not in the user's."""
    cache = getattr(request.config, "cache", None)
    return Path(cache.mkdir("cuda_shim")) if cache is not None else tmp_path_factory.mktemp("cuda_shim")


@pytest.fixture(scope="session")
def shim(shim_cache: Path) -> Iterator[ShimProcess]:
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        pytest.skip("no C++ compiler")
    process = ShimProcess(shim_cache)
    try:
        assert process.reason == ""
        yield process
    finally:
        process.close()


@pytest.fixture(params=["shim", "meta"])
def on_rung(request: pytest.FixtureRequest) -> OnRung:
    """Runs ``function(rung, **arguments)``, its arguments and its result as JSON would have them."""
    if request.param == "shim":
        process: ShimProcess = request.getfixturevalue("shim")
        return lambda function, **arguments: process.run(function.__module__, function.__name__, arguments)

    def run(function: Callable[..., Any], **arguments: Any) -> Any:
        result = shim_process.call(function.__module__, function.__name__, arguments, rung="meta")
        return json.loads(json.dumps(result))

    return run
