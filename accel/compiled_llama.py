"""The compiled forward as a model: weights packed, caches in its own layout."""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accel.choice import MOST_NODES, Odds
from accel.compiled_attention import Room, Shape
from accel.compiled_cache import CompiledCache
from accel.compiled_forward import COLUMN_ROWS, forward, meetings_of, shares_of
from accel.compiled_head import Found, WalkRoom
from accel.compiled_parts import Scratch, Weights
from accel.compiled_paths import PathScratch, no_paths, pack_paths
from accel.compiled_side import Side, side_of
from accel.compiled_stage import Limits, Made, Stage, Start, Steps, stage_of
from accel.compiled_steps import IS_POSSIBLE, plain_steps_in, steps_in
from accel.draft_tree import DraftTree, TokenArray
from accel.drawing import GREEDY, Draws
from accel.ending import Ending
from accel.kv_cache import KVCache
from accel.llama import eps_of, fused_biases, fused_weights, is_built_like_llama, rotation_angles
from accel.mask_tokens import MaskTokens
from accel.matmul import BLOCK, packed
from accel.meeting import interrupt, interruptions
from accel.memory import empty
from accel.model import Capability, Model
from accel.rows import Rows, chain_rows
from accel.sources.asking import Asking
from accel.sources.speculation import Grown
from accel.speculator import Speculator
from accel.standing_by import LOGIT_ROWS, Job
from accel.sums import MOST_SUMMED
from accel.thread_pair import ThreadPair

WOKEN_ROWS = 6
"""Rows below which it takes longer to wake the second thread than it saves."""

_NO_PARENTS = np.empty(0, np.int32)
_NO_MASK = np.empty((0, 0), np.float32)

MOST_BYTES = 3_500_000_000
"""Larger weights are left to the lean forward: to find out which of the two is faster takes as much
memory once more."""


