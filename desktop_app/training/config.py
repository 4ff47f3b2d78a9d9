"""What a run is made of: one typed, validated table that files, forms and the command line share."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from desktop_app.core.errors import ConfigError

_T = TypeVar("_T")
_DEVICE_PATTERN: Final = re.compile(r"auto|cpu|simulated|cuda|cuda:\d{1,3}")
# Control characters and lone surrogates: neither a TOML file nor a title can hold them.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# A hand-written run file is a few hundred bytes. tomllib's time grows with the square of a dotted key's length: one of
# 64 KiB took 18 s, one of 16 KiB takes 1 s.
_MAX_FILE_BYTES: Final = 16 << 10
_TOO_MANY_DIGITS: Final = "a number with too many digits"


class FieldKind(StrEnum):
    """What a form shows for a field."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    PATH = "path"  # a builtin name from ``choices`` or a folder
    DEVICE = "device"


class FieldGroup(StrEnum):
    """The section of a form that a field belongs to."""

    RUN = "run"
    DATA = "data"
    MODEL = "model"
    OPTIMIZATION = "optimization"
    DEVICE = "device"
    CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One field of ``RunConfig`` for forms and messages. Limits are inclusive; ``unit`` is empty for plain numbers."""

    name: str
    kind: FieldKind
    default: object
    group: FieldGroup
    optional: bool = False  # None is allowed and means "not set"
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    advanced: bool = False  # a form may fold it away

    @property
    def expected(self) -> str:
        """What the field takes, in words for an error line."""
        words = {
            FieldKind.TEXT: "text",
            FieldKind.INTEGER: "a whole number",
            FieldKind.NUMBER: "a number",
            FieldKind.FLAG: "true or false",
            FieldKind.CHOICE: "one of " + ", ".join(self.choices),
            FieldKind.PATH: f"{', '.join(self.choices)} or a folder" if self.choices else "a folder",
            FieldKind.DEVICE: "auto, cpu, simulated, cuda or cuda:N",
        }[self.kind]
        if self.minimum is not None and self.maximum is not None:
            words += f" from {_plain(self.minimum)} to {_plain(self.maximum)}"
        return words


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


def _setting(kind: FieldKind, group: FieldGroup, *, default: _T, **details: Any) -> _T:
    """A dataclass field that carries its own row of ``FIELDS``."""
    return dataclasses.field(default=default, metadata={"kind": kind, "group": group, **details})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One run. Every value is checked when the object is made: ``ConfigError`` names the field and what it takes."""

    recipe: str = _setting(FieldKind.CHOICE, FieldGroup.DATA, default="image-folder", choices=("image-folder",))
    """What is learnt from what."""
    name: str = _setting(FieldKind.TEXT, FieldGroup.RUN, default="")
    """Shown in lists and titles; empty: made from recipe and data."""
    data: str = _setting(FieldKind.PATH, FieldGroup.DATA, default="cats-dogs", choices=("cats-dogs",))
    """A builtin data set or a folder of class folders."""
    validation_fraction: float = _setting(FieldKind.NUMBER, FieldGroup.DATA, default=0.2, minimum=0.01, maximum=0.9)
    """Share of each class that is kept for validation."""
    augment: bool = _setting(FieldKind.FLAG, FieldGroup.DATA, default=True)
    """Mirror and shift training images by chance."""
    image_size: int = _setting(FieldKind.INTEGER, FieldGroup.DATA, default=28, minimum=8, maximum=2048, unit="px")
    """Images are resized to this many pixels square."""
    channels: str = _setting(
        FieldKind.CHOICE, FieldGroup.DATA, default="auto", choices=("auto", "gray", "rgb"), advanced=True
    )
    """Grey or colour; auto: colour as soon as the first images of a class have some."""
    model: str = _setting(FieldKind.CHOICE, FieldGroup.MODEL, default="small-cnn", choices=("small-cnn", "wide-mlp"))
    """Network that is trained."""
    width: int = _setting(FieldKind.INTEGER, FieldGroup.MODEL, default=16, minimum=4, maximum=2048)
    """Channels of the first convolution of small-cnn; deeper ones have 2 and 4 times as many."""
    hidden: int = _setting(FieldKind.INTEGER, FieldGroup.MODEL, default=128, minimum=4, maximum=65536)
    """Units of the hidden layers (small-cnn: of its head)."""
    depth: int = _setting(FieldKind.INTEGER, FieldGroup.MODEL, default=2, minimum=1, maximum=64, advanced=True)
    """Hidden layers of wide-mlp."""
    batch_size: int = _setting(FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=64, minimum=1, maximum=65536)
    """Samples of one micro-step: what memory sees."""
    accumulation: int = _setting(FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=1, minimum=1, maximum=1024)
    """Micro-steps whose gradients are summed for one optimizer step."""
    epochs: int = _setting(FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=10, minimum=1, maximum=1_000_000)
    """Passes over the training data."""
    optimizer: str = _setting(
        FieldKind.CHOICE, FieldGroup.OPTIMIZATION, default="adamw", choices=("adamw", "adam", "sgd")
    )
    """Update rule."""
    foreach: bool = _setting(FieldKind.FLAG, FieldGroup.OPTIMIZATION, default=True, advanced=True)
    """Update all tensors at once: faster on a GPU, with temporaries about as large as the parameters."""
    learning_rate: float = _setting(
        FieldKind.NUMBER, FieldGroup.OPTIMIZATION, default=3e-3, minimum=1e-9, maximum=100.0
    )
    """Highest learning rate of the schedule."""
    weight_decay: float = _setting(FieldKind.NUMBER, FieldGroup.OPTIMIZATION, default=1e-2, minimum=0.0, maximum=10.0)
    """Decay of the weights per step and learning rate."""
    momentum: float = _setting(
        FieldKind.NUMBER, FieldGroup.OPTIMIZATION, default=0.9, minimum=0.0, maximum=0.9999, advanced=True
    )
    """Momentum of sgd; 0 keeps no state."""
    schedule: str = _setting(
        FieldKind.CHOICE,
        FieldGroup.OPTIMIZATION,
        default="cosine",
        choices=("cosine", "constant", "linear", "one-cycle"),
    )
    """How the learning rate falls to one hundredth over the horizon; it stays there afterwards."""
    schedule_epochs: int | None = _setting(
        FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=None, minimum=1, maximum=1_000_000, advanced=True
    )
    """Horizon of the schedule; not set: the whole run."""
    warmup_steps: int = _setting(FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=20, minimum=0, maximum=1_000_000)
    """Steps over which the learning rate rises from nought."""
    precision: str = _setting(FieldKind.CHOICE, FieldGroup.OPTIMIZATION, default="fp32", choices=("fp32", "bf16"))
    """bf16: forward and loss under autocast; weights stay fp32."""
    grad_clip: float = _setting(FieldKind.NUMBER, FieldGroup.OPTIMIZATION, default=1.0, minimum=0.0, maximum=1e6)
    """Largest norm of the gradient; 0: no clipping."""
    early_stop_epochs: int | None = _setting(
        FieldKind.INTEGER, FieldGroup.OPTIMIZATION, default=None, minimum=1, maximum=1_000_000
    )
    """Stop after this many epochs without a better accuracy."""
    max_seconds: float | None = _setting(
        FieldKind.NUMBER, FieldGroup.RUN, default=None, minimum=0.1, maximum=31_536_000.0, unit="s", advanced=True
    )
    """Finish after this time of training."""
    max_steps_per_s: float | None = _setting(
        FieldKind.NUMBER, FieldGroup.RUN, default=None, minimum=0.01, maximum=1e6, unit="steps/s", advanced=True
    )
    """Pace for demonstrations: no more optimizer steps per second than this."""
    log_every_steps: int | None = _setting(
        FieldKind.INTEGER, FieldGroup.RUN, default=None, minimum=1, maximum=1_000_000, unit="steps", advanced=True
    )
    """Read the loss from the device every so many steps; not set: five times a second."""
    seed: int = _setting(FieldKind.INTEGER, FieldGroup.RUN, default=0, minimum=0, maximum=2**31 - 1)
    """Everything random follows from it."""
    device: str = _setting(FieldKind.DEVICE, FieldGroup.DEVICE, default="auto")
    """Where it runs: auto, cuda:N, simulated (a simulated card, computed by the CPU), cpu."""
    card: str | None = _setting(FieldKind.TEXT, FieldGroup.DEVICE, default=None)
    """Catalogue name of the simulated card."""
    cpu_threads: int | None = _setting(
        FieldKind.INTEGER, FieldGroup.DEVICE, default=None, minimum=1, maximum=1024, advanced=True
    )
    """Threads of torch on the CPU; not set: one core is left to the window."""
    output_dir: str | None = _setting(FieldKind.PATH, FieldGroup.CHECKPOINTS, default=None)
    """Where checkpoints go; not set: into the session folder."""
    checkpoint_every_epochs: int = _setting(
        FieldKind.INTEGER, FieldGroup.CHECKPOINTS, default=1, minimum=0, maximum=1_000_000, unit="epochs"
    )
    """0: only on request and at the end."""
    on_alert: str = _setting(
        FieldKind.CHOICE,
        FieldGroup.CHECKPOINTS,
        default="notify",
        choices=("notify", "pause", "save", "save_and_pause", "shrink", "stop"),
    )
    """What to do when memory is forecast to run out; shrink: a smaller micro-batch, the same effective batch."""
    on_oom: str = _setting(FieldKind.CHOICE, FieldGroup.CHECKPOINTS, default="end", choices=("end", "shrink"))
    """What to do when memory has run out; shrink: go on from the last good step with a smaller micro-batch."""

    def __post_init__(self) -> None:
        for spec in FIELDS:
            checked = _checked(getattr(self, spec.name), spec)
            object.__setattr__(self, spec.name, checked)

    @property
    def effective_batch(self) -> int:
        """Samples of one optimizer step."""
        return self.batch_size * self.accumulation

    @property
    def title(self) -> str:
        """The name, or one made from model and data."""
        return self.name or f"{self.model} on {Path(self.data).name or self.data}"


