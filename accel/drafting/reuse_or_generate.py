"""EfficientEdit's two phases with our copies: reuse what is there, generate what is new."""

from __future__ import annotations

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import ComputingDrafter, Drafter, DraftRequest
from accel.execution.forwards import Forwards

LEAST_CHANCE = 0.5
"""The draft model drafts if copies of a first token are less likely than this."""


class ReuseOrGenerateDrafter(ComputingDrafter):
    """Copies where one is likely; elsewhere a draft model proposes the new text. After Peiding Wang
    et al., "Reuse or Generate? Accelerating Code Editing via Edit-Oriented Speculative Decoding",
    2025, section III, without its phases."""

    name = "redraft"

    def __init__(self, copies: Drafter, draft_model: ComputingDrafter) -> None:
        self._copies, self._draft_model = copies, draft_model

    def begin_steps(self, request: DraftRequest) -> Forwards[None]:
        """A new text begins for both."""
        self._copies.begin(request)
        yield from self._draft_model.begin_steps(request)

    def draft_steps(self, max_nodes: int) -> Forwards[DraftTree]:
        """Return a tree of copies; where none is likely, a chain of the draft model is in it,
        too."""
        copies = self._copies.draft(max_nodes)
        if float(copies.probabilities[copies.parents == -1].sum()) >= LEAST_CHANCE:
            return copies
        chain = yield from self._draft_model.draft_steps(max_nodes)
        return with_chain(copies, chain).prefix(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Both follow the text."""
        self._copies.commit(tree, path, tokens)
        self._draft_model.commit(tree, path, tokens)


def with_chain(tree: DraftTree, chain: DraftTree) -> DraftTree:
    """Return both in one tree, likeliest nodes first. What they have in common stays the tree's
    own."""
    tokens, parents = tree.tokens.tolist(), tree.parents.tolist()
    children = {pair: node for node, pair in enumerate(zip(parents, tokens, strict=True))}
    chances, sources = tree.probabilities.tolist(), tree.sources.tolist()
    parent = -1
    for token, chance in zip(chain.tokens.tolist(), chain.probabilities.tolist(), strict=True):
        node = children.get((parent, token))
        if node is None:
            node = len(tokens)
            tokens.append(token)
            parents.append(parent)
            chances.append(chance)
            sources.append(Source.DRAFT_MODEL)
        parent = node
    for node, parent in enumerate(parents):
        # No likelier than its parent, so that a stable order leaves it after that one.
        chances[node] = min(chances[node], chances[parent] if parent >= 0 else 1.0)
    return DraftTree.likeliest_first(tokens, parents, chances, sources)[0]
