"""Code that edits of every kind of instruction can be made of, and such edits."""

from __future__ import annotations

from accel.training.edits import EditExample, make_edit

FUNCTION = '''@wraps(handler)
def total(prices, tax: int = 2, *, memo="none"):
    """Sum up."""
    # Everything counts.
    print(prices)
    kept = sum(prices) * tax
    text = "{} of {}".format(kept, memo)
    if kept == tax:
        text = "none"
    else:
        text = 'some'
    return text
'''
BARE = 'def total(prices, tax=2):\n    kept = sum(prices) * tax\n    return str(kept) + "!"\n'
"""Without docstring, comment and types."""
METHOD = "".join(f"    {line}\n" for line in BARE.splitlines())
"""Indented, so that it does not parse as it stands."""


def edits_of(kind: str, *sources: str, seeds: int) -> list[EditExample]:
    """The edits of a kind that ``sources`` give, with seeds from 0."""
    made = [make_edit(source, kind, seed) for source in sources for seed in range(seeds)]
    return [edit for edit in made if edit is not None]