FIELDS: Final[tuple[FieldSpec, ...]] = tuple(
    FieldSpec(
        name=field.name, default=field.default, optional=cast("str", field.type).endswith("None"), **field.metadata
    )
    for field in dataclasses.fields(RunConfig)
)
_SPECS: Final[Mapping[str, FieldSpec]] = {spec.name: spec for spec in FIELDS}


def field_spec(name: str) -> FieldSpec:
    """The row of ``FIELDS`` with that name; ``KeyError`` when there is none."""
    return _SPECS[name]


def _checked(value: object, spec: FieldSpec) -> object:
    """The value with its exact type; ``ConfigError`` when it is not one the field takes."""
    if value is None:
        if spec.optional:
            return None
        raise _wrong("config.type", spec, value)
    if spec.kind is FieldKind.FLAG:
        if isinstance(value, bool):
            return value
        raise _wrong("config.type", spec, value)
    if spec.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        return _checked_number(value, spec)
    return _checked_text(value, spec)


def _checked_number(value: object, spec: FieldSpec) -> int | float:
    kinds = (int,) if spec.kind is FieldKind.INTEGER else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise _wrong("config.type", spec, value)
    assert isinstance(value, int | float)
    assert spec.minimum is not None
    assert spec.maximum is not None
    if not spec.minimum <= value <= spec.maximum:  # NaN fails too
        raise _wrong("config.range", spec, value)
    return value if spec.kind is FieldKind.INTEGER else float(value)


