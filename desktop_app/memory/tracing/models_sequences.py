"""Full sequences, told to transformers: it reads masks to learn that, and does not where it sees fake tensors."""

from __future__ import annotations

import importlib
from typing import Any, Final

# Read from transformers 5 (masking_utils.py, utils/import_utils.py): with rows that are one whole sequence each
# ``sdpa`` gets no mask and ``is_causal``, which is what the flash kernel needs. For a fake tensor it builds the mask.
_TRUTHS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("transformers.utils.import_utils", "is_fake_tensor", lambda *_: False),
    ("transformers.masking_utils", "fast_all", lambda *_: True),
    ("transformers.masking_utils", "find_packed_sequence_indices", lambda *_, **__: None),
)


def know_full_sequences() -> None:
    """Answer for the batches of a trace: nothing is padded, nothing packed. For the rest of the process; old versions,
    that ask something else, are left alone."""
    for module_name, name, answer in _TRUTHS:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        if hasattr(module, name):
            setattr(module, name, answer)
