"""What CUDA would allocate for an op that ran on the CPU or on meta tensors: one set of rules for both.

An op's own outputs are the same everywhere but for what is listed here and in the ``kernels_*`` modules; workspaces
and staging buffers appear in no tensor at all. Not written out: ``ctc_loss``, and the copies of
operands inside ``bmm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import torch

from desktop_app.memory import (
    kernels_attention,
    kernels_convolution,
    kernels_dropout,
    kernels_norm,
    kernels_reduce,
    kernels_sort,
)
from desktop_app.memory.card_limits import cublas_workspace_bytes
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.deferred_bookings import MASK_MAKER, SCATTERERS, SUM_MAKER
from desktop_app.memory.kernels_plan import Kernels, OpCall, Plan, Planner

CUBLAS_OP: Final = "cublas.workspace"

PLANNERS: Final[dict[str, Planner]] = {
    **kernels_reduce.PLANNERS,
    **kernels_sort.PLANNERS,
    **kernels_attention.PLANNERS,
    **kernels_convolution.PLANNERS,
    **kernels_dropout.PLANNERS,
    **kernels_norm.PLANNERS,
}

# Ops that take a cuBLAS handle.
_CUBLAS: Final = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addbmm", "addmm_", "baddbmm_", "addmv", "mv", "dot", "vdot", "linear", "matmul"}
)
# Aliases that the schema does not admit to, and ops that may hand their input back.
_MAY_ALIAS: Final = frozenset({"_unsafe_view", "_reshape_copy", "lift_fresh_copy"})
_RESIZING: Final = frozenset({"resize_", "resize_as_", "set_", "_resize_output_", "resize_output"})
_GEOMETRY: Final = frozenset(
    {"t_", "transpose_", "swapdims_", "swapaxes_", "squeeze_", "unsqueeze_", "as_strided_", "detach_", "rename_"}
)
# torch.tensor(1.0) and its like are made in host memory; a training copies what the card needs.
_HOST: Final = frozenset({"lift_fresh"})
# What optimizers make their state with; their other results are temporaries.
_STATE_MAKERS: Final = frozenset({"zeros_like", "clone", "zeros", "full_like", "empty_like", "_to_copy", "ones_like"})

_NORM_TRAINS: Final = 5  # position of native_batch_norm's argument "training"


class Kind(Enum):
    """What an op's outputs are."""

    VIEW = auto()  # nothing new, by its schema
    FRESH = auto()
    MAY_ALIAS = auto()  # new, or an input in other clothes: the storage decides
    RESIZES = auto()  # an input whose storage may have grown
    HOST = auto()  # not on the card


@dataclass(frozen=True, slots=True)
class OpRule:
    """How to book one op, decided once per op."""

    name: str
    kind: Kind
    cublas: bool
    planner: Planner | None  # where more than the outputs is booked
    positions: dict[str, int]  # of the arguments, by name
    makes_state: bool
    quiet: bool  # a VIEW with nothing else to book: the tracker returns at once
    plain: bool  # FRESH and nothing else to book
    may_wait: bool  # see deferred_bookings
    composite: bool  # made of other ops, which a dispatch mode does not see under inference_mode
    normalizes: bool  # batch norm: keeps no statistics of the batch when it does not train
    in_place: bool  # writes into its first argument and changes neither its shape nor its storage


def kept_outputs(rule: OpRule, args: Sequence[Any], out: Any) -> Sequence[Any]:
    """The outputs as CUDA makes them. In evaluation meta tensors claim batch statistics, which CPU and CUDA do not."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    return outputs[:1] if rule.normalizes and not args[_NORM_TRAINS] else outputs


def learn_rule(func: torch._ops.OpOverload) -> OpRule:
    """The rule of an op, from its schema and the tables above."""
    schema = func._schema  # noqa: SLF001 - there is no public way to ask an op for its schema
    name = schema.name.partition("::")[2]
    composite = _is_composite(schema)
    kind = _kind(name, schema, composite=composite)
    cublas = name in _CUBLAS
    planner = PLANNERS.get(name) if schema.name.startswith("aten::") else None
    return OpRule(
        name=name,
        kind=kind,
        cublas=cublas,
        planner=planner,
        positions={argument.name: index for index, argument in enumerate(schema.arguments)} if planner else {},
        makes_state=name in _STATE_MAKERS,
        quiet=kind in (Kind.VIEW, Kind.HOST) and not cublas and planner is None,
        plain=kind is Kind.FRESH and not cublas and planner is None,
        may_wait=name in (MASK_MAKER, SUM_MAKER) or name in SCATTERERS,
        composite=composite,
        normalizes=name == "native_batch_norm",
        in_place=kind is Kind.VIEW and name.endswith("_") and name not in _GEOMETRY,
    )


def _kind(name: str, schema: Any, *, composite: bool) -> Kind:
    if name in _HOST:
        return Kind.HOST
    if name in _RESIZING or schema.overload_name == "out" or any(argument.is_out for argument in schema.arguments):
        return Kind.RESIZES
    if composite or name in _MAY_ALIAS:
        return Kind.MAY_ALIAS
    if all(returned.alias_info is not None for returned in schema.returns):
        return Kind.VIEW
    return Kind.FRESH


def _is_composite(schema: Any) -> bool:
    """Whether the op is made of others on every device: a kernel of its own anywhere says that CUDA has one."""
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)
    has = torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001
    return has(name, "CompositeImplicitAutograd") and not any(has(name, key) for key in ("CPU", "CUDA", "Meta"))


class Lowering:
    """The rules with one card's figures filled in."""

    def __init__(self, card: CardSpec | None) -> None:
        self.kernels: Final = Kernels.of(card)
        spec = card or CardSpec("generic", capacity_bytes=1, total_bytes=1)
        self.cublas_bytes: Final = cublas_workspace_bytes(spec)

    def plan(
        self, rule: OpRule, args: Sequence[Any], kwargs: dict[str, Any] | None, outputs: Sequence[Any]
    ) -> Plan | None:
        """The steps of an op that has a planner; ``None``: nothing but its outputs."""
        assert rule.planner is not None
        return rule.planner(OpCall(rule.name, args, kwargs, outputs, rule.positions), self.kernels)
