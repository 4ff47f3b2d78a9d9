"""What a model of transformers is trained for, and what a batch of it looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch

from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.subject_parts import BatchMaker
from desktop_app.memory.training_spec import TrainingSpec

LONGEST: Final = 512  # of the sequences that are assumed where none is said
_SAMPLE_RATE: Final = 16_000  # of speech models; ten seconds are assumed
_SECONDS: Final = 10
_IMAGE: Final = 224
_FRAMES: Final = 16

_INTEGER: Final = torch.int64
_REAL: Final = torch.float32


class Field(NamedTuple):
    """One tensor of a batch: its name and its shape but for the batch."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the fields depend on."""

    length: int  # tokens
    target_length: int
    channels: int
    height: int
    width: int
    config: Any


class Task(NamedTuple):
    """``mapping``: where transformers' auto classes list it. ``classes``: for how many where nothing is said."""

    mapping: str
    fields: Callable[[Sizes], list[Field]]
    extra: Mapping[str, Any] = {}
    classes: int | None = None


def _tokens(sizes: Sizes) -> list[Field]:
    return [Field("input_ids", (sizes.length,), _INTEGER)]


def _images(sizes: Sizes) -> list[Field]:
    return [Field("pixel_values", (sizes.channels, sizes.height, sizes.width), _REAL)]


def _label(*shape: int) -> list[Field]:
    return [Field("labels", shape, _INTEGER)]


def _spectrogram(sizes: Sizes) -> list[Field]:
    """Whisper's 30 s are two frames a position; others say how many they take."""
    config = sizes.config
    bins = _first(config, "num_mel_bins", "input_feat_per_channel", "feature_size", default=80)
    frames = 2 * _first(config, "max_source_positions", default=1500)
    if config.model_type == "whisper":
        return [Field("input_features", (bins, frames), _REAL)]
    return [Field("input_features", (min(frames, 2 * LONGEST), bins), _REAL)]


def _sound(sizes: Sizes) -> list[Field]:
    """Samples, or a spectrogram where the model has bins for it."""
    config = sizes.config
    if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        return [Field("input_values", (config.max_length, config.num_mel_bins), _REAL)]
    if hasattr(config, "feature_projection_input_dim"):  # wav2vec2-bert: frames of 20 ms, made beforehand
        return [Field("input_features", (_SECONDS * 50, config.feature_projection_input_dim), _REAL)]
    return [Field("input_values", (_SECONDS * _SAMPLE_RATE,), _REAL)]


def _video(sizes: Sizes) -> list[Field]:
    frames = _first(sizes.config, "num_frames", default=_FRAMES)
    return [Field("pixel_values", (frames, sizes.channels, sizes.height, sizes.width), _REAL)]


# In the order in which a kind of model is asked what it is for.
TASKS: Final[Mapping[str, Task]] = {
    "speech": Task("SPEECH_SEQ_2_SEQ", lambda sizes: [*_spectrogram(sizes), *_label(sizes.target_length)]),
    "seq2seq": Task("SEQ_TO_SEQ_CAUSAL_LM", lambda sizes: [*_tokens(sizes), *_label(sizes.target_length)]),
    "masked_lm": Task("MASKED_LM", lambda sizes: [*_tokens(sizes), *_label(sizes.length)]),
    "causal_lm": Task("CAUSAL_LM", lambda sizes: [*_tokens(sizes), *_label(sizes.length)]),
    "image_and_text": Task(
        "ZERO_SHOT_IMAGE_CLASSIFICATION", lambda sizes: [*_tokens(sizes), *_images(sizes)], extra={"return_loss": True}
    ),
    "image_classification": Task("IMAGE_CLASSIFICATION", lambda sizes: [*_images(sizes), *_label()], classes=1000),
    "audio_classification": Task("AUDIO_CLASSIFICATION", lambda sizes: [*_sound(sizes), *_label()], classes=2),
    "segmentation": Task(
        "SEMANTIC_SEGMENTATION", lambda sizes: [*_images(sizes), *_label(sizes.height, sizes.width)], classes=150
    ),
    "video_classification": Task("VIDEO_CLASSIFICATION", lambda sizes: [*_video(sizes), *_label()], classes=400),
    "sequence_classification": Task("SEQUENCE_CLASSIFICATION", lambda sizes: [*_tokens(sizes), *_label()], classes=2),
    "token_classification": Task(
        "TOKEN_CLASSIFICATION", lambda sizes: [*_tokens(sizes), *_label(sizes.length)], classes=2
    ),
    "question_answering": Task(
        "QUESTION_ANSWERING",
        lambda sizes: [*_tokens(sizes), Field("start_positions", (), _INTEGER), Field("end_positions", (), _INTEGER)],
    ),
    "ctc": Task("CTC", lambda sizes: [*_sound(sizes), *_label(sizes.target_length)]),
    "pretraining": Task("PRETRAINING", lambda sizes: _main_input(sizes)),
}
BASE: Final = Task("", lambda sizes: _main_input(sizes))
# What a model is trained for when a number of classes is said, in this order.
WITH_CLASSES: Final = (
    "sequence_classification",
    "image_classification",
    "audio_classification",
    "segmentation",
    "video_classification",
)


