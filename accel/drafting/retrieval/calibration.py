"""Corrections of the acceptance model, learnt from what verifiers accept: log odds by source, match
length and depth, by an online Newton step of logistic regression."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.native.numba_cache import compiled
from operating_system.files import replace_file
from operating_system.folders import data_folder

MATCH_LENGTHS = 18
"""Longer matches count as this length."""
DEPTHS = 3
"""Groups of depths: the root's children, the next three levels, all below."""
# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
PRIOR_INFORMATION = 30.0
MOST_INFORMATION = 600.0
"""Information is forgotten above, so that corrections follow a changing task."""
FARTHEST = 2.0
SAVE_EVERY = 100
"""Completions between two saves: the process may be killed any time."""
_SOURCES = max(Source) + 1

logger = logging.getLogger(__name__)


@njit(nogil=True, inline="always")
def depth_group(depth: int) -> int:
    """Return the number of the ``DEPTHS`` for a node at ``depth`` (1 for children of the root)."""
    return 0 if depth <= 1 else (1 if depth <= 4 else 2)


@compiled(forceinline=True)
def learn_from(
    parents: TokenArray,
    probabilities: NDArray[np.float32],
    sources: NDArray[np.int8],
    matches: TokenArray,
    path: TokenArray,
    corrections: NDArray[np.float32],
    information: NDArray[np.float32],
) -> None:
    on_path = np.zeros(len(parents) + 1, np.int32)  # the last item stands for the root
    on_path[-1] = 1
    for i in range(len(path)):
        on_path[path[i]] = i + 2
    for node in range(len(parents)):
        above = on_path[parents[node]]
        if above == 0:
            continue
        parent_chance = 1.0 if parents[node] < 0 else probabilities[parents[node]]
        chance = min(max(probabilities[node] / parent_chance, 1e-4), 1 - 1e-4)
        right = 1.0 if on_path[node] else 0.0
        depth = depth_group(above)
        source = sources[node]
        length = min(matches[node], MATCH_LENGTHS - 1)
        new_information = information[depth, source, length] + chance * (1 - chance)
        information[depth, source, length] = min(new_information, MOST_INFORMATION)
        moved = corrections[depth, source, length] + (right - chance) / (
            PRIOR_INFORMATION + new_information
        )
        corrections[depth, source, length] = min(max(moved, -FARTHEST), FARTHEST)


class Calibration:
    """Corrections of the acceptance model, and how much is known of each. corrections, information:
    float32 [DEPTHS, sources, MATCH_LENGTHS]."""

    def __init__(self) -> None:
        self.corrections = np.zeros((DEPTHS, _SOURCES, MATCH_LENGTHS), np.float32)
        self.information = np.zeros_like(self.corrections)
        self._file: Path | None = None
        self._unsaved = 0

    def learn(self, tree: DraftTree, matches: TokenArray, path: list[int]) -> None:
        """Verification accepted ``path`` of ``tree``, and nothing cut it short. matches: int32
        [nodes], the longest match that spoke for each node."""
        if len(tree):
            learn_from(
                tree.parents,
                tree.probabilities,
                tree.sources,
                matches,
                np.array(path, np.int32),
                self.corrections,
                self.information,
            )

    @classmethod
    def of_model(cls, name: str) -> Calibration:
        """That of a model by its name, from disk, or a new one."""
        return cls.load(file_of(name))

    @classmethod
    def load(cls, file: Path) -> Calibration:
        """Return the calibration that ``save`` wrote; a new one if the file is missing, damaged or
        of another shape."""
        calibration = cls()
        calibration._file = file
        try:
            with np.load(file) as stored:
                corrections, information = stored["corrections"], stored["information"]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return calibration
        fits = corrections.shape == information.shape == calibration.corrections.shape
        if fits and np.isfinite(corrections).all() and (information >= 0).all():
            calibration.corrections[:] = np.clip(corrections, -FARTHEST, FARTHEST)
            calibration.information[:] = information
        return calibration

    def note_completion(self) -> None:
        """A completion is over: now and then save to the file that this was loaded from."""
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save_new()

    def save_new(self) -> None:
        """Save what is new to the file that this was loaded from. A full disk costs only that."""
        if not self._unsaved or self._file is None:
            return
        self._unsaved = 0
        try:
            self.save(self._file)
        except OSError as error:
            logger.warning("the calibration of drafts cannot be saved: %s", error)

    def save(self, file: Path) -> None:
        """Replace ``file`` in one step. Raises OSError when the folder cannot be written."""
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as unfinished:
                np.savez(unfinished, corrections=self.corrections, information=self.information)
            replace_file(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def file_of(model: str) -> Path:
    """Return the file with the calibration of a model, ``model`` being its name or folder."""
    key = hashlib.sha256(model.encode()).hexdigest()[:24]
    return data_folder() / "calibration" / f"{key}.npz"
