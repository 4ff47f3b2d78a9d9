"""What torch was built for, without importing it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from desktop_app.services.torch_build import TorchBuild, parse_build

# As torch 2.13.0 for CUDA and torch 1.13.1 for the CPU write it.
WITH_CUDA = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.13.0+cu130'
debug = False
cuda: Optional[str] = '13.0'
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
"""
OLD_WITHOUT = """__version__ = '1.13.1+cpu'
debug = False
cuda = None
git_version = '49444c3e546bf240bed24a101e747422d1f8a0ee'
hip = None
"""


@pytest.mark.parametrize(
    ("text", "build"),
    [
        (WITH_CUDA, TorchBuild("2.13.0+cu130", "13.0")),
        (OLD_WITHOUT, TorchBuild("1.13.1+cpu", None)),
        ("__version__ = '9.9'\n", None),
        ("cuda = None\n", None),
        ("cuda = None\n__version__ = f()\n", None),
        ("def broken(", None),
        ("\0", None),
    ],
)
def test_the_version_file_says_it(text: str, build: TorchBuild | None) -> None:
    assert parse_build(text) == build


def test_the_installed_torch_is_known_without_importing_it() -> None:
    code = (
        "import sys; from desktop_app.services.torch_build import installed_torch as known; build = known();"
        "assert 'torch' not in sys.modules; import torch; print(build.version == torch.__version__,"
        "build.cuda == torch.version.cuda)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True True\n", done.stderr
