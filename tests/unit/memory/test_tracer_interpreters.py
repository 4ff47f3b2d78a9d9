"""The Python that traces: found where users point at, refused in one line where it cannot trace."""

from __future__ import annotations

import enum
import os
import re
import subprocess
import sys
import sysconfig
import typing
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_app.core.errors import ExitCode
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.interpreter import environment_for, find_interpreter
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.tracing import bootstrap, wire
from desktop_app.memory.training_spec import TrainingSpec

SPEC = TrainingSpec(model="timm:resnet18")
CARD = CardSpec("test", 8 << 30, 8 << 30)
WINDOWS = os.name == "nt"


def refused(python: Path) -> TracerError:
    with TracerProcess(python) as tracer, pytest.raises(TracerError) as caught:
        tracer.trace(SPEC, CARD)
    error = caught.value
    assert error.exit_code is ExitCode.USAGE
    assert "\n" not in error.message
    return error


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real environment of this Python with nothing in it."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=not WINDOWS)
    return folder


@pytest.fixture
def with_torch(empty_environment: Path) -> Callable[..., Path]:
    """The environment with a package called torch, as far as it matters before it is imported."""
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(empty_environment)}))
    torch = packages / "torch"

    def make(version: str, code: str = "") -> Path:
        torch.mkdir(exist_ok=True)
        (torch / "version.py").write_text(f"__version__ = '{version}'\ncuda: str | None = None\n")
        (torch / "__init__.py").write_text(code)
        return empty_environment

    return make


def test_an_environment_without_torch_is_said(empty_environment: Path) -> None:
    error = refused(empty_environment)
    assert error.kind == "missing_torch"
    assert str(empty_environment) in error.message
    assert "Install torch" in error.message


def test_an_old_torch_is_said(with_torch: Callable[..., Path]) -> None:
    error = refused(with_torch("2.5.1+cu124"))
    assert error.kind == "old_torch"
    assert "2.5.1+cu124" in error.message
    assert "2.6" in error.message


def test_a_torch_that_cannot_be_imported_is_said(with_torch: Callable[..., Path]) -> None:
    error = refused(with_torch("2.9.0", "raise ImportError('libcudart.so.12: cannot open shared object file')"))
    assert error.kind == "missing_torch"
    assert "libcudart.so.12: cannot open shared object file" in error.message


