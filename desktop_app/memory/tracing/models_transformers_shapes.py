"""Shapes of well-known checkpoints: what their ``config.json`` says and the size of a training depends on.

Facts, read from the files of these names on huggingface.co; nothing else of them is here. What a line leaves out is
the default of the configuration class in ``transformers``, which is that checkpoint's own value or has no influence
on memory (dropout rates that are not zero, frequencies of positions, ids of tokens).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Checkpoint(NamedTuple):
    """A kind of model in ``transformers`` (``config.model_type``) and how it differs from the class's defaults."""

    kind: str
    values: dict[str, Any]
    task: str = ""  # "": by the kind


def _bert(hidden: int, layers: int, **others: Any) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 64,
        "intermediate_size": 4 * hidden,
        **others,
    }


def _llama(  # the order of the columns below
    hidden: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int, *, tied: bool = False, **others: Any
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        **others,
    }


def _gpt2(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {"n_embd": width, "n_layer": layers, "n_head": heads}


def _t5(width: int, layers: int, heads: int, inner: int, **others: Any) -> dict[str, Any]:
    return {"d_model": width, "num_layers": layers, "num_heads": heads, "d_ff": inner, "vocab_size": 32128, **others}


def _both(width: int, layers: int, heads: int, **others: Any) -> dict[str, Any]:
    """Encoder and decoder alike: BART, Whisper."""
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", layers), ("attention_heads", heads), ("ffn_dim", 4 * width))
    }
    return {"d_model": width, **sides, **others}


def _neox(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "vocab_size": 50304,
        "max_position_embeddings": 2048,
    }


_ROBERTA: Final = {"max_position_embeddings": 514, "type_vocab_size": 1}
_GATED: Final = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
_PEGASUS: Final = {"vocab_size": 96103, "max_position_embeddings": 1024}

