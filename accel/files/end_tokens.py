"""The tokens that end a text, as the configs of a model name them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

logger = logging.getLogger(__name__)


def named_ends(values: Iterable[Any], vocabulary_size: int, model: object) -> frozenset[int]:
    """Return the ids in ``values``, each of which is one, a list of them, or None. Those that are
    no token's are passed over with a warning that names the ``model``."""
    ids: set[int] = set()
    for value in values:
        for token in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(token, int) and 0 <= token < vocabulary_size:
                ids.add(token)
            else:
                logger.warning(
                    "%s names token %s as an end and has %d tokens: that is passed over",
                    model,
                    token,
                    vocabulary_size,
                )
    return frozenset(ids)