def class_names(auto: Any, task: str) -> dict[str, str]:
    """Kind of model to class of this task, as ``transformers`` lists them."""
    listed = getattr(auto, f"MODEL_FOR_{TASKS[task].mapping}_MAPPING_NAMES", {})
    return {kind: names[0] if isinstance(names, (tuple, list)) else names for kind, names in listed.items()}


def choose_task(auto: Any, kind: str, *, classes: int | None) -> str | None:
    """What a kind of model is for; ``None`` where transformers lists no class with a loss."""
    order = (*WITH_CLASSES, *TASKS) if classes else tuple(TASKS)
    return next((task for task in order if kind in class_names(auto, task)), None)


def task_of_class(auto: Any, name: str) -> str | None:
    """The task that lists a class."""
    return next((task for task in TASKS if name in class_names(auto, task).values()), None)


def measure(
    config: Any, spec: TrainingSpec, notes: list[str], *, needs_tokens: bool, positions: int | None = None
) -> Sizes:
    """The sizes of a batch: what is said, else what the model takes, no more than 512 tokens.

    ``positions``: the most tokens that have a learned position, where there are such. Raises ``TracerError`` beyond.
    """
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    most = _longest(text)
    if positions is not None and most is not None:
        most = min(most, positions)
    length = spec.sequence_length or min(most or LONGEST, LONGEST)
    if needs_tokens and positions is not None and most is not None and length > most:
        raise TracerError("bad_spec", f"The model has positions for at most {most} tokens, not {length}.")
    if needs_tokens and spec.sequence_length is None:
        takes = f"the model takes up to {most}" if most else "the model names no limit"
        notes.append(f"sequences of {length} tokens are assumed; {takes}")
    elif needs_tokens and most is not None and length > most:
        notes.append(f"sequences of {length} tokens are longer than the {most} that the model has positions for")
    vision = getattr(config, "vision_config", None) or config
    size = spec.image_size or getattr(vision, "image_size", None) or getattr(config, "image_size", None) or _IMAGE
    height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
    channels = getattr(vision, "num_channels", None) or getattr(config, "num_channels", None) or 3
    target = int(spec.arguments.get("target_length", min(length, _target_limit(config) or length)))
    return Sizes(length, target, int(channels), height, width, config)


def batch_maker(fields: list[Field], extra: Mapping[str, Any]) -> BatchMaker:
    """Batches as Trainer hands them to the model: tensors by name."""

    def batch(batch_size: int, device: torch.device) -> dict[str, Any]:
        tensors = {
            field.name: torch.zeros((batch_size, *field.shape), dtype=field.dtype, device=device) for field in fields
        }
        return {**tensors, **extra}

    return batch


def _main_input(sizes: Sizes) -> list[Field]:
    """What the base class wants first."""
    name = getattr(sizes.config, "floodmark_input", "input_ids")
    makers = {"pixel_values": _images, "input_features": _spectrogram, "input_values": _sound}
    return makers.get(name, _tokens)(sizes)


def _longest(config: Any) -> int | None:
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _target_limit(config: Any) -> int | None:
    value = getattr(config, "max_target_positions", None)
    return value if isinstance(value, int) and value > 0 else None


def _first(config: Any, *names: str, default: int) -> int:
    return next((int(value) for name in names if isinstance(value := getattr(config, name, None), int)), default)
