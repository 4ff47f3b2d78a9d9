"""What to do about an alert: the one thing to do first, and what to look for and change in the training."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Cause
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP

# Read by PyTorch when it starts (docs.pytorch.org, "CUDA semantics"); the name until 2.8 was PYTORCH_CUDA_ALLOC_CONF,
# which later versions still read.
ALLOCATOR_SETTING: Final = "PYTORCH_ALLOC_CONF=expandable_segments:True"

_BY_CAUSE: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP(
        "Outlook",
        "Adam and AdamW keep two numbers for every parameter and make them in the first step. A smaller network, SGD, "
        "an 8-bit Adam, or an update without foreach needs less. A smaller batch helps only when activations are the "
        "larger part.",
    ),
    Cause.BATCH_SHAPE: QT_TRANSLATE_NOOP(
        "Outlook",
        "Activations grow with the samples, tokens or pixels of a batch, and one batch of the data is larger than the "
        "others. Cut or split the longest samples, sort them by length so that batches hold as many tokens each, or "
        "take fewer samples and accumulate.",
    ),
    Cause.LEAK: QT_TRANSLATE_NOOP(
        "Outlook",
        "Something keeps a tensor of every step. Look for a list or a running total that takes the loss itself: "
        "total += loss keeps the whole graph, total += loss.item() keeps a number. "
        "Smaller batches only move the day.",
    ),
    Cause.FRAGMENTATION: QT_TRANSLATE_NOOP(
        "Outlook",
        "What is free lies in pieces, and none is large enough. Expandable segments join them: set the variable below "
        "before the program starts. Batches of equal shape help too, and so does leaving max_split_size_mb alone.",
    ),
    Cause.NEIGHBOUR: QT_TRANSLATE_NOOP(
        "Outlook",
        "Memory that another process takes is not there for this run. End it, move one of the two to another card, or "
        "let this run pause until it is over. A second training of your own counts as well.",
    ),
    Cause.VALIDATION: QT_TRANSLATE_NOOP(
        "Outlook",
        "Validation comes on top of what training holds. Run it under torch.inference_mode(), add up numbers and not "
        "tensors, move kept outputs to the CPU, and take a smaller validation batch.",
    ),
    Cause.CHECKPOINT_SAVE: QT_TRANSLATE_NOOP(
        "Outlook",
        "A copy of the state on the card doubles it for a moment. Copy tensor by tensor to main memory before saving, "
        "keep moving averages there too, and let go of the copy when it is written.",
    ),
    Cause.RESUME: QT_TRANSLATE_NOOP(
        "Outlook",
        "A checkpoint that is loaded onto the card lies there beside the model. Load it with map_location='cpu', load "
        "the state, then delete the checkpoint before the first step.",
    ),
    Cause.OUTSIDE_ALLOCATOR: QT_TRANSLATE_NOOP(
        "Outlook",
        "Context, cuDNN and cuBLAS workspaces, compiled kernels and communication buffers lie outside PyTorch's "
        "allocator. Keep shapes constant, switch torch.backends.cudnn.benchmark off, limit NCCL's buffers, or leave "
        "them room with torch.cuda.set_per_process_memory_fraction().",
    ),
    Cause.HOST_MEMORY: QT_TRANSLATE_NOOP(
        "Outlook",
        "This is the computer's memory, not the card's. Fewer loader workers, no growing Python lists in the data set "
        "(arrays are shared, lists are copied by every worker), and no cache of decoded samples.",
    ),
    Cause.SPILL: QT_TRANSLATE_NOOP(
        "Outlook",
        "On Windows and WSL the driver moves what does not fit into main memory. Take a smaller batch, or set "
        "'CUDA - Sysmem Fallback Policy' to 'Prefer No Sysmem Fallback' in the NVIDIA control panel: then there is "
        "an error instead.",
    ),
}
# The code of ``core.forecasts.ACTIONS`` as one sentence.
_BY_ACTION: Final = {
    "save_and_pause": QT_TRANSLATE_NOOP("Outlook", "Save what is learnt and pause."),
    "pause": QT_TRANSLATE_NOOP("Outlook", "Pause before the call that cannot succeed."),
    "reduce_batch": QT_TRANSLATE_NOOP("Outlook", "Shrink the micro-batch; accumulation keeps the batch as large."),
    "split_batch": QT_TRANSLATE_NOOP("Outlook", "Cut or split the longest batch."),
    "find_leak": QT_TRANSLATE_NOOP("Outlook", "Draw one step and see who keeps memory."),
    "expandable_segments": QT_TRANSLATE_NOOP("Outlook", "Save, then start again with expandable segments."),
    "close_neighbour": QT_TRANSLATE_NOOP("Outlook", "End the other process or move it to another card."),
    "smaller_validation_batch": QT_TRANSLATE_NOOP("Outlook", "Take a smaller batch for the validation."),
    "no_grad_validation": QT_TRANSLATE_NOOP("Outlook", "Validate without a graph and keep no outputs on the card."),
    "save_to_host": QT_TRANSLATE_NOOP("Outlook", "Copy the state to main memory before it is saved."),
    "load_to_host": QT_TRANSLATE_NOOP("Outlook", "Load the checkpoint into main memory and let go of it."),
    "free_outside": QT_TRANSLATE_NOOP("Outlook", "Limit what cuDNN, compilers and communication take."),
    "fewer_workers": QT_TRANSLATE_NOOP("Outlook", "Take fewer loader workers."),
    "free_host_memory": QT_TRANSLATE_NOOP("Outlook", "Free main memory: close programs or caches."),
    "leave_room": QT_TRANSLATE_NOOP("Outlook", "Use less than the card holds: a smaller micro-batch."),
}


def for_cause(cause: Cause) -> str:
    """What to look for and what to change."""
    return QCoreApplication.translate("Outlook", _BY_CAUSE[cause])


def for_action(action: str) -> str:
    """The recommended action as a sentence; empty for a code that is not known."""
    words = _BY_ACTION.get(action)
    return "" if words is None else QCoreApplication.translate("Outlook", words)


def code_for(cause: Cause | str | None) -> str:
    """A line to copy where one is the remedy; empty where there is none."""
    return ALLOCATOR_SETTING if cause == Cause.FRAGMENTATION.value else ""


def before_the_start() -> str:
    """What stands over the line to copy."""
    return QCoreApplication.translate("Outlook", "Set before the program starts:")