class CompiledLlama(Model):
    """A decoder like Llama or Qwen2 on one core or two. Build it with ``from_module``."""

    has_fixed_shapes = False
    can_share = os.name == "posix"
    computes_masks = True
    verifies = True
    runs_steps = IS_POSSIBLE

    def __init__(self, module: Any) -> None:
        base, config = module.model, module.config
        attention = base.layers[0].self_attn
        self.capability = Capability.TREE
        self.dtype = base.embed_tokens.weight.dtype
        self.device = base.embed_tokens.weight.device
        self.vocabulary_size = module.lm_head.weight.shape[0]
        self.max_positions = min(config.max_position_embeddings, MOST_SUMMED)
        depth = attention.head_dim
        self._shape = Shape(
            heads=attention.q_proj.weight.shape[0] // depth,
            kv_heads=attention.k_proj.weight.shape[0] // depth,
            depth=depth,
            eps=eps_of(base.norm),
            scaling=float(attention.scaling),
        )
        self._weights = pack_weights(module)
        self._rotary = base.rotary_emb
        self._rotations = np.empty((0, 2, depth // 2), np.float32)
        self._paths = no_paths(self._weights.embedding.dtype)
        self._mask_inputs = np.zeros((1, self._weights.embedding.shape[1]), np.float32)
        self._found = Found.room(len(self._weights.head) * BLOCK)
        self._mask_logits = np.empty((0, len(self._weights.head) * BLOCK), np.float32)
        self._masks_from = 0
        self._ending = Ending.nothing()
        self._make_sides(BLOCK, 1, 1)
        self._pair = ThreadPair()
        self._steps = Steps.room()
        self._stage: Stage | None = None
        # Compile, or load the compiled form, before the first request waits for it.
        self.forward(chain_rows(np.zeros(1, np.int32), 0), self.new_cache(BLOCK))

    @classmethod
    def from_module(cls, module: nn.Module) -> CompiledLlama | None:
        """The compiled form of a module, None where it is too large or has parts of other kinds.

        The module's layers give up their weights.
        """
        return cls(module) if can_be_compiled(module) else None

    def new_cache(self, capacity: int) -> KVCache:
        dtype = self._weights.embedding.dtype
        return CompiledCache(len(self._weights.qkv), self._shape, capacity, dtype)

    def take_mask_tokens(self, mask_tokens: MaskTokens) -> None:
        super().take_mask_tokens(mask_tokens)
        dtype = self._weights.embedding.dtype
        self._mask_inputs = mask_tokens.embeddings.float().numpy()
        self._paths = pack_paths(mask_tokens, dtype)
        self._make_sides(BLOCK, 1, 1)

    def take_speculator(self, speculator: Speculator) -> None:
        super().take_speculator(speculator)
        self._ending = Ending.of(speculator.state)

    def shares_patiently(self, patiently: bool) -> None:
        self._pair.is_patient = patiently

    def forward(self, rows: Rows, cache: KVCache) -> Tensor:
        return self.forward_with_masks(rows, cache)[0]

    def forward_with_masks(self, rows: Rows, cache: KVCache) -> tuple[Tensor, Tensor]:
        wanted, masks = len(rows) - rows.logits_from, len(rows.mask_places)
        assert isinstance(cache, CompiledCache)
        self._make_room(len(rows), masks, cache)
        if masks or wanted > LOGIT_ROWS:
            logits = np.empty((wanted, len(self._weights.head) * BLOCK), np.float32)
            self._compute(rows, cache, logits)
        else:
            logits = self._job.logits[:wanted]
            self._compute(rows, cache, logits)
            logits = logits.copy()
        states = _tensor(self._scratch.normed[rows.masks_from : rows.masks_from + masks].copy())
        return torch.from_numpy(logits)[:, : self.vocabulary_size], states

    def verify(
        self, rows: Rows, tree: DraftTree, cache: KVCache, draws: Draws = GREEDY
    ) -> tuple[list[int], TokenArray]:
        masks = len(rows.mask_places)
        assert rows.logits_from + len(tree) + 1 + masks == len(rows), "rows behind the tree"
        if masks > len(self._mask_logits):
            self._mask_logits = np.empty((masks, self._mask_logits.shape[1]), np.float32)
        self._masks_from = rows.masks_from
        # A copy where it is shared: compiled code would be compiled anew for a read-only array.
        parents = tree.parents if tree.rows is not None else np.array(tree.parents, np.int32)
        assert isinstance(cache, CompiledCache)
        self._make_room(len(rows), masks, cache)
        count = self._compute(rows, cache, self._mask_logits[:masks], parents, draws)
        room = self._walk_room
        return room.path[: count - 1].tolist(), room.chosen[:count].copy()

    def run_steps(
        self,
        last: int,
        drafting: tuple[Asking, Odds] | None,
        cache: KVCache,
        limits: Limits,
        draws: Draws = GREEDY,
    ) -> tuple[Made, Steps]:
        assert isinstance(cache, CompiledCache)
        self._make_room(MOST_NODES + 1 if drafting else 1, 0, cache)
        (first, second), pair = self._sides_for(cache), self._pair
        if self._stage is None:
            self._stage = stage_of(
                *(self._steps, Grown.room(), pair.meeting, self._mask_inputs[:0])
            )
        before, shared_from = 0, self.shared_from
        if shared_from and pair.alone:
            limits, shared_from = limits._replace(steps=min(limits.steps, pair.alone)), 0
        elif shared_from:
            most_rows = limits.nodes + 1 if drafting else 1
            before = self._hold(second, limits.steps, most_rows)
        start = Start(last, cache.length, cache.capacity, shared_from, before)
        if drafting is None:
            made = plain_steps_in(first, start, draws, limits, self._stage)
        else:
            asking, odds = drafting
            made = steps_in(first, *asking, odds, start, draws, limits, self._stage)
        if shared_from:
            pair.let_go()
        else:
            pair.worked_alone(made.steps)
        cache.length = made.past
        return made, self._steps

    def _hold(self, own: Side, steps: int, rows: int) -> int:
        """Have the second thread stand by for so many forwards of so many rows at most, see
        ``ThreadPair.hold``."""
        numbers = steps * meetings_of(len(self._weights.qkv), rows)
        held = self._pair.hold(own, numbers)
        if held is not None:
            return held
        # It is told what there is to do in a job.
        arguments = (
            *(_NO_PARENTS, _NO_PARENTS, _NO_MASK, 0, 0, self._mask_inputs[:0]),
            *(self._job.logits[:0], _NO_PARENTS, True, GREEDY, True, True, 0, 0),
        )
        return self._pair.wake(forward, arguments, own, numbers)

    @property
    def interruptions(self) -> int:
        return interruptions(self._pair.meeting)

    def interrupt(self) -> None:
        interrupt(self._pair.meeting)

    def state_of(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._scratch.normed[row], self._scratch.middle[row]

    def mask_rows(self, group: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        first = self._masks_from + group.start
        states = self._scratch.normed[first : self._masks_from + group.stop]
        if states.dtype == np.int16:
            states = states.astype(np.int32) << 16
        return self._mask_logits[group, : self.vocabulary_size], states.view(np.float32)

    def _compute(
        self,
        rows: Rows,
        cache: KVCache,
        logits: NDArray[np.float32],
        parents: TokenArray | None = None,
        draws: Draws = GREEDY,
    ) -> int:
        """``compiled_forward.forward``, by two threads where that pays; it walks where ``parents``
        are given. There is room for it."""
        assert isinstance(cache, CompiledCache)
        count, masks = len(rows), len(rows.mask_places)
        mask_inputs = self._mask_inputs[:0]
        if masks:
            last_place = len(self._mask_inputs) - 1
            mask_inputs = self._mask_inputs[np.minimum(rows.mask_places, last_place)]
        arguments = (
            rows.tokens,
            rows.offsets,
            rows.mask,
            cache.length,
            rows.masks_from,
            mask_inputs,
            logits,
            _NO_PARENTS if parents is None else parents,
            parents is not None,
            draws,
        )
        sides, pair = self._sides_for(cache), self._pair
        # Who stands by knows neither mask rows nor where to write many logits.
        stands_by = not masks and len(logits) <= LOGIT_ROWS
        least = self.shared_from if stands_by else max(self.shared_from, WOKEN_ROWS)
        by_columns, half = shares_of(count)
        is_long = not by_columns
        if not (self.shared_from and least <= count and pair.is_free(is_long=is_long)):
            return forward(*arguments, False, False, 0, count, sides[0], pair.meeting, 0, 0)
        meetings = meetings_of(len(self._weights.qkv), count)
        shared = (*arguments, by_columns, stands_by)
        how = {"stands_by": stands_by, "is_long": is_long}
        return pair.run(forward, shared, half, count, sides, meetings, **how)

    def _sides_for(self, cache: CompiledCache) -> tuple[Side, Side]:
        """What the two threads compute with, for a cache as it is."""
        made_for = self._rotations, self._own, self._ending
        if cache.sides is None or any(map(operator.is_not, made_for, cache.sides_made_for)):
            shared = (
                *(self._weights, self._shape, self.vocabulary_size, self._paths),
                *(self._rotations, cache.kept, *cache.words, self._found, self._job, self._ending),
            )
            held: list[tuple[Any, ...]] = [(*shared, *own) for own in self._own]
            first, second = (side_of(*each) for each in held)
            cache.sides, cache.sides_made_for = (first, second), made_for
        return cache.sides

    def _make_sides(self, columns: int, masks: int, rows: int) -> None:
        """Room for activations, which two threads share where each computes some of the rows, but
        not all of where each computes some of the columns; and room of each thread's own."""
        self._scratch = Scratch.room(rows, self._weights, self._shape)
        others = Scratch.room(min(rows, COLUMN_ROWS), self._weights, self._shape)
        other_scratch = self._scratch._replace(
            x=others.x, normed=others.normed, gate_up=others.gate_up
        )
        dtype = self._weights.embedding.dtype
        first, second = (
            (
                Room.of(columns, self._shape, dtype),
                PathScratch.room(masks, self._paths),
                WalkRoom.of(rows, self._scratch.normed),
            )
            for _ in range(2)
        )
        self._own = [
            (self._scratch, self._scratch, *first),
            (self._scratch, other_scratch, *second),
        ]
        self._job = Job.room(rows, len(self._weights.head) * BLOCK)
        self._walk_room = first[2]
        self._most = columns, masks, rows

    def _make_room(self, rows: int, masks: int, cache: CompiledCache) -> None:
        cache.reserve(rows)
        columns, most_masks, most_rows = self._most
        if cache.capacity > columns or masks > most_masks or rows > most_rows:
            self._make_sides(
                max(cache.capacity, columns), max(masks, most_masks), max(rows, most_rows)
            )
        if cache.capacity > len(self._rotations):
            cos, sin = rotation_angles(self._rotary, cache.capacity)
            self._rotations = torch.stack([cos, sin], 1).contiguous().numpy()


def can_be_compiled(module: Any) -> bool:
    """Whether a module has the parts that the compiled forward has, and is not too large."""
    if not is_built_like_llama(module):
        return False
    base = module.model
    attention, weight = base.layers[0].self_attn, base.embed_tokens.weight
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    linears = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and size <= MOST_BYTES
        and attention.head_dim % BLOCK == 0
        and not hasattr(attention, "q_norm")
        and module.config.hidden_act == "silu"
        and all(part.in_features % BLOCK == 0 for part in linears)
        and not any(
            name.endswith(".bias") and not name.endswith(_BIASED)
            for name, _ in module.named_parameters()
        )
    )


_BIASED = ("q_proj.bias", "k_proj.bias", "v_proj.bias")
"""As Qwen2 has them."""


def pack_weights(module: Any) -> Weights:
    """The module's weights in our layout; those of its layers are freed."""
    base, layers = module.model, module.model.layers

    def stacked(parts_of: Any) -> NDArray[Any]:
        """Layer by layer, so that little is held twice."""
        whole: NDArray[Any] | None = None
        for place, layer in enumerate(layers):
            parts = parts_of(layer)
            matrix = packed(_array(fused_weights(*parts)))
            if whole is None:
                whole = empty((len(layers), *matrix.shape), matrix.dtype)
            whole[place] = matrix
            for part in parts:
                part.weight.data = part.weight.data.new_empty(0)
        assert whole is not None
        return whole

    def heads_of(layer: Any) -> tuple[Any, Any, Any]:
        return layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj

    biases = [fused_biases(*heads_of(layer)) for layer in layers]
    weights = Weights(
        embedding=_array(base.embed_tokens.weight.data),
        attention_norm=np.stack([_floats(layer.input_layernorm.weight) for layer in layers]),
        qkv=stacked(heads_of),
        qkv_bias=np.stack([_floats(bias) for bias in biases]),
        output=stacked(lambda layer: (layer.self_attn.o_proj,)),
        mlp_norm=np.stack([_floats(layer.post_attention_layernorm.weight) for layer in layers]),
        gate_up=stacked(lambda layer: (layer.mlp.gate_proj, layer.mlp.up_proj)),
        down=stacked(lambda layer: (layer.mlp.down_proj,)),
        norm=_floats(base.norm.weight),
        head=packed(_array(module.lm_head.weight.data)),
    )
    for parameter in layers.parameters():
        parameter.data = parameter.data.new_empty(0)
    return weights


def _array(tensor: Tensor) -> NDArray[Any]:
    """float32, or the bits of bf16 as int16."""
    tensor = tensor.detach()
    return (tensor if tensor.dtype == torch.float32 else tensor.view(torch.int16)).numpy()


def _tensor(array: NDArray[Any]) -> Tensor:
    """The way back from ``_array``, and of rows as ``row_dtype`` has them."""
    tensor = torch.from_numpy(array)
    if tensor.dtype == torch.int32:
        return tensor.view(torch.float32).bfloat16()
    return tensor if tensor.dtype == torch.float32 else tensor.view(torch.bfloat16)


def _floats(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().numpy().copy()
    return array
