"""Datastores in memory, of token ids by path."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from repo_index.datastore import Datastore
from repo_index.segment import Segment

Files = Mapping[str, NDArray[np.int32]]


def datastore_of(repository: Files, common: Files | None = None) -> Datastore:
    """Return a datastore of the repository and of common code."""
    layers = [[Segment.from_files(files)] if files else [] for files in (repository, common)]
    return Datastore(layers[0], layers[1])
