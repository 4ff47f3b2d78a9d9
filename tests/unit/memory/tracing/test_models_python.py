"""The user's own file: what it may return, what is chosen for it, and what is said where it does not do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.steps import Category
from desktop_app.core.units import MIB
from desktop_app.memory.advice import candidates
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.user_files import UserFiles
from desktop_app.memory.training_spec import TrainingSpec
from tests.unit.memory.tracing.subjects import A100, kept_bytes, most_bytes, subject_of, trace_of

TRAINING = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy

def model(width=64):
    return nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 10))

def step(model, batch):
    images, targets = batch
    return cross_entropy(model(images.to("cuda")), targets.to("cuda"))

def batch(batch_size, device):
    return torch.empty(batch_size, 32, device=device), torch.zeros(batch_size, dtype=torch.int64, device=device)

def whole(width=64):
    made = model(width).to("cuda" if torch.cuda.is_available() else "cpu")
    return made, torch.optim.SGD(made.parameters(), 0.1, momentum=0.9), step, batch
"""


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """Files of one test are not those of the next."""
    known, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - known:
        if "user_training" in (name, getattr(sys.modules[name], "__name__", "")) or "training" in name:
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str, name: str = "my_training.py") -> str:
        path = tmp_path / name
        path.write_text(TRAINING + text)
        return f"python:{path}:"

    return write


def error_of(model: str, **fields: Any) -> TracerError:
    with pytest.raises(TracerError) as caught:
        trace_of(model, **fields)
    return caught.value


def test_a_whole_training_is_traced_as_it_is(file: Any) -> None:
    trace = trace_of(file("") + "whole", batch_size=4)
    parameters = 4 * (32 * 64 + 64 + 64 * 10 + 10)
    assert kept_bytes(trace, Category.PARAMETERS) == parameters
    assert kept_bytes(trace, Category.OPTIMIZER_STATE) == parameters  # its own SGD, with momentum
    assert not trace.warnings


OWN = 4 * (32 * 64 + 64 + 64 * 10 + 10)


@pytest.mark.parametrize(
    ("optimizer", "states", "name"),
    [(None, OWN, "sgd"), ("sgd", OWN, "sgd"), ("adamw", 2 * OWN, "adamw"), ("adam", 2 * OWN, "adam")],
)
def test_an_optimizer_that_is_named_takes_the_place_of_the_files_own(
    file: Any, optimizer: str | None, states: int, name: str
) -> None:
    trace = trace_of(file("") + "whole", batch_size=4, optimizer=optimizer)
    # torch.optim: SGD with momentum keeps one value per parameter, Adam two and a counter of steps.
    assert 0 <= kept_bytes(trace, Category.OPTIMIZER_STATE) - states < 100
    assert trace.optimizer == name


def test_a_lever_replaces_the_files_own_optimizer(file: Any) -> None:
    text = "\ndef adams():\n    made = model(640)\n    return made, torch.optim.AdamW(made.parameters()), step, batch"
    own = trace_of(file(text) + "adams")
    parameters = 4 * (32 * 640 + 640 + 640 * 10 + 10)
    assert 0 <= kept_bytes(own, Category.OPTIMIZER_STATE) - 2 * parameters < 100
    assert own.optimizer == "adamw"
    spec = TrainingSpec(model=file(text) + "adams")
    levers = {found.code: found.settings for found in candidates(spec, A100, own)}
    for code, most in (("sgd", 1.0), ("adafactor", 0.1), ("adam8bit", 0.6)):
        changed = trace_of(spec.model, **levers[code])
        assert changed.optimizer == code
        assert kept_bytes(changed, Category.OPTIMIZER_STATE) <= most * parameters


