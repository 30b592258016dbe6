"""Objects that live as long as the process, kept from the collector of garbage."""

from __future__ import annotations

import gc


def settle() -> None:
    """Have the collector leave alone all that there is: with the libraries of models loaded, going
    through it takes a quarter of a second, in the middle of whatever is being answered."""
    gc.collect()
    gc.freeze()
