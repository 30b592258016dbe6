"""Windows of a workspace's files that are most like a text, found in the index of drafting.

As RepoCoder retrieves without a second model (Fengji Zhang et al., EMNLP 2023): windows of 20 lines
in steps of 10, compared by the Jaccard similarity of their tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lsp_server.shared.contract.jobs import ContextSnippet

if TYPE_CHECKING:
    from repo_index.datastore import IndexSnapshot
    from repo_index.segment import Segment

WINDOW_LINES, STEP_LINES = 20, 10
MOST_WINDOWS = 10
BUFFER, REPOSITORY = 3, 4
"""Layers of ``repo_index.datastore`` whose windows count."""

Encode = Callable[[str], NDArray[np.int32]]
Decode = Callable[[NDArray[np.int32]], str]


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows of one segment. files, starts, ends: int64 [n], a file's number and places in the
    segment's stream; kinds: int64 [m], the different tokens of all windows one after another;
    firsts: int64 [n], where those of each begin; sizes: int64 [n], how many they are."""

    files: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    kinds: NDArray[np.int64]
    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]


class SimilarWindows:
    """Finds windows in the snapshots of one tokenizer's index; segments are cut up once."""

    def __init__(self, encode: Encode, decode: Decode, spellings: Sequence[bytes]) -> None:
        """``spellings``: what every token of the vocabulary spells."""
        self._encode = encode
        self._decode = decode
        self._line_ends = np.array([b"\n" in spelt for spelt in spellings], np.bool_)
        self._known: list[tuple[Segment, _Windows]] = []

    def most_similar(
        self, snapshot: IndexSnapshot, query: str, without: Container[str] = ()
    ) -> list[ContextSnippet]:
        """Windows like the last lines of ``query``, the most similar first, none overlapping.

        Files whose path is in ``without`` give none, nor does common code.
        """
        last = "".join(query.splitlines(keepends=True)[-WINDOW_LINES:])
        kinds = np.unique(self._encode(last))
        asked = np.zeros(len(self._line_ends), np.bool_)
        asked[kinds] = True
        found: list[tuple[float, Segment, _Windows, int]] = []
        for part in snapshot.parts:
            if part.layer not in (BUFFER, REPOSITORY) or not len(kinds):
                continue
            windows = self._windows_of(part.segment)
            if not len(windows.files):
                continue
            shared = np.add.reduceat(asked[windows.kinds], windows.firsts).astype(np.int64)
            similarity = shared / (windows.sizes + len(kinds) - shared)
            if len(part.dead):
                similarity[part.dead[windows.files]] = 0
            best = np.argsort(-similarity, kind="stable")[: 4 * MOST_WINDOWS]
            found += [(float(similarity[i]), part.segment, windows, int(i)) for i in best]
        found.sort(key=lambda each: -each[0])
        return self._apart(found, without)

    def _apart(
        self, found: list[tuple[float, Segment, _Windows, int]], without: Container[str]
    ) -> list[ContextSnippet]:
        """The texts of the best windows that do not overlap a better one."""
        snippets: list[ContextSnippet] = []
        taken: list[tuple[str, int, int]] = []
        for similarity, segment, windows, i in found:
            path = segment.paths[int(windows.files[i])]
            start, end = int(windows.starts[i]), int(windows.ends[i])
            if not similarity or path in without:
                continue
            if any(path == file and start < to and end > at for file, at, to in taken):
                continue
            taken.append((path, start, end))
            text = self._decode(segment.tokens[start:end].astype(np.int32))
            snippets.append(ContextSnippet(path, text.strip("\n")))
            if len(snippets) == MOST_WINDOWS:
                break
        return snippets

    def _windows_of(self, segment: Segment) -> _Windows:
        for known, windows in self._known:
            if known is segment:
                return windows
        windows = self._cut(segment)
        self._known = [*self._known[-15:], (segment, windows)]
        return windows

    def _cut(self, segment: Segment) -> _Windows:
        files: list[int] = []
        places: list[tuple[int, int]] = []
        kinds: list[NDArray[np.int64]] = []
        for number, (first, length) in enumerate(
            zip(segment.starts.tolist(), segment.lengths.tolist(), strict=True)
        ):
            tokens = segment.tokens[first : first + length].astype(np.int64)
            # A line begins with the token that ends the one before: it holds the indentation.
            lines = np.concatenate([[0], np.flatnonzero(self._line_ends[tokens])])
            for at in range(0, len(lines), STEP_LINES):
                start = int(lines[at])
                behind = at + WINDOW_LINES
                end = int(lines[behind]) if behind < len(lines) else length
                if end > start:
                    files.append(number)
                    places.append((first + start, first + end))
                    kinds.append(np.unique(tokens[start:end]))
                if behind >= len(lines):
                    break
        sizes = np.array([len(each) for each in kinds], np.int64)
        spans = np.array(places, np.int64).reshape(-1, 2)
        return _Windows(
            np.array(files, np.int64),
            spans[:, 0],
            spans[:, 1],
            np.concatenate([*kinds, np.empty(0, np.int64)]),
            np.cumsum(sizes) - sizes,
            sizes,
        )
