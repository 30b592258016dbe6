"""Proof that mask rows leave ordinary rows alone: the loss of held-out text with and without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accel.draft_tree import DraftTree, TokenArray
from accel.llama import LlamaModel
from accel.loading import load_module
from accel.mask_tokens import FILE, MaskTokens, read_weights
from accel.rows import MaskGroups, tree_rows
from accel.tokenizer import Tokenizer

CHUNK = 28
TEXTS, TEXT_TOKENS = 8, 160


def ordinary_losses(folder: Path, weights: Path, held_out: Tensor) -> dict[str, Any]:
    """Loss (nats) of ordinary tokens in fp32 while rows of no meaning stand behind every chunk, and
    while mask rows do; and whether all logits are equal to the last bit.

    held_out: int64 [rows, length].
    """
    module: Any = load_module(folder, torch.float32, torch.device("cpu"), "eager")
    base, head = module.model.embed_tokens.weight.data, module.lm_head.weight.data
    mask_tokens = MaskTokens(read_weights(weights), base, head)
    model = LlamaModel.from_module(module)
    assert model is not None, "mask rows were trained on a model built like Llama"
    model.take_mask_tokens(mask_tokens)
    groups = MaskGroups.alike([-1], mask_tokens.count)
    before = [_logits(model, row.numpy().astype(np.int32), groups, False) for row in held_out]
    after = [_logits(model, row.numpy().astype(np.int32), groups, True) for row in held_out]
    return {
        "ordinary_loss_before": _loss(before, held_out),
        "ordinary_loss_after": _loss(after, held_out),
        "ordinary_bits_equal": all(map(torch.equal, before, after)),
    }


def losses_on_texts(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """``ordinary_losses`` with the mask rows beside a model, on the first texts that are long
    enough; empty where none is."""
    tokenizer = Tokenizer.from_folder(folder)
    encoded = (tokenizer.encode(text) for text in texts)
    rows = [row[:TEXT_TOKENS] for row in encoded if len(row) >= TEXT_TOKENS][:TEXTS]
    if not rows:
        return {}
    held_out = torch.from_numpy(np.stack(rows).astype(np.int64))
    return ordinary_losses(folder, folder / FILE, held_out)


@torch.inference_mode()
def _logits(model: LlamaModel, tokens: TokenArray, groups: MaskGroups, masks: bool) -> Tensor:
    """float32 [length, vocabulary], computed in chunks."""
    cache = model.new_cache(len(tokens) + CHUNK)
    found = []
    for start in range(0, len(tokens), CHUNK):
        chunk = tokens[start : start + CHUNK]
        padding = 0 if masks else groups.rows
        rows = tree_rows(chunk, DraftTree.empty(), padding, groups if masks else None)
        rows.logits_from = 0
        found.append(model.forward_with_masks(rows, cache)[0][: len(chunk)])
        cache.keep(list(range(len(chunk))))
    return torch.cat(found)


def _loss(logits: list[Tensor], tokens: Tensor) -> float:
    each = [
        torch.nn.functional.cross_entropy(rows[:-1], row[1:])
        for rows, row in zip(logits, tokens, strict=True)
    ]
    return float(torch.stack(each).mean())
