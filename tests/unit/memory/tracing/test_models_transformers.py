"""Models of transformers: by a small package of that name, and by transformers itself where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.steps import Category
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.models_transformers_shapes import CHECKPOINTS, checkpoint_named
from tests.unit.memory.tracing.subjects import kept_bytes, subject_of, trace_of

ROOT = """
import json
import os
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

__version__ = "5.0"
from .models.auto.configuration_auto import CONFIG_MAPPING_NAMES

assert os.environ["HF_HUB_OFFLINE"] == "1"

class Config:
    model_type = "gpt2"
    def __init__(self, **values):
        self.vocab_size, self.n_positions, self.n_embd, self.n_layer, self.n_head = 100, 1024, 16, 3, 2
        self.use_cache, self.pad_token_id, self.num_labels = True, None, 2
        self.dtype, self.architectures = "float16", None
        for name, value in values.items():
            setattr(self, name, value)

class ImageConfig(Config):
    model_type = "vit"
    def __init__(self, **values):
        super().__init__(**{"image_size": 32, "num_channels": 3, **values})

class AutoConfig:
    @staticmethod
    def for_model(kind, **values):
        if kind not in CONFIG_MAPPING_NAMES:
            raise ValueError("Unrecognized model identifier")
        return {"gpt2": Config, "vit": ImageConfig}[kind](**values)
    @staticmethod
    def from_pretrained(folder, local_files_only, trust_remote_code):
        assert local_files_only and not trust_remote_code
        values = json.loads((Path(folder) / "config.json").read_text())
        if values["model_type"] == "secret":
            raise ValueError("The repository contains custom code.\\nMore.")
        return AutoConfig.for_model(values.pop("model_type"), **values)

class PreTrainedModel(nn.Module):
    base_model_prefix, main_input_name, supports_gradient_checkpointing = "transformer", "input_ids", True
    def __init__(self, config):
        super().__init__()
        self.config, self.asked = config, None
    @classmethod
    def _from_config(cls, config, **options):
        assert config.dtype is torch.float32 and not config.use_cache
        model = cls(config)
        model.options = options
        model.initialize_weights()
        return model
    def initialize_weights(self):
        raise AssertionError("weights have no values")
    def activation_checkpointing_enable(self, options, every_n_layers=1):
        assert options == {"use_reentrant": False}
        self.asked = every_n_layers

class GPT2LMHeadModel(PreTrainedModel):
    config_class = Config
    def __init__(self, config):
        super().__init__(config)
        self.transformer = nn.Sequential(nn.Embedding(config.vocab_size, config.n_embd), *(
            nn.Linear(config.n_embd, config.n_embd) for _ in range(config.n_layer)))
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer[0].weight
        if positions := getattr(config, "learned", None):
            self.embed_positions = nn.Embedding(*positions)
    def get_output_embeddings(self): return self.lm_head
    def forward(self, input_ids, labels):
        logits = self.lm_head(self.transformer(input_ids))
        return SimpleNamespace(loss=nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()))

class GPT2ForSequenceClassification(PreTrainedModel):
    config_class = Config
    def __init__(self, config):
        super().__init__(config)
        assert config.pad_token_id is not None
        self.transformer = nn.Embedding(config.vocab_size, config.n_embd)
        self.score = nn.Linear(config.n_embd, config.num_labels)
    def forward(self, input_ids, labels):
        return SimpleNamespace(loss=nn.functional.cross_entropy(self.score(self.transformer(input_ids)[:, -1]), labels))

class ViTForImageClassification(PreTrainedModel):
    config_class, main_input_name, base_model_prefix = ImageConfig, "pixel_values", "vit"
    def __init__(self, config):
        super().__init__(config)
        self.vit = nn.Flatten()
        self.classifier = nn.Linear(config.num_channels * config.image_size ** 2, config.num_labels)
    def forward(self, pixel_values, labels):
        return SimpleNamespace(loss=nn.functional.cross_entropy(self.classifier(self.vit(pixel_values)), labels))
