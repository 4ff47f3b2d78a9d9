"""Words for other people's out-of-memory messages: what was full, why, whose memory it was, and what to change."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.services.oom_explanation import Backend, Explanation, Full, Note, OomAction, OomCause
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers
from desktop_app.ui.texts.advice import ALLOCATOR_SETTING

_FULL: Final = {
    Full.CARD: QT_TRANSLATE_NOOP("OomWords", "The card's memory was full"),
    Full.LIMIT: QT_TRANSLATE_NOOP("OomWords", "A limit was reached, not the end of the card"),
    Full.HOST: QT_TRANSLATE_NOOP("OomWords", "The computer's main memory was full, not the card's"),
    Full.PERHAPS_HOST: QT_TRANSLATE_NOOP("OomWords", "Perhaps the computer's main memory was full"),
    Full.SHARED_MEMORY: QT_TRANSLATE_NOOP("OomWords", "Shared memory (/dev/shm) was full, not the card's"),
    Full.NOTHING: QT_TRANSLATE_NOOP("OomWords", "Nothing was full: what was asked for cannot be had at all"),
    Full.UNKNOWN: QT_TRANSLATE_NOOP("OomWords", "There was room, and the request was refused all the same"),
}
_CAUSES: Final = {
    OomCause.TRAINING_TOO_LARGE: QT_TRANSLATE_NOOP("OomWords", "The training needs more than there is."),
    OomCause.REQUEST_TOO_LARGE: QT_TRANSLATE_NOOP(
        "OomWords", "One single tensor is too large; a smaller batch alone may not help."
    ),
    OomCause.FRAGMENTATION: QT_TRANSLATE_NOOP(
        "OomWords", "Enough was free, but in pieces that were too small (fragmentation)."
    ),
    OomCause.OTHER_PROCESSES: QT_TRANSLATE_NOOP(
        "OomWords", "Other processes held memory of the card; without them there would have been room."
    ),
    OomCause.OUTSIDE_ALLOCATOR: QT_TRANSLATE_NOOP(
        "OomWords", "The memory went to something outside PyTorch's allocator: context, libraries, other programs."
    ),
    OomCause.MEMORY_FRACTION: QT_TRANSLATE_NOOP(
        "OomWords", "A memory fraction that was set for this process is used up; the card still had room."
    ),
    OomCause.REFUSED_DESPITE_FREE: QT_TRANSLATE_NOOP(
        "OomWords", "Far more was free than asked for: another process came between, or the driver is in a bad state."
    ),
    OomCause.SYSTEM_MEMORY_FALLBACK: QT_TRANSLATE_NOOP(
        "OomWords", "More is held than the card has: the driver had already moved memory to the computer's own."
    ),
    OomCause.OVERFLOWED_SIZE: QT_TRANSLATE_NOOP(
        "OomWords", "The size asked for is impossible: a mistake in the code, such as a negative dimension."
    ),
    OomCause.BLOCK_LIMIT: QT_TRANSLATE_NOOP("OomWords", "This platform gives no single block above 4 GB."),
    OomCause.HOST_MEMORY: QT_TRANSLATE_NOOP("OomWords", "A loader worker or the program itself took too much RAM."),
    OomCause.WORKER_EXITED: QT_TRANSLATE_NOOP(
        "OomWords", "A loader worker ended: killed for want of RAM, or by an error of its own."
    ),
    OomCause.GRAPH_USED_TWICE: QT_TRANSLATE_NOOP(
        "OomWords",
        "A graph was to be walked a second time. That is no memory error, but the hint in it (retain_graph=True) leads "
        "to one: every backward would keep its graph.",
    ),
    OomCause.SHARED_MEMORY: QT_TRANSLATE_NOOP(
        "OomWords", "Loader workers hand batches over in shared memory, and containers have little of it (64 MB)."
    ),
}
_ACTIONS: Final = {
    OomAction.REDUCE_BATCH: QT_TRANSLATE_NOOP(
        "OomWords", "Take a smaller batch, and accumulate gradients to the same effective batch."
    ),
    OomAction.REDUCE_REQUEST: QT_TRANSLATE_NOOP(
        "OomWords", "Make the tensor smaller: shorter sequences, smaller images, attention or loss in chunks."
    ),
    OomAction.EXPANDABLE_SEGMENTS: QT_TRANSLATE_NOOP("OomWords", "Let the allocator join its pieces."),
    OomAction.MAX_SPLIT_SIZE: QT_TRANSLATE_NOOP(
        "OomWords", "Where expandable segments are not supported: keep large blocks whole."
    ),
    OomAction.END_OTHER_PROCESSES: QT_TRANSLATE_NOOP(
        "OomWords", "End other processes on the card (nvidia-smi lists them), or take another card."
    ),
    OomAction.RAISE_FRACTION: QT_TRANSLATE_NOOP(
        "OomWords", "Raise the limit of torch.cuda.set_per_process_memory_fraction(), or remove it."
    ),
    OomAction.RAISE_WATERMARK: QT_TRANSLATE_NOOP(
        "OomWords", "Raise PYTORCH_MPS_HIGH_WATERMARK_RATIO; without any limit the whole system may stall."
    ),
    OomAction.LEAVE_ROOM: QT_TRANSLATE_NOOP(
        "OomWords", "Leave libraries some room, for example with torch.cuda.set_per_process_memory_fraction(0.9)."
    ),
    OomAction.RESTART_PROCESS: QT_TRANSLATE_NOOP(
        "OomWords", "Start the process anew: what earlier runs have left behind goes with it."
    ),
    OomAction.DISABLE_FALLBACK: QT_TRANSLATE_NOOP(
        "OomWords", "Set the driver to 'Prefer No Sysmem Fallback', so that the limit shows in time."
    ),
    OomAction.CHECK_SHAPES: QT_TRANSLATE_NOOP(
        "OomWords", "Print the shapes before the call; look for a negative or a very large dimension."
    ),
    OomAction.FEWER_WORKERS: QT_TRANSLATE_NOOP("OomWords", "Take fewer loader workers, or a smaller prefetch_factor."),
    OomAction.MORE_SHARED_MEMORY: QT_TRANSLATE_NOOP("OomWords", "Give the container more shared memory."),
    OomAction.MORE_HOST_MEMORY: QT_TRANSLATE_NOOP(
        "OomWords", "Free RAM: close programs, keep less of the data in memory, use memory-mapped files."
    ),
    OomAction.CHECK_SYSTEM_LOG: QT_TRANSLATE_NOOP(
        "OomWords",
        "Look for 'Out of memory: Killed' in the system's log; run once without workers to see their errors.",
    ),
    OomAction.CHECK_TOTAL: QT_TRANSLATE_NOOP("OomWords", "Compare the total in the message with the card's."),
    OomAction.CHECK_COMMIT_LIMIT: QT_TRANSLATE_NOOP(
        "OomWords", "Look at the limits of main memory: page file (Windows), ulimit, the container's memory."
    ),
    OomAction.ONE_BACKWARD: QT_TRANSLATE_NOOP(
        "OomWords", "Add the losses up and call backward() once, or detach() what comes from the step before."
    ),
    OomAction.KEEP_NO_GRAPH: QT_TRANSLATE_NOOP(
        "OomWords", "Do not answer with retain_graph=True alone: memory would grow with every step."
    ),
}
# Lines to copy, the same in every language.
_LINES: Final = {
    OomAction.EXPANDABLE_SEGMENTS: ALLOCATOR_SETTING,
    OomAction.MAX_SPLIT_SIZE: "PYTORCH_ALLOC_CONF=max_split_size_mb:256",
    OomAction.MORE_SHARED_MEMORY: "docker run --shm-size=8g …",
}
_SHARES: Final = {
    "allocated": QT_TRANSLATE_NOOP("OomWords", "Live tensors of this process"),
    "private_pools": QT_TRANSLATE_NOOP("OomWords", "Private pools (CUDA graphs)"),
    "idle": QT_TRANSLATE_NOOP("OomWords", "Idle in PyTorch's cache"),
    "outside": QT_TRANSLATE_NOOP("OomWords", "Outside PyTorch: context and libraries"),
    "others": QT_TRANSLATE_NOOP("OomWords", "Other processes"),
    "free": QT_TRANSLATE_NOOP("OomWords", "Free"),
}
_NOTES: Final = {
    Note.NONSENSE_FIGURE: QT_TRANSLATE_NOOP(
        "OomWords", "A figure larger than any memory was left out; it stands for 'unknown'."
    ),
    Note.ABOVE_TOTAL: QT_TRANSLATE_NOOP("OomWords", "More allocated than there is: that is no mistake of the message."),
    Note.FREE_ABOVE_REQUEST: QT_TRANSLATE_NOOP("OomWords", "More was free than was asked for."),
    Note.ROUNDED_REQUEST: QT_TRANSLATE_NOOP(
        "OomWords", "2 MiB and 20 MiB are sizes of the allocator: the tensor itself had up to 1 or 10 MiB."
    ),
    Note.NO_ROOM_EVEN_ALONE: QT_TRANSLATE_NOOP(
        "OomWords", "The request alone is more than the whole card: a batch of one may not fit either."
    ),
    Note.RETAINED_GRAPH: QT_TRANSLATE_NOOP(
        "OomWords", "The text has retain_graph=True: every such backward keeps its whole graph."
    ),
    Note.WORKERS: QT_TRANSLATE_NOOP("OomWords", "Loader workers count together with the main process."),
}
_BACKENDS: Final = {
    Backend.CUDA: "CUDA",
    Backend.CUDA_ASYNC: "CUDA (cudaMallocAsync)",
    Backend.HIP: "ROCm (HIP)",
    Backend.XPU: "Intel XPU",
    Backend.NPU: "Ascend NPU",
    Backend.MPS: "Apple MPS",
}


def headline(found: Explanation) -> str:
    """What was full."""
    return QCoreApplication.translate("OomWords", _FULL[found.full])


def cause(found: Explanation) -> str:
    return QCoreApplication.translate("OomWords", _CAUSES[found.cause])


def actions(found: Explanation) -> list[tuple[str, str]]:
    """What to change, the most useful first, each with a line to copy or an empty one."""
    return [
        (QCoreApplication.translate("OomWords", _ACTIONS[action]), _LINES.get(action, "")) for action in found.actions
    ]


def notes(found: Explanation) -> list[str]:
    """What else the message says, and who has written it."""
    said = [QCoreApplication.translate("OomWords", _NOTES[note]) for note in found.notes]
    name = _BACKENDS.get(found.backend)
    return [*said, QCoreApplication.translate("OomWords", "Message of {0}.").format(name)] if name else said


def share(holder: str) -> str:
    """Whose memory a part of the bar is."""
    return QCoreApplication.translate("OomWords", _SHARES[holder]) if holder in _SHARES else holder


def processes(found: Explanation) -> str:
    """``Process 4711 holds 9.80 GiB.``, one sentence for each that the message names."""
    source = QCoreApplication.translate("OomWords", "Process {0} holds {1}.")
    return numbers.sentences(*(source.format(pid, numbers.size(size)) for pid, size in found.processes.items()))


def facts(found: Explanation) -> str:
    """What was asked for and what was there, as far as the message says; empty when it has no figures."""
    tried, free, total = (found.figures.get(name) for name in ("tried_bytes", "free_bytes", "total_bytes"))
    parts = []
    if tried is not None:
        parts.append(QCoreApplication.translate("OomWords", "{0} were asked for.").format(numbers.size(tried)))
    if free is not None and total is not None:
        words = QCoreApplication.translate("OomWords", "{0} of {1} were free.")
        parts.append(words.format(numbers.size(free), numbers.size(total)))
    elif total is not None:
        parts.append(QCoreApplication.translate("OomWords", "There are {0} in all.").format(numbers.size(total)))
    if (allowed := found.figures.get("allowed_bytes")) is not None:
        words = QCoreApplication.translate("OomWords", "{0} are allowed for this process.")
        parts.append(words.format(numbers.size(allowed)))
    return numbers.sentences(*parts)


def as_text(found: Explanation) -> str:
    """The whole answer as plain text."""
    lines = [headline(found), cause(found), facts(found), ""]
    lines += [f"{share(holder)}: {numbers.size(size)}" for holder, size in found.shares.items() if size > 0]
    lines += ["", processes(found)] if found.processes else [""]
    for words, code in actions(found):
        lines += [f"- {words}", *([f"  {code}"] if code else [])]
    lines += ["", *notes(found)]
    return "\n".join(lines).replace(numbers.NBSP, " ").strip() + "\n"
