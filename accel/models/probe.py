"""Find out by trying what a model's forward may be given."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from accel.draft_tree import DraftTree, Source
from accel.models.base import BatchKind, Model
from accel.models.batch import chain_batch, tree_batch

_TEXT = 9
"""Committed tokens of the probe."""

_PARENTS = {
    BatchKind.TREE: [-1, -1, 0, 1, 1, 2, 4],
    BatchKind.CHAIN: [-1, 0, 1],
    BatchKind.PLAIN: [],
}
"""Branches at every depth, so that a wrong mask or position shows."""

_TOLERANCES, _OTHERWISE = {"fp32": 1e-3, "int8": 0.5}, 0.15
"""Largest distance of logits from the module's, relative to the distance between those of different
rows. Those of a wrong mask or position lie as far as other rows'."""


class Probe:
    """A module's logits for a few tokens without our cache, mask or positions."""

    def __init__(self, module: nn.Module) -> None:
        """``module`` computes its own masks, so it must not use our attention function yet."""
        generator = np.random.default_rng(0)
        size = min(module.get_output_embeddings().weight.shape[0], 2000)  # type: ignore[operator]
        tokens = generator.integers(size // 8, size, _TEXT + 8).astype(np.int32)
        self._text, self._nodes, self._last = tokens[:_TEXT], tokens[_TEXT:-1], tokens[-1:]
        self._expected = {kind: self._expect(module, self._tree(kind)) for kind in _PARENTS}

    def agrees(self, model: Model, kind: BatchKind) -> bool:
        """Return whether ``model`` gives the module's logits when used up to ``kind``: a text in
        two parts, a tree (or a chain, or a token), one branch of it kept, and another token."""
        tree = self._tree(kind)
        cache = model.new_cache(_TEXT)
        first = _TEXT - 2 if kind == BatchKind.PLAIN else _TEXT // 2
        for rows_of_text in (self._text[:first], self._text[first:-1]):
            model.forward(chain_batch(rows_of_text, len(rows_of_text)), [cache])
            cache.commit(list(range(len(rows_of_text))))
        batch = tree_batch(self._text[-1:], tree, wants_numbers=True)
        logits = model.forward(batch, [cache])
        rows = [logits.row(row).copy() for row in range(len(tree) + 1)]
        cache.commit([0, *(1 + node for node in ancestors(tree, len(tree) - 1))])
        after = model.forward(chain_batch(self._last, 0, wants_numbers=True), [cache])
        logits_of_rows = torch.from_numpy(np.stack([*rows, after.row(0)]))
        tolerance = _TOLERANCES.get(model.dtype, _OTHERWISE)
        return _close(logits_of_rows, self._expected[kind].cpu(), tolerance=tolerance)

    def _tree(self, kind: BatchKind) -> DraftTree:
        parents = np.array(_PARENTS[kind], np.int32)
        tree = DraftTree.chain(self._nodes[: len(parents)], Source.MODEL)
        tree.parents = parents
        return tree

    def _expect(self, module: nn.Module, tree: DraftTree) -> Tensor:
        """Return logits of the root, of every node, and of one token after the last node."""
        rows: dict[int, Tensor] = {}
        final = len(tree) - 1
        leaves = sorted(set(range(len(tree))) - set(tree.parents.tolist())) or [-1]
        for leaf in leaves:
            path = ancestors(tree, leaf)
            ids = np.concatenate([self._text, tree.tokens[path], self._last])
            device = next(module.parameters()).device
            with torch.inference_mode():
                tokens = torch.from_numpy(ids.astype(np.int64)).to(device)
                logits = module(input_ids=tokens[None], use_cache=False).logits[0].float()
            rows.update(zip([-1, *path], logits[_TEXT - 1 :], strict=False))
            if leaf == final:
                rows[len(tree)] = logits[-1]
        return torch.stack([rows[node] for node in range(-1, len(tree) + 1)])


def ancestors(tree: DraftTree, node: int) -> list[int]:
    """Return the nodes from the root's child down to ``node``; none for the root (-1)."""
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = int(tree.parents[node])
    return path


def _close(actual: Tensor, expected: Tensor, *, tolerance: float) -> bool:
    """Equal up to rounding, measured against how far logits of different rows lie apart."""
    if actual.shape != expected.shape or not bool(torch.isfinite(actual).all()):
        return False
    spread = (expected[1:] - expected[:-1]).abs().mean(-1).min()
    error = (actual - expected).abs().mean(-1).max()
    return bool(error <= tolerance * spread)