def test_arguments_of_an_optimizer_go_with_its_name(file: Any) -> None:
    error = error_of(file("") + "whole", optimizer_arguments={"momentum": 0})
    assert (error.kind, "\n" in error.message) == ("bad_spec", False)
    assert "its own SGD: name the optimizer by --optimizer" in error.message
    named = trace_of(file("") + "whole", optimizer="sgd", optimizer_arguments={"momentum": 0})
    assert kept_bytes(named, Category.OPTIMIZER_STATE) == 0
    bare = file("\ndef bare():\n    return model(), step, batch", "bare_training.py") + "bare"
    mine = trace_of(bare, optimizer_arguments={"amsgrad": True})
    assert 0 <= kept_bytes(mine, Category.OPTIMIZER_STATE) - 3 * OWN < 100  # AdamW, where there is none


@pytest.mark.parametrize("name", ["image_size", "sequence_length", "classes"])
def test_sizes_that_nothing_takes_are_refused(file: Any, name: str) -> None:
    error = error_of(file("") + "whole", **{name: 8})
    assert error.kind == "bad_spec"
    assert f"takes no {name}: leave --{name.replace('_', '-')} out" in error.message


def test_arguments_reach_the_function(file: Any) -> None:
    small, wide = (trace_of(file("") + "whole", arguments={"width": width}) for width in (64, 640))
    assert kept_bytes(wide, Category.PARAMETERS) > 9 * kept_bytes(small, Category.PARAMETERS)


EXAMPLE = "(torch.zeros(3, 32), torch.zeros(3, dtype=torch.int64))"
RETURNS = {
    "names": f"return {{'model': model(), 'inputs': {EXAMPLE}, 'head': '2'}}",
    "object": "from types import SimpleNamespace as S; m = model(); return S(model=m, step=step, batch=batch)",
    "order": "m = model(); return step, torch.optim.Adam(m.parameters()), m, batch",
    "example": f"return model(), step, {EXAMPLE}",
}


@pytest.mark.parametrize("name", ["names", "object", "order", "example"])
def test_every_way_to_say_the_same_gives_the_same(file: Any, name: str) -> None:
    wanted = most_bytes(trace_of(file("") + "whole", batch_size=64, optimizer="adam"))
    made = trace_of(
        file(f"def training():\n    {RETURNS[name]}", f"{name}_training.py") + "training",
        batch_size=64,
        optimizer="adam",
    )
    assert most_bytes(made) == wanted


def test_what_is_left_out_is_chosen_and_said(file: Any) -> None:
    text = """
def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
def words():
    return nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 100))
"""
    pictures = trace_of(file(text) + "images", image_size=32, batch_size=2)
    assert [event.size_bytes for event in pictures.events if event.category is Category.INPUTS and event.key > 0][
        :2
    ] == [
        2 * 3 * 32 * 32 * 4,
        2 * 8,
    ]
    assert any("RGB images of 32 × 32" in line for line in pictures.warnings)
    assert any("cross entropy" in line for line in pictures.warnings)
    sentences = trace_of(file(text) + "words", sequence_length=12, batch_size=2)
    assert any("12 tokens" in line for line in sentences.warnings)


def test_the_function_is_told_what_the_form_says(file: Any) -> None:
    text = (
        "def training(batch_size, image_size=8, classes=2):\n    assert (batch_size, image_size, classes) == (6, 8, 3)"
    )
    subject_of(file(text + "\n    return whole()") + "training", batch_size=6, classes=3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 3", "training returned a int; expected is a model, or (model, optimizer, step)"),
        ("return step, batch", "returned no model (a torch.nn.Module)"),
        ("return model(), step, batch, batch", "more than two functions"),
        ("return model(), step, batch, 4", "returned a int too much"),
        ("return {'net': model()}", "returned 'net'; known names are model, optimizer, step, batch, inputs, head."),
        ("return {'model': model(), 'optimizer': 'adam'}", "as optimizer a str, not a torch.optim.Optimizer"),
        ("return {'model': model(), 'step': 4}", "as step a int, not step(model, batch)"),
        ("return model(), torch.optim.SGD, step, batch", "training: return an optimizer, not the class SGD."),
        ("return {'model': model(), 'optimizer': torch.optim.AdamW}", "return an optimizer, not the class AdamW."),
        ("return nn.Linear, step, batch", "training: return a model, not the class Linear."),
        ("return nn.Linear", "training: return a model, not the class Linear."),
        ("return model(), step", "returned no batch: return batch(batch_size, device) too"),
        (
            "return model(), (lambda m, b: m(b[0])), batch",
            "must return the loss as one number, not a tensor of shape (8, 10)",
        ),
        ("raise SystemExit(2)", "training ended the program instead of returning."),
    ],
)
def test_what_does_not_do_is_said_in_one_line(file: Any, body: str, message: str) -> None:
    error = error_of(file(f"def training():\n    {body}") + "training")
    assert error.kind == "bad_model"
    assert message in error.message
    assert "\n" not in error.message


