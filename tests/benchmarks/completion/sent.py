"""Datastores of a server: a case's own file, common code, and what a client sends along."""

from __future__ import annotations

import numpy as np

from accel.text.tokenizer import Tokenizer
from lsp_server.tasks.completion.sent_text import continuations_to_send, places_to_send
from lsp_server.tasks.completion.similar_places import IndexedFiles
from lsp_server.text.byte_budget import fitting_snippets
from repo_index.datastore import NO_FILES_DEAD, REPOSITORY, IndexSnapshot
from repo_index.segment import Segment
from tests.benchmarks.cases import CompletionCase
from tests.benchmarks.datastores import CaseDatastores, TokenFiles, own_paths


class SentDatastores(CaseDatastores):
    """Snapshots of what a server knows of a case, whose client has the whole repository."""

    def __init__(self, tokenizer: Tokenizer, common: TokenFiles, most_bytes: int) -> None:
        super().__init__(tokenizer, common)
        self._most_bytes = most_bytes

    def snapshot(self, case: CompletionCase, *, left_only: bool) -> IndexSnapshot:
        """Return the datastore of what is sent for ``case``, of its own file and of common code."""
        parts = super().snapshot(case, left_only=left_only).parts
        others = [(part.segment, part.layer, part.dead) for part in parts]
        own = self._own_files(case, left_only=left_only)
        if self._segment is not None:
            files = IndexedFiles(IndexSnapshot(others[:1]))
            before, after = own_paths(case)
            suffix = own.get(after, np.empty(0, np.int32))
            decode = self._tokenizer.decode
            sent = fitting_snippets(
                self._most_bytes,
                [
                    continuations_to_send(files, own[before], decode),
                    *places_to_send(files, own[before], suffix, case.path, decode),
                ],
            )
            known = {snippet.path: self._tokenizer.encode(snippet.text) for snippet in sent}
            others[0] = Segment.from_files(known), REPOSITORY, NO_FILES_DEAD
        return IndexSnapshot(others)
