"""Models of timm: by a small package of that name, and by timm itself where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.steps import Category
from desktop_app.memory.trace_errors import TracerError
from tests.unit.memory.tracing.subjects import kept_bytes, most_bytes, subject_of, trace_of

PACKAGE = """
import torch
from torch import nn

__version__ = "0.9"
CONFIGS = {
    "tiny_net": {"input_size": (1, 16, 16), "num_classes": 7},
    "tiny_vit": {"input_size": (3, 32, 32), "num_classes": 0, "fixed_input_size": True},
    "tiny_twins": {"input_size": (3, 16, 16), "num_classes": 4},
}

def list_models(): return list(CONFIGS)
def is_model(name): return name in CONFIGS
def get_pretrained_cfg(name, allow_unregistered=True):
    if "." in name: raise RuntimeError(f"Invalid pretrained tag ({name.split('.')[1]}) for {name}.")
    class Config:
        def to_dict(self): return dict(CONFIGS[name])
    return Config()

class Net(nn.Module):
    def __init__(self, channels, size, num_classes, twins=False):
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        self.num_classes, self.size, self.twins, self.saves = num_classes, size, twins, False
        self.stem = nn.Conv2d(channels, 8, 3)
        self.blocks = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in rates))
        self.head = nn.Linear(8, num_classes)

    def get_classifier(self): return self.head
    def set_grad_checkpointing(self, enable=True): self.saves = enable

    def forward(self, images):
        if self.size is not None: assert images.shape[-1] == self.size
        logits = self.head(self.blocks(self.stem(images)).mean((2, 3)))
        return (logits, logits + 1) if self.twins else logits

def create_model(name, pretrained=False, num_classes=None, in_chans=None, img_size=None):
    assert not pretrained
    config = CONFIGS[name]
    classes = config["num_classes"] if num_classes is None else num_classes
    size = (img_size or config["input_size"][1]) if config.get("fixed_input_size") else None
    return Net(in_chans or config["input_size"][0], size, classes, name == "tiny_twins")
"""


@pytest.fixture
def timm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "timm.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "timm"}
    yield
    sys.modules.pop("timm", None)
    sys.modules.update(kept)


def input_bytes(model: str, **fields: Any) -> list[int]:
    """Of the first batch: images, then classes."""
    events = trace_of(model, batch_size=2, **fields).events
    return [event.size_bytes for event in events if event.key > 0 and event.category is Category.INPUTS][:2]


@pytest.mark.usefixtures("timm")
class TestByItsInterface:
    def test_takes_the_models_own_images_and_classes(self) -> None:
        assert input_bytes("timm:tiny_net") == [2 * 1 * 16 * 16 * 4, 2 * 8]
        assert subject_of("timm:tiny_net").model.head.out_features == 7  # type: ignore[union-attr]

    def test_takes_what_is_said(self) -> None:
        fields: dict[str, Any] = {"image_size": 24, "classes": 3, "arguments": {"in_chans": 2}}
        assert input_bytes("timm:tiny_net", **fields) == [2 * 2 * 24 * 24 * 4, 2 * 8]
        assert subject_of("timm:tiny_net", **fields).model.head.out_features == 3  # type: ignore[union-attr]
        assert input_bytes("timm:tiny_vit", image_size=48) == [2 * 3 * 48 * 48 * 4, 2 * 8]

    def test_gives_a_classifier_to_models_without_one(self) -> None:
        subject = subject_of("timm:tiny_vit")
        assert subject.model.head.out_features == 1000  # type: ignore[union-attr]
        assert subject.notes == ("tiny_vit has no classifier of its own: one of 1000 classes is added",)

    def test_adds_the_losses_of_several_outputs(self) -> None:
        subject = subject_of("timm:tiny_twins")
        model = type(subject.model)(3, None, 4, twins=True)
        images, targets = torch.randn(2, 3, 16, 16), torch.tensor([0, 3])
        one, other = model(images)
        expected = torch.nn.functional.cross_entropy(one, targets) + torch.nn.functional.cross_entropy(other, targets)
        assert subject.micro_step(model, (images, targets)).item() == pytest.approx(expected.item())

    def test_knows_its_head_and_its_own_checkpointing(self) -> None:
        trace = trace_of("timm:tiny_net", frozen=("backbone",), optimizer="adam")
        assert kept_bytes(trace, Category.OPTIMIZER_STATE) == 8 * (8 * 7 + 7)
        assert subject_of("timm:tiny_net", checkpointing="full").model.saves

    def test_casts_images_and_orders_their_channels(self) -> None:
        subject = subject_of("timm:tiny_vit", precision="pure_bf16", channels_last=True)
        images, targets = subject.batch(2, torch.device("meta"))
        assert (images.dtype, targets.dtype) == (torch.bfloat16, torch.int64)
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert {parameter.dtype for parameter in subject.model.parameters()} == {torch.bfloat16}
        assert subject.model.stem.weight.is_contiguous(memory_format=torch.channels_last)  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("model", "fields", "kind", "message"),
        [
            ("timm:tiny_ned", {}, "unknown_model", "timm 0.9 has no model 'tiny_ned'; near: tiny_net"),
            ("timm:hf_hub:some/model", {}, "unknown_model", "would have to be downloaded"),
            ("timm:tiny_net.in21k", {}, "unknown_model", "Invalid pretrained tag (in21k)"),
            ("timm:tiny_net", {"arguments": {"depth": 3}}, "bad_spec", "timm:tiny_net cannot be built with"),
            ("timm:tiny_net", {"sequence_length": 8}, "bad_spec", "takes images: leave --sequence-length out"),
            ("timm:", {}, "unknown_model", "A model is timm:NAME, transformers:NAME or python:FILE:FUNCTION"),
            ("resnet50", {}, "unknown_model", "not 'resnet50'"),
        ],
    )
    def test_says_what_is_wrong(self, model: str, fields: dict[str, Any], kind: str, message: str) -> None:
        with pytest.raises(TracerError) as caught:
            subject_of(model, **fields)
        assert (caught.value.kind, message in caught.value.message) == (kind, True), caught.value.message


@pytest.mark.skipif(importlib.util.find_spec("timm") is not None, reason="timm is installed")
def test_says_that_it_is_not_installed() -> None:
    with pytest.raises(TracerError, match="timm is not installed in") as caught:
        subject_of("timm:resnet50")
    assert caught.value.kind == "not_installed"


# Parameters as timm publishes them (results/model_metadata-in1k.csv, "param_count", millions).
@pytest.mark.parametrize(
    ("name", "millions"), [("resnet50", 25.56), ("vit_base_patch16_224", 86.57), ("convnext_base", 88.59)]
)
def test_has_the_published_number_of_parameters(name: str, millions: float) -> None:
    pytest.importorskip("timm")
    trace = trace_of(f"timm:{name}")
    count = sum(module.parameters for module in trace.modules)
    assert count / 1e6 == pytest.approx(millions, abs=0.01)
    assert most_bytes(trace) > 16 * count
