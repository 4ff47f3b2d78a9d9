"""The options of ``floodmark estimate``. Standard library only: the help must come at once."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Final

from desktop_app.memory.training_spec import ATTENTION, CHECKPOINTING, PRECISIONS, SHARDING

RUNGS: Final = ("native", "shim", "meta")  # memory.tracing.stage.RUNGS, which needs torch
DEFAULT_RISK: Final = 0.05
_UNITS: Final = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
    "k": 2**10, "m": 2**20, "g": 2**30,
}  # fmt: skip
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_MOST: Final = 2**31 - 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is trained, on what card, and how the answer is given."""
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG.toml", help="a run (docs/guide/training.md)")
    _add_training(parser.add_argument_group("training"))
    _add_card(parser.add_argument_group("card"))
    _add_answer(parser.add_argument_group("answer"))


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """A training to hold against something else: the same options, the run by ``--config``."""
    group = parser.add_argument_group("a training to compare with")
    group.add_argument("--config", type=Path, metavar="CONFIG.toml", help="a run (docs/guide/training.md)")
    _add_training(group)
    _add_card(group)
    group.add_argument("--python", type=Path, metavar="PATH", help="the Python that has the model; needs torch")
    parser.set_defaults(risk=DEFAULT_RISK, no_levers=True, rung=None, time_limit=120.0)


def _add_training(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--model",
        metavar="SPEC",
        help="timm:NAME, transformers:NAME or a folder with config.json, python:FILE:FUNCTION, small-cnn or wide-mlp",
    )
    add("--model-arg", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="for the model's function")
    add("--batch", type=_count, metavar="N", help="samples of one micro-step; default 1, or what the run says")
    add("--accumulation", type=_count, metavar="N", help="micro-steps of one optimizer step")
    add("--precision", choices=PRECISIONS, help="bf16, fp16: autocast; pure: weights and all")
    add(
        "--optimizer", metavar="NAME", help="a class of torch.optim, adam8bit, adamw8bit; default the model's, or adamw"
    )
    add("--optimizer-arg", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="e.g. momentum=0.9")
    add("--foreach", action=argparse.BooleanOptionalAction, help="update all tensors at once; default as CUDA chooses")
    add("--fused", action=argparse.BooleanOptionalAction, help="the fused kernel of the optimizer")
    add("--grad-clip", type=_positive, metavar="NORM", help="clip the norm of the gradients")
    add("--keep-gradients", action="store_true", help="zero_grad(set_to_none=False)")
    add("--image-size", type=_count, metavar="N", help="pixels square")
    add("--sequence-length", type=_count, metavar="N", help="tokens")
    add("--classes", type=_count, metavar="N", help="classes of the head")
    add("--channels-last", action="store_true", help="memory format of convolutions")
    add("--checkpointing", choices=CHECKPOINTING, help="recompute activations of blocks")
    add("--attention", choices=ATTENTION, help="kernel of attention; default as CUDA chooses")
    add(
        "--freeze",
        action="append",
        default=[],
        metavar="PREFIX",
        help="parameters that are not trained; backbone: all but the head",
    )
    add("--lora", type=_count, metavar="RANK", help="adapters on linear layers, the rest frozen")
    add("--sharding", choices=SHARDING, help="ZeRO stage; zero3 is full sharding (FSDP)")
    add("--cards", type=_count, metavar="N", help="cards that share, with --sharding")
    add("--no-validation", action="store_true", help="no validation after the step")
    add("--saves", action="store_true", help="with a checkpoint after the step")
    add("--cudnn-benchmark", action="store_true", help="torch.backends.cudnn.benchmark is on")


def _add_card(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--gpu", metavar="CARD", help='a card of the catalogue, e.g. "RTX 4090"; default: the one that is here')
    add("--capacity-bytes", type=_capacity, metavar="N", help="memory of the card, e.g. 24GiB; then any name will do")
    add("--others-bytes", type=_size, metavar="N", help="held by other processes, e.g. 2GiB; default: what is used now")
    add("--alloc-conf", metavar="TEXT", help="allocator settings; default: PYTORCH_ALLOC_CONF of this shell")
    add("--context-bytes", type=_size, metavar="N", help="CUDA context, where it was read from the card")


def _add_answer(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--risk",
        type=_risk,
        default=DEFAULT_RISK,
        metavar="P",
        help="accepted probability that the largest batch does not fit; default 0.05",
    )
    add("--no-levers", action="store_true", help="do not look for what would lower the peak")
    add("--rung", choices=RUNGS, help="how to trace; default the best that works here")
    add("--python", type=Path, metavar="PATH", help="the Python, or its environment, that has the model; needs torch")
    add("--time-limit", type=_positive, default=120.0, metavar="S", help="seconds for one trace; default 120")
    add("--json", action="store_true", help="as JSON")


def parse_size(text: str) -> int:
    """``2GiB``, ``512 MiB``, ``2GB`` or plain bytes. Raises ``ValueError``."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a size; give bytes or a size such as 2GiB")
    size = int(float(match[1]) * _UNITS[match[2]]) if "." in match[1] else int(match[1]) * _UNITS[match[2]]
    if size > 1 << 62:
        raise ValueError(f"{text!r} is more than any card has")
    return size


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _capacity(text: str) -> int:
    size = _size(text)
    if size == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no memory at all; give what the card has, such as 24GiB")
    return size


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= _MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _positive(text: str) -> float:
    number = _number(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _risk(text: str) -> float:
    number = _number(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability between 0 and 1")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _pair(text: str) -> tuple[str, Any]:
    """``momentum=0.9``: the value as JSON where it is some, else as text."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    for word, meant in (("True", True), ("False", False), ("None", None)):
        if value == word:
            return name, meant
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
