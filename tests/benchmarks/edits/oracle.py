"""What drafting could reach at most: drafts that are always right."""

from __future__ import annotations

import numpy as np

from accel.decoding.engine import Engine
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from accel.verification.sampling import Sampling
from tests.benchmarks.edits.cases import end_of
from tests.benchmarks.edits.methods import EditMethod
from tests.benchmarks.edits.model import Edited, EditTask, EngineEdits
from tests.benchmarks.methods import ORACLE


class OracleDrafter:
    """Drafts a text that it was told, from where the context stands in it."""

    name = ORACLE

    def __init__(self, text: TokenArray) -> None:
        """``text``: all that the model is going to write, its end token too. int32 [n]."""
        self._text = text
        self._written = 0

    def begin(self, request: DraftRequest) -> None:
        """Nothing is written."""
        self._written = 0

    def draft(self, max_nodes: int) -> DraftTree:
        """The next tokens of the text, in a chain as long as may be."""
        coming = self._text[self._written : self._written + max_nodes]
        return DraftTree.chain(coming, Source.PROMPT)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._written += len(tokens)


class OracleEdits:
    """Edits as plain decoding writes them, decoded once more from drafts of just that: every row
    is accepted, and drafting takes no time. No drafter is faster on the same forward."""

    def __init__(self, engine: Engine, *, max_nodes: int, sampling: Sampling) -> None:
        self._engine = engine
        self._max_nodes = max_nodes
        self._sampling = sampling

    def __call__(self, task: EditTask) -> Edited:
        """Decode twice; what it costs is told of the second time."""
        written = self._edited(task, None).tokens
        end = np.array(end_of(self._engine.tokenizer), np.int32)
        return self._edited(task, OracleDrafter(np.concatenate([written, end])))

    def _edited(self, task: EditTask, drafter: OracleDrafter | None) -> Edited:
        decode = EngineEdits(
            self._engine,
            EditMethod(lambda: drafter),
            max_nodes=self._max_nodes,
            sampling=self._sampling,
        )
        return decode(task)
