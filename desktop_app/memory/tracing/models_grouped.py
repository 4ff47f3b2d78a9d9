"""The experts of a mixture in fp32 and fp16: CUDA multiplies them, torch's rule for shapes only knows bf16."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

_RULE: Final = "_meta_grouped_mm_common"
_MARK: Final = "_knows_all_dtypes"
_MULTIPLIED_TOO: Final = (torch.float32, torch.float16)


def teach_grouped_products() -> None:
    """Let ``grouped_mm`` have a shape in every dtype that it is computed in. Once per process.

    WORKAROUND(torch, <= 2.14): ATen/native/GroupedMMUtils.h admits fp32 and fp16, group by group and without a
    temporary (``_grouped_mm_fallback``); ``_meta_registrations`` refuses them.
    """
    import torch._meta_registrations as rules

    rule = getattr(rules, _RULE, None)
    if rule is None or hasattr(rule, _MARK):
        return

    @functools.wraps(rule)
    def shape(mat_a: Any, mat_b: Any, *args: Any, **kwargs: Any) -> Any:
        if mat_a.dtype not in _MULTIPLIED_TOO or mat_b.dtype != mat_a.dtype:
            return rule(mat_a, mat_b, *args, **kwargs)
        made = rule(mat_a.to(torch.bfloat16), mat_b.to(torch.bfloat16), *args, **{**kwargs, "out_dtype": None})
        return made.to(kwargs.get("out_dtype") or mat_a.dtype)

    setattr(shape, _MARK, True)
    setattr(rules, _RULE, shape)