@pytest.mark.skipif(WINDOWS, reason="POSIX programs")
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho '{\"hello\": 1}'\necho 'no such option' >&2\nexit 3\n", "no such option"),
        ("#!/bin/sh\nhead -c 300000 /dev/zero\n", "no Python 3"),
        ("#!/bin/sh\nexit 0\n", "no Python 3"),
    ],
)
def test_a_program_that_is_no_python_is_said(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "python"
    program.write_text(script)
    program.chmod(0o755)
    error = refused(program)
    assert error.kind == "not_python"
    assert str(program) in error.message
    assert words in error.message


@pytest.mark.skipif(WINDOWS, reason="POSIX programs")
def test_a_launcher_that_has_nothing_to_launch_is_heard_from_its_first_line_on(tmp_path: Path) -> None:
    """What pyenv's shim prints for a command that no selected version has; its last line is a list of versions."""
    program = tmp_path / "python"
    lines = ("pyenv: python3.12: command not found", "", "The `python3.12' command exists in these Python versions:")
    program.write_text("\n".join(["#!/bin/sh", "cat >&2 <<'END'", *lines, "  3.12.4", "", "END", "exit 127", ""]))
    program.chmod(0o755)
    error = refused(program)
    assert error.kind == "not_python"
    assert error.message == f"{program} is no Python 3: pyenv: python3.12: command not found … 3.12.4"
    program.write_text(
        "#!/bin/sh\nhead -c 5000 /dev/zero | tr '\\0' a >&2\necho >&2\n"
        "head -c 5000 /dev/zero | tr '\\0' b >&2\nexit 1\n"
    )
    assert refused(program).message == f"{program} is no Python 3: {97 * 'a'} … {100 * 'b'}"


@pytest.mark.skipif(WINDOWS, reason="POSIX programs")
def test_a_file_of_another_machine_is_said(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_bytes(b"\x7fELF of some other kind")
    program.chmod(0o755)
    assert refused(program).kind == "no_interpreter"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").kind == "no_interpreter"
    assert refused(tmp_path).kind == "no_interpreter"
    assert refused(Path("no-such-python-on-the-path")).kind == "no_interpreter"
    plain = tmp_path / "text"
    plain.write_text("words")
    if not WINDOWS:
        assert "cannot be run" in refused(plain).message


def test_links_of_an_environment_are_kept(empty_environment: Path) -> None:
    found = find_interpreter(empty_environment)
    assert found.is_relative_to(empty_environment)
    assert find_interpreter(found) == found
    assert find_interpreter(None) == Path(sys.executable)


def test_a_name_is_looked_up_on_the_path(empty_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = find_interpreter(empty_environment)
    monkeypatch.setenv("PATH", str(own.parent))
    assert find_interpreter(Path("python")) == own


def test_what_is_only_for_our_own_python_does_not_reach_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/ours")
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    assert environment_for(Path(sys.executable))["PYTHONHOME"] == "/ours"
    other = environment_for(Path("/some/other/python"))
    assert "PYTHONHOME" not in other
    assert other["PYTHONPATH"] == "/theirs"


def test_an_interpreter_that_is_too_old_refuses_in_a_frame_of_ours() -> None:
    code = f"import sys; sys.argv = ['x']; sys.path[0] = {str(Path(bootstrap.__file__).parent)!r}; import bootstrap\n"
    code += "bootstrap.MINIMUM = (99, 0)\nsys.path.insert(0, '')\nbootstrap.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    message = wire.unpack(done.stdout)
    assert message is not None
    error = wire.error_from_json(message["error"])
    assert isinstance(error, TracerError)
    assert error.kind == "interpreter_too_old"
    assert "99.0" in error.message


def test_the_first_lines_are_readable_by_an_old_python() -> None:
    """Nothing in bootstrap.py is newer than 3.6: it must be able to say that an interpreter is too old."""
    import ast

    ast.parse(Path(bootstrap.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))
    assert bootstrap.MARK == wire.MARK


def test_the_names_that_python_3_10_lacks_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(enum, "StrEnum")
    monkeypatch.delattr(typing, "Self")
    bootstrap.add_missing_names()
    assert hasattr(typing, "Self")
    made = enum.StrEnum("made", {"A": "a", "B": "b"})
    assert (str(made.A), f"{made.B}", made("b"), made.A == "a") == ("a", "b", made.B, True)


def test_our_package_is_found_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "desktop_app").mkdir()
    (tmp_path / "desktop_app" / "__init__.py").write_text("")
    (tmp_path / "torch.py").write_text("")
    finder = bootstrap.Finder(str(tmp_path))
    found = finder.find_spec("desktop_app")
    assert found is not None
    assert found.origin == str(tmp_path / "desktop_app" / "__init__.py")
    assert finder.find_spec("torch") is None
    assert finder.find_spec("desktop_app.core") is None  # by the package's own path


# What Python 3.11 brought, but for what bootstrap.py adds: the interpreter that traces may be 3.10.
_NEW = re.compile(r"except\*|from typing import .*\b(Never|assert_never|LiteralString|Unpack)\b|tomllib|import UTC")


def test_what_traces_uses_nothing_of_python_3_11() -> None:
    code = """
import sys
sys.modules["numpy"] = None
import desktop_app.memory.tracing.subject, desktop_app.memory.tracing.child
from desktop_app.memory.tracing import stage_fake, stage_meta, user_files
print("\\n".join(m.__file__ for n, m in sys.modules.items() if n.startswith("desktop_app")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    files = [Path(name) for name in done.stdout.split("\n") if name]
    assert len(files) > 20
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "from __future__ import annotations" in text or "|" not in text or file.name == "__init__.py", file
        assert not _NEW.search(text), file
