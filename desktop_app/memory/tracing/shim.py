"""The C++ shim that lets fake CUDA tensors train on a machine without a GPU: built on first use, cached, never needed.

Loaded by ``ctypes`` before ``import torch``; nothing here imports torch. Standard library only.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_SOURCE: Final = Path(__file__).with_name("cuda_shim.cpp")
_COMPILERS: Final = ("c++", "g++", "clang++")
_STANDARDS: Final = ("-std=c++17", "-std=c++20")  # torch 2.6 needs the first; a release that needs more gets the second
_BUILD_LIMIT_S: Final = 120.0  # 3 to 5 s on one core of 2020
_CUDA_SUCCESS: Final = 0
# A symbol of libc10 with a std::string in it, as wheels before 2.7 may still spell it.
_OLD_ABI_SYMBOL: Final = b"_ZN3c105ErrorC1ENS_14SourceLocationESs"


@dataclass(frozen=True, slots=True)
class TorchInstall:
    """A torch that is installed but not imported."""

    root: Path  # the folder of the package
    version: str  # as in torch.__version__
    cuda: str | None  # the CUDA it was built with
    hip: str | None


@dataclass(frozen=True, slots=True)
class ShimState:
    """Whether the shim is at work in this process, and where it is not, why."""

    loaded: bool
    reason: str = ""
    tried: bool = True


class ShimError(Exception):
    """The shim cannot be built or loaded; the message says why. Tracing then falls back to meta tensors."""


_state = ShimState(loaded=False, reason="not asked for", tried=False)
_library: Any = None


def shim_state() -> ShimState:
    """What the last ``load_shim`` of this process came to."""
    return _state


def find_torch() -> TorchInstall | None:
    """The torch that ``import torch`` would give, without importing it; ``None`` where there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    try:
        text = (root / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    version = _assigned(text, "__version__")
    return TorchInstall(root, version, _assigned(text, "cuda"), _assigned(text, "hip")) if version else None


def _assigned(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}(?::[^=\n]*)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None


def cuda_card_visible() -> bool:
    """Whether the driver shows this process a card. Creates no context."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        started: bool = driver.cuInit(0) == _CUDA_SUCCESS
        return started and driver.cuDeviceGetCount(ctypes.byref(count)) == _CUDA_SUCCESS and count.value > 0
    except (OSError, AttributeError):
        return False


def load_shim(*, cache: Path | None = None, compiler: str | None = None) -> ShimState:
    """Build the shim if need be, and put it to work. To be called before ``import torch``; never raises.

    ``cache`` replaces the user's cache folder, ``compiler`` the first C++ compiler on the path.
    """
    global _state
    if _state.loaded:
        return _state
    try:
        _load(cache=cache, compiler=compiler)
        _state = ShimState(loaded=True)
    except ShimError as error:
        _state = ShimState(loaded=False, reason=str(error))
    return _state


def claim_guard() -> None:
    """Once torch is imported: a CUDA build brings a device guard of its own, which needs a driver."""
    if _library is not None:
        _library.floodmark_claim_guard()


def _load(*, cache: Path | None, compiler: str | None) -> None:
    global _library
    if not sys.platform.startswith("linux"):
        raise ShimError(f"no shim for {sys.platform}")
    if "torch" in sys.modules:
        raise ShimError("torch was imported before the shim")
    torch = find_torch()
    if torch is None:
        raise ShimError("torch is not installed")
    if torch.hip is not None:
        raise ShimError("no shim for ROCm builds of torch")
    path = build_shim(torch, cache=cache, compiler=compiler)
    try:
        for name in ("libc10.so", "libtorch_cpu.so"):
            ctypes.CDLL(str(torch.root / "lib" / name))
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ShimError(f"the shim does not load: {error}") from None
    if not library.floodmark_claim_hooks():
        raise ShimError("torch has settled on other CUDA hooks")
    library.floodmark_claim_guard()
    _library = library


def default_cache() -> Path:
    """Where built shims are kept, as the XDG base directory specification says."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "floodmark" / "shim"


def build_shim(torch: TorchInstall, *, cache: Path | None = None, compiler: str | None = None) -> Path:
    """The shared library for this torch, from the cache or compiled into it. Raises ``ShimError``.

    Two processes may build at once: each writes a file of its own and the last one to finish renames it in place.
    """
    found = compiler or next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if found is None:
        raise ShimError("no C++ compiler on the path")
    old_abi = _has_old_abi(torch)
    folder = cache or default_cache()
    target = folder / f"cuda_shim-{_key(torch, found, old_abi=old_abi)}.so"
    if target.is_file():
        return target
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=".so.part", dir=folder)
    except OSError as error:
        raise ShimError(f"the cache folder cannot be written: {error}") from None
    os.close(handle)
    part = Path(name)
    try:
        _compile(torch, found, part, old_abi=old_abi)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _key(torch: TorchInstall, compiler: str, *, old_abi: bool) -> str:
    facts = (torch.version, str(old_abi), platform.machine(), _compiler_version(compiler))
    digest = hashlib.sha256(_SOURCE.read_bytes() + "\n".join(facts).encode()).hexdigest()
    return f"{torch.version}-{digest[:16]}"


def _compiler_version(compiler: str) -> str:
    try:
        run = subprocess.run(  # noqa: S603
            [compiler, "--version"], capture_output=True, text=True, timeout=10.0, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ShimError(f"the C++ compiler does not run: {error}") from None
    return run.stdout.partition("\n")[0]


def _has_old_abi(torch: TorchInstall) -> bool:
    try:
        return _OLD_ABI_SYMBOL in (torch.root / "lib" / "libc10.so").read_bytes()
    except OSError as error:
        raise ShimError(f"torch has no libc10.so to link with: {error}") from None


def _compile(torch: TorchInstall, compiler: str, target: Path, *, old_abi: bool) -> None:
    include, library = torch.root / "include", torch.root / "lib"
    if not include.is_dir():
        raise ShimError("torch was installed without its headers")
    options = ["-O1", "-fPIC", "-shared", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(not old_abi)}", f"-I{include}"]
    links = [f"-L{library}", "-lc10", "-ltorch_cpu"]
    message = ""
    for standard in _STANDARDS:
        command = [compiler, standard, *options, "-o", str(target), str(_SOURCE), *links]
        try:
            run = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=_BUILD_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ShimError(f"the C++ compiler does not run: {error}") from None
        if run.returncode == 0:
            return
        lines = [line for line in run.stderr.splitlines() if "error" in line]
        message = lines[0] if lines else f"exit code {run.returncode}"
    raise ShimError(f"the shim does not compile: {message}")