def _checked_text(value: object, spec: FieldSpec) -> str:
    if not isinstance(value, str):
        raise _wrong("config.type", spec, value)
    if _UNWRITABLE.search(value):
        raise _wrong("config.value", spec, value)
    if spec.kind is FieldKind.CHOICE and value not in spec.choices:
        raise _wrong("config.choice", spec, value)
    if spec.kind is FieldKind.DEVICE and not _DEVICE_PATTERN.fullmatch(value):
        raise _wrong("config.choice", spec, value)
    if spec.kind is FieldKind.PATH and not value.strip():
        raise _wrong("config.value", spec, value)
    return value


def _wrong(code: str, spec: FieldSpec, value: object) -> ConfigError:
    params: dict[str, object] = {
        "field": spec.name,
        "value": value,
        "expected": spec.expected,
        "choices": spec.choices,
        "minimum": spec.minimum,
        "maximum": spec.maximum,
    }
    close = difflib.get_close_matches(value, spec.choices, n=1) if isinstance(value, str) else []
    hint = f" (did you mean {close[0]}?)" if close else ""
    return ConfigError(code, f"{spec.name} takes {spec.expected}, not {_shown(value)}{hint}", params=params)


def _shown(value: object) -> str:
    """A value short enough for one line, as TOML would write it where it can."""
    if value is None:
        return "nothing"
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # Python writes no more than 4,300 digits, and TOML's hexadecimal numbers may have more
        return _TOO_MANY_DIGITS
    return text if len(text) <= 60 else text[:57] + "..."