"""
AUTO = """
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = {"gpt2": "GPT2LMHeadModel"}
MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES = {"gpt2": "GPT2ForSequenceClassification"}
MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES = {"vit": ("ViTForImageClassification", "Another")}
MODEL_MAPPING_NAMES = {}
"""


@pytest.fixture
def transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "library" / "transformers"
    auto = package / "models" / "auto"
    auto.mkdir(parents=True)
    for folder in (auto.parent, auto):
        (folder / "__init__.py").write_text("")
    (package / "__init__.py").write_text(ROOT)
    (auto / "configuration_auto.py").write_text("CONFIG_MAPPING_NAMES = {'gpt2': 'Config', 'vit': 'ImageConfig'}\n")
    (auto / "modeling_auto.py").write_text(AUTO)
    monkeypatch.syspath_prepend(str(package.parent))
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "transformers"}
    yield
    for name in list(sys.modules):
        if name.partition(".")[0] == "transformers":
            del sys.modules[name]
    sys.modules.update(kept)


def input_bytes(model: str, **fields: Any) -> list[int]:
    events = trace_of(model, batch_size=2, **fields).events
    return [event.size_bytes for event in events if event.key > 0 and event.category is Category.INPUTS][:2]


@pytest.mark.usefixtures("transformers")
class TestByItsInterface:
    def test_a_kind_of_model_is_trained_for_what_it_is_for(self) -> None:
        subject = subject_of("transformers:gpt2")
        assert type(subject.model).__name__ == "GPT2LMHeadModel"
        assert "trained for causal lm (GPT2LMHeadModel)" in subject.notes
        assert "sequences of 512 tokens are assumed; the model takes up to 1024" in subject.notes

    def test_a_batch_is_tokens_and_labels(self) -> None:
        assert input_bytes("transformers:gpt2") == [2 * 512 * 8] * 2
        assert input_bytes("transformers:gpt2", sequence_length=100) == [2 * 100 * 8] * 2
        notes = subject_of("transformers:gpt2", sequence_length=2000).notes
        assert "sequences of 2000 tokens are longer than the 1024 that the model has positions for" in notes

    @pytest.mark.parametrize(
        ("most", "positions"),
        [
            (512, (512, 16)),  # BERT
            (514, (514, 16, 1)),  # RoBERTa: positions begin after the padding's, which is 1
            (512, (514, 16)),  # BART, OPT: two more than are used
        ],
    )
    def test_learned_positions_are_the_most_tokens(
        self, monkeypatch: pytest.MonkeyPatch, most: int, positions: tuple[int, ...]
    ) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        transformers = importlib.import_module("transformers")
        monkeypatch.setattr(
            transformers.AutoConfig, "for_model", lambda *_, **__: transformers.Config(n_positions=most)
        )
        monkeypatch.setattr(transformers.Config, "learned", positions, raising=False)
        assert input_bytes("transformers:gpt2", sequence_length=512) == [2 * 512 * 8] * 2
        for length in (513, 1024):
            with pytest.raises(TracerError) as caught:
                subject_of("transformers:gpt2", sequence_length=length)
            assert caught.value.kind == "bad_spec"
            assert caught.value.message == f"The model has positions for at most 512 tokens, not {length}."

    def test_what_a_model_has_no_use_for_is_refused(self) -> None:
        for model, fields, option in (
            ("transformers:gpt2", {"image_size": 32}, "image-size"),
            ("transformers:gpt2", {"classes": 3, "arguments": {"task": "causal_lm"}}, "classes"),
            ("transformers:vit", {"sequence_length": 8}, "sequence-length"),
        ):
            with pytest.raises(TracerError, match=f"has no use for --{option}: leave it out") as caught:
                subject_of(model, **fields)
            assert caught.value.kind == "bad_spec"

    def test_classes_ask_for_a_classifier(self) -> None:
        subject = subject_of("transformers:gpt2", classes=5)
        assert subject.model.score.out_features == 5  # type: ignore[union-attr]
        assert input_bytes("transformers:gpt2", classes=5, sequence_length=8) == [2 * 8 * 8, 2 * 8]

    def test_images_have_the_models_size_or_the_one_that_is_said(self) -> None:
        assert input_bytes("transformers:vit") == [2 * 3 * 32 * 32 * 4, 2 * 8]
        assert input_bytes("transformers:vit", image_size=64) == [2 * 3 * 64 * 64 * 4, 2 * 8]
        assert subject_of("transformers:vit").model.classifier.out_features == 1000  # type: ignore[union-attr]

    def test_a_known_checkpoint_has_its_shape(self) -> None:
        model = subject_of("transformers:openai-community/gpt2-medium", sequence_length=4).model
        assert (model.config.n_embd, model.config.n_layer) == (1024, 24)  # type: ignore[union-attr]

    def test_a_folder_says_what_it_is(self, tmp_path: Path) -> None:
        values = {
            "model_type": "gpt2",
            "n_embd": 8,
            "architectures": ["GPT2ForSequenceClassification"],
            "num_labels": 9,
        }
        (tmp_path / "config.json").write_text(json.dumps(values))
        model = subject_of(f"transformers:{tmp_path}").model
        assert type(model).__name__ == "GPT2ForSequenceClassification"

    def test_a_class_is_taken_by_its_name(self) -> None:
        assert type(subject_of("transformers:GPT2ForSequenceClassification").model).__name__.endswith("Classification")

    def test_arguments_change_the_configuration(self) -> None:
        arguments = {"n_layer": 1, "attn_implementation": "eager"}
        model = subject_of("transformers:gpt2", arguments=arguments).model
        assert len(model.transformer) == 2  # type: ignore[arg-type]
        assert model.options == {"attn_implementation": "eager"}

    def test_sequences_are_full_whatever_a_fake_mask_says(self, tmp_path: Path) -> None:
        masks = tmp_path / "library" / "transformers" / "masking_utils.py"
        masks.write_text(
            "def fast_all(mask): raise AssertionError\ndef find_packed_sequence_indices(ids): return 'packed'\n"
        )
        subject_of("transformers:gpt2")
        asked = sys.modules["transformers.masking_utils"]
        assert asked.fast_all(None)
        assert asked.find_packed_sequence_indices(None) is None

    def test_ties_and_the_head(self) -> None:
        subject = subject_of("transformers:gpt2")
        assert subject.model.lm_head.weight is subject.model.transformer[0].weight  # type: ignore[union-attr, index]
        trace = trace_of("transformers:gpt2", classes=5, frozen=("backbone",), optimizer="adam", sequence_length=8)
        assert kept_bytes(trace, Category.OPTIMIZER_STATE) == 8 * (768 * 5 + 5)

    @pytest.mark.parametrize(("checkpointing", "every"), [("full", 1), ("every_3", 3)])
    def test_its_own_checkpointing(self, checkpointing: str, every: int) -> None:
        assert subject_of("transformers:gpt2", checkpointing=checkpointing).model.asked == every

    @pytest.mark.parametrize(
        ("model", "fields", "kind", "message"),
        [
            ("gpd2", {}, "unknown_model", "transformers 5.0 has no model 'gpd2'; near: gpt2"),
            ("gpt2", {"arguments": {"depth": 3}}, "bad_spec", "Config has no 'depth'."),
            (
                "gpt2",
                {"arguments": {"task": "chess"}},
                "bad_spec",
                "There is no task 'chess'; there are speech, seq2seq,",
            ),
            ("vit", {"arguments": {"task": "causal_lm"}}, "bad_spec", "transformers has no causal lm for vit."),
            ("bert-base-uncased", {}, "unknown_model", "transformers 5.0"),
        ],
    )
    def test_says_what_is_wrong(self, model: str, fields: dict[str, Any], kind: str, message: str) -> None:
        with pytest.raises(TracerError) as caught:
            subject_of(f"transformers:{model}", **fields)
        assert (caught.value.kind, message in caught.value.message) == (kind, True), caught.value.message

    def test_code_of_others_is_not_run(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text('{"model_type": "secret"}')
        with pytest.raises(TracerError, match=r"config.json: The repository contains custom code\.$"):
            subject_of(f"transformers:{tmp_path}")


def test_names_of_checkpoints_in_any_case_and_with_their_owner() -> None:
    assert checkpoint_named("meta-llama/Llama-3.1-8B-Instruct") is CHECKPOINTS["llama-3.1-8b"]
    assert checkpoint_named("BERT") is CHECKPOINTS["bert-base-uncased"]
    assert checkpoint_named("llama-9") is None


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed")
def test_says_that_it_is_not_installed() -> None:
    with pytest.raises(TracerError, match="transformers is not installed in") as caught:
        subject_of("transformers:gpt2")
    assert caught.value.kind == "not_installed"


# Millions of parameters as the files of weights on huggingface.co say, tied ones once.
@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("gpt2", 124.44),
        ("bert-large-uncased", 335.17),
        ("t5-small", 60.51),
        ("llama-3.1-8b", 8030.26),
        ("clip", 151.28),
    ],
)
def test_has_the_published_number_of_parameters(name: str, millions: float) -> None:
    pytest.importorskip("transformers")
    model = subject_of(f"transformers:{name}").model
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.02)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
