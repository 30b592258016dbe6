"""Changes that were read and encoded but not yet committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from repo_index.reading import Content
from repo_index.segment import FACTS, Segment


@dataclass
class PendingChanges:
    """Files to add, with what is known of them; paths to remove; newer times of unchanged files."""

    removed: set[str] = field(default_factory=set)
    touched: dict[str, tuple[int, int]] = field(default_factory=dict)
    files: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    tokens: int = 0
    _facts: list[tuple[int, int, int, tuple[int, int]]] = field(default_factory=list)
    _reasons: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.files or self.removed or self.touched)

    def add(self, path: str, content: Content, ids: NDArray[np.int32]) -> None:
        """A new or changed file. ids: int32, empty when it is left out."""
        times = content.fingerprint
        self.files[path] = ids
        self._facts.append((times.size, times.modified, times.changed, content.key))
        self._reasons.append(content.reason)
        self.tokens += len(ids)

    def segment(
        self, dtype: type[np.unsignedinteger], threads: int, pause: Callable[[], None]
    ) -> Segment | None:
        """Return the added files, sorted; None without any. ``pause`` is called now and then."""
        if not self.files:
            return None
        return Segment.from_files(
            self.files,
            dtype=dtype,
            facts=np.array(self._facts, FACTS),
            reasons=self._reasons,
            threads=threads,
            pause=pause,
        )