def test_files_and_functions_that_are_not_there(file: Any, tmp_path: Path) -> None:
    assert "There is no file" in error_of(f"python:{tmp_path / 'none.py'}:training").message
    missing = error_of(file("") + "trainig")
    assert missing.kind == "function_missing"
    assert "it has model, step, batch, whole" in missing.message
    assert "names no function" in error_of("python:training.py").message
    assert "takes no argument 'depth'" in error_of(file("") + "whole", arguments={"depth": 3}).message
    assert "needs the argument 'size'" in error_of(file("def needs(size): ...", "b_training.py") + "needs").message


def test_what_the_file_raises_is_raised(file: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such data"):
        trace_of(file("def training():\n    raise ValueError('no such data')") + "training")
    broken = tmp_path / "broken_training.py"
    broken.write_text("def training(:\n")
    with pytest.raises(SyntaxError):
        trace_of(f"python:{broken}:training")
    ends = tmp_path / "ending_training.py"
    ends.write_text("import sys\nsys.exit()\n")
    assert "guard it by if __name__ == '__main__'" in error_of(f"python:{ends}:training").message


def test_a_file_sees_its_neighbours_and_is_watched(file: Any, tmp_path: Path) -> None:
    (tmp_path / "neighbour_training.py").write_text("WIDTH = 48\n")
    watch = UserFiles()
    trace_of(file("import neighbour_training as n\ndef training():\n    return whole(n.WIDTH)") + "training")
    watch.look()
    assert not watch.have_changed()
    (tmp_path / "my_training.py").write_text("changed = True\n")
    assert watch.have_changed()


def test_a_file_with_a_libraries_name_does_not_take_its_place(file: Any) -> None:
    kept = torch
    trace_of(file("", "torch.py") + "whole")
    assert sys.modules["torch"] is kept


def test_changes_go_through_the_users_training(file: Any) -> None:
    """The file's own SGD is kept where nothing else is asked for, and its adapters are trained by it."""
    adapted = trace_of(file("") + "whole", lora_rank=2)
    trained = 4 * (2 * (32 + 64) + 64 * 10 + 10)
    assert kept_bytes(adapted, Category.OPTIMIZER_STATE) == trained
    eight = trace_of(file("") + "whole", optimizer="adam8bit", arguments={"width": 4096})
    assert kept_bytes(eight, Category.OPTIMIZER_STATE) < 2.2 * (32 * 4096 + 4096 + 4096 * 10) + MIB / 100


@pytest.mark.parametrize(("name", "states"), [("AdamW", 2), ("Adam", 2), ("RMSprop", 1), ("NAdam", 2), ("Adamax", 2)])
def test_adapters_are_trained_by_the_files_own_kind_of_optimizer(file: Any, name: str, states: int) -> None:
    """What its constructor takes is kept; torch's AdamW keeps defaults that its constructor does not take."""
    text = f"""
def make():
    made = model()
    return made, torch.optim.{name}(made.parameters(), weight_decay=0.1), step, batch
"""
    trace = trace_of(file(text) + "make", lora_rank=2)
    trained = 4 * (2 * (32 + 64) + 64 * 10 + 10)
    assert kept_bytes(trace, Category.OPTIMIZER_STATE) == states * trained
