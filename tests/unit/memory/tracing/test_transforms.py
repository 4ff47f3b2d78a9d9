"""Changes to a model, against what it computes for real and what torch does itself."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

from desktop_app.core.steps import Category
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.subject_parts import TrainingParts, last_layer
from desktop_app.memory.tracing.transforms_checkpointing import apply_checkpointing, repeated_blocks
from desktop_app.memory.tracing.transforms_freezing import freeze
from desktop_app.memory.tracing.transforms_lora import LowRankLinear, add_adapters
from desktop_app.memory.tracing.transforms_sharding import _largest_share
from tests.unit.memory.tracing.subjects import Block, Stack, batch, micro_step, most_bytes, subject_of, trace_of

CPU = torch.device("cpu")


def parts_of(model: nn.Module) -> TrainingParts:
    return TrainingParts(model=model, batch=batch, micro_step=micro_step)


def gradients(model: nn.Module) -> list[Tensor]:
    torch.manual_seed(1)
    micro_step(model, (torch.randn(4, 96), torch.zeros(4, dtype=torch.int64))).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


class TestCheckpointing:
    @pytest.mark.parametrize(
        ("checkpointing", "twice"), [("full", [0, 1, 2, 3]), ("every_2", [0, 2]), ("every_3", [0, 3])]
    )
    def test_computes_every_kth_block_again(self, checkpointing: str, twice: list[int]) -> None:
        torch.manual_seed(0)
        plain = Stack()
        model = Stack()
        model.load_state_dict(plain.state_dict())
        calls = [0] * len(model.blocks)
        for index, block in enumerate(model.blocks):
            block.up.register_forward_hook(lambda *_, index=index: calls.__setitem__(index, calls[index] + 1))  # type: ignore[misc]
        apply_checkpointing(parts_of(model), checkpointing=checkpointing)
        assert all(torch.equal(one, other) for one, other in zip(gradients(model), gradients(plain), strict=True))
        assert calls == [2 if index in twice else 1 for index in range(4)]

    def test_does_not_checkpoint_validation(self) -> None:
        model = Stack().eval()
        apply_checkpointing(parts_of(model), checkpointing="full")
        calls: list[int] = []
        model.blocks[0].up.register_forward_hook(lambda *_: calls.append(1))  # type: ignore[union-attr]
        gradients(model)
        assert len(calls) == 1

    def test_keeps_less(self) -> None:
        peaks = [most_bytes(trace_of(checkpointing=name, batch_size=512)) for name in ("none", "every_2", "full")]
        assert peaks[0] > peaks[1] > peaks[2]

    def test_finds_blocks_inside_stages_and_passes_over_experts(self) -> None:
        class Expert(Block): ...

        class Layer(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.experts = nn.ModuleList(Expert(8) for _ in range(4))

        stages = nn.Sequential(nn.Sequential(Block(8), Block(8)), nn.Sequential(Block(8), Block(8), Block(8)))
        assert [type(block) for block in repeated_blocks(stages)] == [Block] * 5
        mixture = nn.ModuleList(Layer() for _ in range(3))
        assert repeated_blocks(nn.Sequential(nn.Linear(8, 8), mixture)) == list(mixture)

    def test_takes_the_models_own_way_where_it_has_one(self) -> None:
        asked: list[int] = []
        parts = parts_of(Stack())
        parts.checkpoint = lambda every: asked.append(every) or True  # type: ignore[func-returns-value]
        apply_checkpointing(parts, checkpointing="every_3")
        assert asked == [3]

    def test_says_that_there_are_no_blocks(self) -> None:
        with pytest.raises(TracerError, match="has none that can be found"):
            apply_checkpointing(parts_of(nn.Linear(2, 2)), checkpointing="full")


class TestAdapters:
    def test_begins_as_the_model_was_and_trains_the_adapters_only(self) -> None:
        torch.manual_seed(0)
        model = Stack()
        inputs = torch.randn(3, 96)
        before = model(inputs)
        assert add_adapters(model, rank=4, head=("head",)) == 8
        for module in model.modules():
            if isinstance(module, LowRankLinear):
                nn.init.zeros_(module.up.weight)
        assert torch.equal(model(inputs), before)
        trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert {name.rpartition(".")[0].rpartition(".")[2] for name in trained} == {"up", "down", "head"}
        adapters = sum(p.numel() for n, p in model.named_parameters() if p.requires_grad and not n.startswith("head"))
        assert adapters == 4 * 2 * 4 * (96 + 384)  # layers × linear × rank × (in + out)
        assert len(gradients(model)) == len(trained)

    def test_passes_over_attention_whose_weights_others_read(self) -> None:
        model = nn.TransformerEncoderLayer(8, 2, 16)
        add_adapters(model, rank=2, head=())
        assert isinstance(model.linear1, LowRankLinear)
        assert not isinstance(model.self_attn.out_proj, LowRankLinear)

    def test_knows_the_transposed_layer_of_gpt2(self) -> None:
        class Conv1D(nn.Module):
            def __init__(self, out: int, width: int) -> None:
                super().__init__()
                self.nf, self.weight = out, nn.Parameter(torch.randn(width, out))

            def forward(self, inputs: Tensor) -> Tensor:
                return inputs @ self.weight

        model = nn.Sequential(Conv1D(12, 4), nn.Linear(12, 2))
        add_adapters(model, rank=1, head=("1",))
        assert model(torch.randn(3, 4)).shape == (3, 2)
        assert model[0].nf == 12  # who asks the layer is answered

    def test_are_fp32_on_half_weights(self) -> None:
        model = Stack().to(torch.bfloat16)
        add_adapters(model, rank=2, head=("head",))
        assert model.blocks[0].up.up.weight.dtype == torch.float32  # type: ignore[union-attr]
        assert model(torch.randn(2, 96, dtype=torch.bfloat16)).dtype == torch.bfloat16

    def test_leave_little_state(self) -> None:
        trained = 4 * (96 + 384) * 8 + 96 * 10 + 10
        trace = trace_of(lora_rank=4, optimizer="adam")
        assert most_bytes(trace, Category.OPTIMIZER_STATE) == 8 * trained
        assert most_bytes(trace, Category.GRADIENTS) == 4 * trained

    @pytest.mark.parametrize(
        ("model", "rank", "message"), [(Stack(), 0, "at least 1"), (nn.Conv2d(1, 1, 1), 4, "needs linear")]
    )
    def test_say_what_is_wrong(self, model: nn.Module, rank: int, message: str) -> None:
        with pytest.raises(TracerError, match=message):
            add_adapters(model, rank=rank, head=())


class TestFreezing:
    def test_freezes_what_is_below_a_prefix(self) -> None:
        model = Stack(depth=11)
        freeze(model, frozen=("blocks.1",), head=())
        frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
        assert frozen == {f"blocks.1.{layer}.{kind}" for layer in ("up", "down") for kind in ("weight", "bias")}

    def test_freezes_all_but_the_head(self) -> None:
        model = Stack()
        freeze(model, frozen=("backbone",), head=last_layer(model))
        assert [name for name, p in model.named_parameters() if p.requires_grad] == ["head.weight", "head.bias"]
        trace = trace_of(frozen=("backbone",), optimizer="adam")
        assert most_bytes(trace, Category.OPTIMIZER_STATE) == 8 * (96 * 10 + 10)

    def test_a_head_that_is_tied_to_the_embedding_is_trained(self) -> None:
        embedding, head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
        head.weight = embedding.weight
        model = nn.ModuleDict({"tok": embedding, "block": nn.Linear(8, 8), "head": head})
        freeze(model, frozen=("backbone",), head=("head",))
        assert [name for name, p in model.named_parameters() if p.requires_grad] == ["tok.weight"]
        freeze(model, frozen=("block",), head=())  # by either name
        with pytest.raises(TracerError, match="nothing is left"):
            freeze(model, frozen=("head",), head=())

    def test_finds_the_last_layer_inside_wrappers(self) -> None:
        assert last_layer(nn.Sequential(Stack())) == ("0.head",)
        assert last_layer(nn.Sequential(nn.ReLU())) == ()

    @pytest.mark.parametrize(
        ("frozen", "message"), [("block", "near: blocks"), ("blocks+head", "nothing is left to train")]
    )
    def test_says_what_is_wrong(self, frozen: str, message: str) -> None:
        with pytest.raises(TracerError, match=message) as caught:
            freeze(Stack(), frozen=tuple(frozen.split("+")), head=())
        assert caught.value.kind == "bad_spec"


class TestSharding:
    @pytest.mark.parametrize("cards", [2, 3, 8])
    def test_shares_out_as_torch_does(self, cards: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.distributed.optim scripts its optimizers, which torch deprecates
            from torch.distributed.optim import ZeroRedundancyOptimizer

        parameters = list(Stack(width=24, depth=3).parameters())
        stock = object.__new__(ZeroRedundancyOptimizer)  # its own constructor wants a process group
        stock._partition_parameters_cache, stock.world_size = [], cards
        stock.param_groups = [{"params": parameters}]
        shares = stock._partition_parameters()
        sizes = [sum(p.numel() for group in share for p in group["params"]) for share in shares]
        assert sum(parameter.numel() for parameter in _largest_share(parameters, cards)) == max(sizes)

    def test_zero1_keeps_all_gradients_and_a_share_of_the_state(self) -> None:
        total = sum(parameter.numel() for parameter in Stack().parameters())
        trace = trace_of(optimizer="adam", sharding="zero1", world_size=4)
        assert most_bytes(trace, Category.GRADIENTS) == 4 * total
        state = most_bytes(trace, Category.OPTIMIZER_STATE)
        assert 8 * total / 4 <= state <= 8 * total / 4 * 1.2

    def test_zero2_keeps_its_own_gradients_only(self) -> None:
        whole = trace_of(optimizer="adam", sharding="zero1", world_size=4)
        shared = trace_of(optimizer="adam", sharding="zero2", world_size=4)
        largest = max(parameter.nbytes for parameter in Stack().parameters())
        assert most_bytes(shared, Category.GRADIENTS) <= most_bytes(whole, Category.GRADIENTS) / 4 * 1.2 + largest
        assert most_bytes(shared, Category.OPTIMIZER_STATE) == most_bytes(whole, Category.OPTIMIZER_STATE)

    def test_one_card_is_no_sharding(self) -> None:
        assert most_bytes(trace_of(sharding="zero2")) == most_bytes(trace_of())

    def test_full_sharding_says_that_it_needs_fake_cuda(self) -> None:
        with pytest.raises(TracerError, match="zero3") as caught:
            subject_of(sharding="zero3", world_size=2)
        assert caught.value.kind == "bad_spec"
