"""How many well-known architectures can be traced, and on which rung of the ladder.

    python benchmarks/estimate_coverage.py [--python ENVIRONMENT] [--only WORD] [--time-limit S] [--rung meta]

40 architectures of transformers and 20 of timm, one training step each (forward, loss, backward, AdamW), fp32,
batch 2, sequences as ``floodmark estimate`` assumes them (at most 512 tokens). ``--python`` is an environment
with torch, timm and transformers. Covered is what is traced on one of the top two rungs (a visible card, or the
shim); at least 92 % must be. Each line: name, rung, seconds, live peak, values made up, or what stopped it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.training_spec import TrainingSpec

CARD = CardSpec("A100-SXM4-80GB", int(79.1 * GIB), int(79.3 * GIB), "Ampere", (8, 0), 108)
MUST_COVER = 0.92
TOP_RUNGS = ("native", "shim")
BATCH_SIZE = 2

TRANSFORMERS = (
    # encoders
    "bert-base-uncased",
    "bert-large-uncased",
    "roberta-base",
    "distilbert-base-uncased",
    "albert-base-v2",
    "electra-base-discriminator",
    "deberta-v3-base",
    "xlm-roberta-base",
    "modernbert-base",
    "longformer",
    "mpnet",
    # decoders
    "gpt2",
    "gpt-neo-125m",
    "gpt-j-6b",
    "pythia-410m",
    "opt-1.3b",
    "bloom-560m",
    "falcon-7b",
    "mpt-7b",
    "llama-3.1-8b",
    "mistral-7b",
    "mixtral-8x7b",
    "qwen2.5-0.5b",
    "phi-2",
    "gemma-2b",
    "mamba",
    # encoder and decoder
    "t5-base",
    "bart-base",
    "pegasus-large",
    "marian",
    # images
    "vit-base-patch16-224",
    "swin-tiny-patch4-window7-224",
    "convnext-tiny-224",
    "dinov2-base",
    "segformer",
    "detr",
    # images and words, speech
    "clip-vit-base-patch32",
    "siglip-base-patch16-224",
    "whisper-small",
    "wav2vec2-base",
)
TIMM = (
    "resnet50",
    "resnext50_32x4d",
    "seresnet50",
    "densenet121",
    "vgg16_bn",
    "mobilenetv3_large_100",
    "efficientnet_b0",
    "efficientnetv2_s",
    "regnety_032",
    "convnext_base",
    "inception_v3",
    "nfnet_f0",
    "vit_base_patch16_224",
    "deit_base_distilled_patch16_224",
    "swin_base_patch4_window7_224",
    "beit_base_patch16_224",
    "maxvit_tiny_tf_224",
    "cait_s24_224",
    "mixer_b16_224",
    "coatnet_0_rw_224",
)
# Mamba without its CUDA package runs token by token: 512 tokens are 100,000 ops and more.
CHANGES: Mapping[str, Mapping[str, Any]] = {"transformers:mamba": {"sequence_length": 64}}


def main() -> int:
    arguments = _arguments()
    models = [f"transformers:{name}" for name in TRANSFORMERS] + [f"timm:{name}" for name in TIMM]
    models = [model for model in models if arguments.only in model]
    covered = 0
    with TracerProcess(arguments.python, time_limit_s=arguments.time_limit) as tracer:
        for model in models:
            spec = TrainingSpec(model=model, batch_size=BATCH_SIZE, **CHANGES.get(model, {}))
            began = time.perf_counter()
            try:
                trace = tracer.trace(spec, CARD, rung=arguments.rung)
            except (TracerError, UntraceableError) as error:
                print(f"{model:46s} {'none':6s} {time.perf_counter() - began:6.1f} s  {error}", flush=True)
                continue
            covered += trace.rung in TOP_RUNGS
            print(_line(model, trace, seconds=time.perf_counter() - began), flush=True)
    share = covered / len(models)
    print(f"{covered} of {len(models)} on the top two rungs: {share:.1%} (at least {MUST_COVER:.0%})")
    return 0 if share >= MUST_COVER else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, default=None)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--time-limit", type=float, default=300.0, metavar="S")
    parser.add_argument("--rung", choices=("native", "shim", "meta"), default=None)
    return parser.parse_args()


def _line(model: str, trace: Trace, *, seconds: float) -> str:
    guesses = ", ".join(f"{op} {count}" for op, count in sorted(trace.guesses.items()))
    peak = live_peak_bytes(trace) / MIB
    return f"{model:46s} {trace.rung:6s} {seconds:6.1f} s  {peak:10,.0f} MiB  {guesses}".rstrip()


def live_peak_bytes(trace: Trace) -> int:
    """The most that is alive at once, as asked for."""
    sizes: dict[int, int] = {}
    live = peak = 0
    for event in trace.events:
        if event.key > 0:
            sizes[event.key] = event.size_bytes
            live += event.size_bytes
            peak = max(peak, live)
        else:
            live -= sizes.pop(-event.key, 0)
    return peak


if __name__ == "__main__":
    sys.exit(main())
