"""The shim is built once per torch, never half, and never needed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from desktop_app.memory.tracing import shim as shim_module
from desktop_app.memory.tracing.shim import ShimError, build_shim, default_cache, find_torch, load_shim
from tests.unit.memory.tracing.shim_process import ROOT, ShimProcess

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++")), reason="no C++ compiler"
)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def counting_compiler(folder: Path, *, works: bool = True) -> tuple[str, Path]:
    """A compiler that writes down its calls and makes a file of one line."""
    log = folder / "calls"
    text = f"""
case "$*" in *--version*) echo "test compiler 1"; exit 0;; esac
echo "$*" >> {log}
previous=
for word in "$@"; do [ "$previous" = -o ] && target=$word; previous=$word; done
{"echo built > $target" if works else "echo 'shim.cpp:1:1: error: no such header' >&2; exit 1"}
"""
    return script(folder / "compiler", text), log


def test_torch_is_found_without_being_imported() -> None:
    code = (
        "import sys, json; from desktop_app.memory.tracing.shim import find_torch; found = find_torch();"
        "print(json.dumps([found.version, 'torch' in sys.modules, 'numpy' in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    version, torch_imported, numpy_imported = json.loads(run.stdout)
    assert not torch_imported
    assert not numpy_imported
    import torch

    assert version == torch.__version__


def test_it_is_built_once_and_kept_by_torch_and_compiler(tmp_path: Path) -> None:
    torch = find_torch()
    assert torch is not None
    compiler, log = counting_compiler(tmp_path)
    first = build_shim(torch, cache=tmp_path / "cache", compiler=compiler)
    assert build_shim(torch, cache=tmp_path / "cache", compiler=compiler) == first
    assert len(log.read_text().splitlines()) == 1
    other = shim_module.TorchInstall(torch.root, "99.0", None, None)
    assert build_shim(other, cache=tmp_path / "cache", compiler=compiler) != first
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0  # nobody else may put a library there
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".so", ".so"]


def test_two_may_build_at_once(tmp_path: Path) -> None:
    torch = find_torch()
    assert torch is not None
    compiler, _ = counting_compiler(tmp_path)
    built: list[Path] = []

    def build() -> None:
        built.append(build_shim(torch, cache=tmp_path / "cache", compiler=compiler))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 4
    assert len(set(built)) == 1
    assert [path.read_text() for path in (tmp_path / "cache").iterdir()] == ["built\n"]


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(tmp_path: Path) -> None:
    torch = find_torch()
    assert torch is not None
    compiler, log = counting_compiler(tmp_path, works=False)
    with pytest.raises(ShimError, match=r"does not compile: shim\.cpp:1:1: error: no such header"):
        build_shim(torch, cache=tmp_path / "cache", compiler=compiler)
    assert list((tmp_path / "cache").iterdir()) == []
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["-std=c++17", "-std=c++20"]


def test_every_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = find_torch()
    assert torch is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ShimError, match="no C\\+\\+ compiler"):
        build_shim(torch, cache=tmp_path)
    with pytest.raises(ShimError, match="does not run"):
        build_shim(torch, cache=tmp_path, compiler=str(tmp_path / "nothing"))
    bare = shim_module.TorchInstall(tmp_path, "2.6.0", None, None)
    compiler, _ = counting_compiler(tmp_path)
    with pytest.raises(ShimError, match="libc10"):
        build_shim(bare, cache=tmp_path, compiler=compiler)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libc10.so").write_bytes(b"")
    with pytest.raises(ShimError, match="headers"):
        build_shim(bare, cache=tmp_path, compiler=compiler)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ShimError, match="cache folder"):
        build_shim(torch, cache=file / "cache", compiler=compiler)


def test_a_process_that_has_torch_falls_back_and_says_so() -> None:
    import torch  # noqa: F401

    state = load_shim()
    assert not state.loaded
    assert state.reason


def test_without_a_compiler_the_rung_is_meta(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from desktop_app.memory.tracing.shim import load_shim;"
        f"state = load_shim(cache=Path({str(tmp_path)!r}));"
        "from desktop_app.memory.tracing.stage import open_stage;"
        "from desktop_app.memory.trace import trace; from tests.unit.memory.tracing.staged import *;"
        "stage = open_stage(None); model = stage.adopt(Normed());"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1);"
        "subject = TraceSubject(model, optimizer, images, classify);"
        "result = trace(subject, stage=stage, card=None, batch_size=1);"
        "print(state.loaded, result.rung, *result.warnings, sep='|')"
    )
    environment = {**os.environ, "PATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.strip() == "False|meta|no_shim:no C++ compiler on the path"


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "floodmark" / "shim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "floodmark" / "shim"


def test_the_version_file_of_any_release_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "version.py").write_text("__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\nhip = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    found = find_torch()
    assert found == shim_module.TorchInstall(folder, "2.6.0+cu124", "12.4", None)


def test_the_stand_in_says_what_cuda_would(shim: ShimProcess) -> None:
    answers = shim.run("tests.unit.memory.tracing.staged", "composite_choices", {})
    assert answers == {"norm": "CudnnBatchNormBackward0", "dropout": "NativeDropoutBackward0", "accelerator": "cuda"}