CHECKPOINTS: Final[dict[str, Checkpoint]] = {
    # encoders
    "bert-base-uncased": Checkpoint("bert", _bert(768, 12, vocab_size=30522)),
    "bert-base-cased": Checkpoint("bert", _bert(768, 12, vocab_size=28996)),
    "bert-large-uncased": Checkpoint("bert", _bert(1024, 24, vocab_size=30522)),
    "bert-base-multilingual-cased": Checkpoint("bert", _bert(768, 12, vocab_size=119547)),
    "roberta-base": Checkpoint("roberta", _bert(768, 12, vocab_size=50265, **_ROBERTA)),
    "roberta-large": Checkpoint("roberta", _bert(1024, 24, vocab_size=50265, **_ROBERTA)),
    "xlm-roberta-base": Checkpoint("xlm-roberta", _bert(768, 12, vocab_size=250002, **_ROBERTA)),
    "xlm-roberta-large": Checkpoint("xlm-roberta", _bert(1024, 24, vocab_size=250002, **_ROBERTA)),
    "distilbert-base-uncased": Checkpoint("distilbert", {"vocab_size": 30522}),
    "albert-base-v2": Checkpoint(
        "albert",
        _bert(768, 12, vocab_size=30000, embedding_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    ),
    "electra-base-discriminator": Checkpoint("electra", _bert(768, 12, vocab_size=30522, embedding_size=768)),
    "deberta-v3-base": Checkpoint(
        "deberta-v2",
        _bert(
            768,
            12,
            vocab_size=128100,
            relative_attention=True,
            position_buckets=256,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            type_vocab_size=0,
            position_biased_input=False,
        ),
    ),
    "modernbert-base": Checkpoint(
        "modernbert",
        {"hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152},
    ),
    # decoders
    "gpt2": Checkpoint("gpt2", _gpt2(768, 12, 12)),
    "distilgpt2": Checkpoint("gpt2", _gpt2(768, 6, 12)),
    "gpt2-medium": Checkpoint("gpt2", _gpt2(1024, 24, 16)),
    "gpt2-large": Checkpoint("gpt2", _gpt2(1280, 36, 20)),
    "gpt2-xl": Checkpoint("gpt2", _gpt2(1600, 48, 25)),
    "gpt-neo-125m": Checkpoint(
        "gpt_neo",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]},
    ),
    "gpt-j-6b": Checkpoint("gptj", {}),
    "pythia-160m": Checkpoint("gpt_neox", _neox(768, 12, 12)),
    "pythia-410m": Checkpoint("gpt_neox", _neox(1024, 24, 16)),
    "pythia-1.4b": Checkpoint("gpt_neox", _neox(2048, 24, 16)),
    "pythia-6.9b": Checkpoint("gpt_neox", {**_neox(4096, 32, 32), "vocab_size": 50432}),
    "opt-125m": Checkpoint("opt", {}),
    "opt-1.3b": Checkpoint(
        "opt",
        {
            "hidden_size": 2048,
            "ffn_dim": 8192,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "word_embed_proj_dim": 2048,
        },
    ),
    "opt-6.7b": Checkpoint(
        "opt",
        {
            "hidden_size": 4096,
            "ffn_dim": 16384,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "word_embed_proj_dim": 4096,
        },
    ),
    "bloom-560m": Checkpoint("bloom", {"hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880}),
    "falcon-7b": Checkpoint(
        "falcon",
        {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024, "bias": False},
    ),
    "mpt-7b": Checkpoint("mpt", {"d_model": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": 50432}),
    "llama-2-7b": Checkpoint("llama", _llama(4096, 11008, 32, 32, 32, 32000, max_position_embeddings=4096)),
    "llama-2-13b": Checkpoint("llama", _llama(5120, 13824, 40, 40, 40, 32000, max_position_embeddings=4096)),
    "llama-3-8b": Checkpoint("llama", _llama(4096, 14336, 32, 32, 8, 128256, max_position_embeddings=8192)),
    "llama-3.1-8b": Checkpoint("llama", _llama(4096, 14336, 32, 32, 8, 128256, max_position_embeddings=131072)),
    "llama-3.1-70b": Checkpoint("llama", _llama(8192, 28672, 80, 64, 8, 128256, max_position_embeddings=131072)),
    "llama-3.2-1b": Checkpoint(
        "llama", _llama(2048, 8192, 16, 32, 8, 128256, tied=True, head_dim=64, max_position_embeddings=131072)
    ),
    "llama-3.2-3b": Checkpoint(
        "llama", _llama(3072, 8192, 28, 24, 8, 128256, tied=True, head_dim=128, max_position_embeddings=131072)
    ),
    "tinyllama-1.1b": Checkpoint("llama", _llama(2048, 5632, 22, 32, 4, 32000)),
    "smollm2-135m": Checkpoint("llama", _llama(576, 1536, 30, 9, 3, 49152, tied=True, max_position_embeddings=8192)),
    "mistral-7b": Checkpoint("mistral", _llama(4096, 14336, 32, 32, 8, 32000)),
    "mistral-7b-v0.1": Checkpoint("mistral", _llama(4096, 14336, 32, 32, 8, 32000)),
    "mistral-7b-v0.3": Checkpoint("mistral", _llama(4096, 14336, 32, 32, 8, 32768, sliding_window=None)),
    "mixtral-8x7b": Checkpoint("mixtral", _llama(4096, 14336, 32, 32, 8, 32000, num_local_experts=8)),
    "qwen2.5-0.5b": Checkpoint("qwen2", _llama(896, 4864, 24, 14, 2, 151936, tied=True)),
    "qwen2.5-1.5b": Checkpoint("qwen2", _llama(1536, 8960, 28, 12, 2, 151936, tied=True)),
    "qwen2.5-3b": Checkpoint("qwen2", _llama(2048, 11008, 36, 16, 2, 151936, tied=True)),
    "qwen2.5-7b": Checkpoint("qwen2", _llama(3584, 18944, 28, 28, 4, 152064)),
    "qwen3-0.6b": Checkpoint("qwen3", _llama(1024, 3072, 28, 16, 8, 151936, tied=True, head_dim=128)),
    "qwen3-8b": Checkpoint("qwen3", _llama(4096, 12288, 36, 32, 8, 151936, head_dim=128)),
    "phi-1.5": Checkpoint("phi", _llama(2048, 8192, 24, 32, 32, 51200, partial_rotary_factor=0.5)),
    "phi-2": Checkpoint("phi", _llama(2560, 10240, 32, 32, 32, 51200, partial_rotary_factor=0.4)),
    "phi-3-mini": Checkpoint("phi3", _llama(3072, 8192, 32, 32, 32, 32064, max_position_embeddings=4096)),
    "gemma-2b": Checkpoint("gemma", _llama(2048, 16384, 18, 8, 1, 256000, tied=True, head_dim=256)),
    "gemma-7b": Checkpoint("gemma", _llama(3072, 24576, 28, 16, 16, 256000, tied=True, head_dim=256)),
    "gemma-2-2b": Checkpoint("gemma2", _llama(2304, 9216, 26, 8, 4, 256000, tied=True, head_dim=256)),
    "starcoder2-3b": Checkpoint("starcoder2", _llama(3072, 12288, 30, 24, 2, 49152, tied=True)),
    # encoder and decoder
    "t5-small": Checkpoint("t5", _t5(512, 6, 8, 2048)),
    "t5-base": Checkpoint("t5", _t5(768, 12, 12, 3072)),
    "t5-large": Checkpoint("t5", _t5(1024, 24, 16, 4096)),
    "flan-t5-base": Checkpoint("t5", _t5(768, 12, 12, 2048, **_GATED)),
    "mt5-small": Checkpoint("mt5", _t5(512, 8, 6, 1024, **_GATED) | {"vocab_size": 250112}),
    "bart-base": Checkpoint("bart", _both(768, 6, 12, vocab_size=50265)),
    "bart-large": Checkpoint("bart", _both(1024, 12, 16, vocab_size=50265)),
    "pegasus-large": Checkpoint("pegasus", _both(1024, 16, 16, **_PEGASUS)),
    "mbart-large-50": Checkpoint("mbart", _both(1024, 12, 16, vocab_size=250054)),
    # images
    "vit-base-patch16-224": Checkpoint("vit", _bert(768, 12)),
    "vit-large-patch16-224": Checkpoint("vit", _bert(1024, 24)),
    "deit-base-patch16-224": Checkpoint("deit", _bert(768, 12)),
    "beit-base-patch16-224": Checkpoint(
        "beit", _bert(768, 12, use_relative_position_bias=True, layer_scale_init_value=0.1)
    ),
    "swin-tiny-patch4-window7-224": Checkpoint("swin", {"embed_dim": 96, "depths": [2, 2, 6, 2]}),
    "swin-base-patch4-window7-224": Checkpoint(
        "swin", {"embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}
    ),
    "convnext-tiny-224": Checkpoint("convnext", {}),
    "resnet-50": Checkpoint("resnet", {}),
    "dinov2-base": Checkpoint(
        "dinov2", _bert(768, 12) | {"intermediate_size": None, "image_size": 518, "patch_size": 14}
    ),
    # images and words
    "clip-vit-base-patch32": Checkpoint("clip", {}),
    "clip-vit-large-patch14": Checkpoint(
        "clip",
        {
            "projection_dim": 768,
            "text_config": _bert(768, 12),
            "vision_config": _bert(1024, 24, patch_size=14),
        },
    ),
    "siglip-base-patch16-224": Checkpoint("siglip", {"text_config": _bert(768, 12), "vision_config": _bert(768, 12)}),
    # speech
    "whisper-tiny": Checkpoint("whisper", _both(384, 4, 6, vocab_size=51865)),
    "whisper-base": Checkpoint("whisper", _both(512, 6, 8, vocab_size=51865)),
    "whisper-small": Checkpoint("whisper", _both(768, 12, 12, vocab_size=51865)),
    "whisper-medium": Checkpoint("whisper", _both(1024, 24, 16, vocab_size=51865)),
    "whisper-large-v3": Checkpoint("whisper", _both(1280, 32, 20, vocab_size=51866, num_mel_bins=128)),
    "wav2vec2-base": Checkpoint("wav2vec2", {}),
    "hubert-base": Checkpoint("hubert", {}),
}
ALIASES: Final = {
    "bert": "bert-base-uncased",
    "distilbert": "distilbert-base-uncased",
    "clip": "clip-vit-base-patch32",
}


def checkpoint_named(name: str) -> Checkpoint | None:
    """The checkpoint of this name, with or without its owner (``meta-llama/Llama-3.1-8B``), in any case."""
    plain = name.rpartition("/")[2].lower()
    plain = plain.removesuffix("-hf").removesuffix("-instruct").removesuffix("-it")
    return CHECKPOINTS.get(ALIASES.get(plain, plain))