def config_from_mapping(values: Mapping[str, object]) -> RunConfig:
    """A config from plain values. ``ConfigError`` on the first unknown name or wrong value."""
    for name in values:
        if name not in _SPECS:
            close = difflib.get_close_matches(name, _SPECS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(
                "config.unknown_field",
                f"unknown setting {_shown(name)}{hint}",
                params={"field": name, "nearest": close[0] if close else None},
            )
    return RunConfig(**cast("dict[str, Any]", values))


def load_config(path: Path) -> RunConfig:
    """Read a run from a TOML file. Relative folders in it start from the file's own folder.

    Raises ``ConfigError`` with one line: the file, what is wrong in it, and what it takes.
    """
    try:
        config = config_from_mapping(_read_toml(path))
    except ConfigError as error:
        raise ConfigError(error.code, f"{path}: {error.message}", params={**error.params, "file": str(path)}) from None
    changes = {
        name: str(path.parent / folder)
        for name in ("data", "output_dir")
        if (folder := getattr(config, name)) and folder not in _SPECS[name].choices and not folder.startswith("~")
    }
    return dataclasses.replace(config, **cast("dict[str, Any]", changes))


def _read_toml(path: Path) -> dict[str, object]:
    try:
        if path.is_dir():
            raise ConfigError("config.unreadable", "this is a folder; give the TOML file of a run")
        if path.exists() and not path.is_file():  # a pipe or a device may have no end
            raise ConfigError("config.unreadable", "not a regular file; give the TOML file of a run")
        with path.open("rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigError("config.unreadable", "far too large for a run file; give a TOML file of settings")
        return tomllib.loads(content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError("config.unreadable", "no such file; check the path") from None
    except UnicodeDecodeError as error:
        raise ConfigError("config.malformed", f"not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("config.malformed", f"not valid TOML: {_one_line(error)}") from None
    except RecursionError:
        raise ConfigError("config.malformed", "not valid TOML: nested too deeply") from None
    except ValueError:  # the one that tomllib lets through is Python's limit of digits
        raise ConfigError("config.malformed", f"not valid TOML: {_TOO_MANY_DIGITS}") from None
    except OSError as error:
        raise ConfigError("config.unreadable", f"cannot be read: {error.strerror or error}") from None


def _one_line(error: Exception) -> str:
    line = " ".join(str(error).split())
    return line if len(line) <= 200 else line[:197] + "..."  # it may quote a key


def config_to_toml(config: RunConfig) -> str:
    """The TOML text that reads back as the same config. Fields that are not set are left out."""
    lines = [
        f"{spec.name} = {_toml_value(value)}" for spec in FIELDS if (value := getattr(config, spec.name)) is not None
    ]
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, float):
        assert math.isfinite(value)
        return repr(value) if any(mark in repr(value) for mark in ".e") else f"{value!r}.0"
    return str(value)
