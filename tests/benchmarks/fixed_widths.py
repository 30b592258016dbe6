"""Numbers of rows of forwards in a bench, where an engine learns which pay."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from accel.engine import Engine


def begin_anew(engine: Engine) -> None:
    """Let an engine go by what is typical, and keep nothing of what it learns from cases."""
    if engine.model.fixed_widths is not None:
        engine.model.fixed_widths.forget()


def held(engine: Engine) -> AbstractContextManager[None]:
    """All methods decode a case by forwards of one number of rows: with another a text may be
    another, drafts or not."""
    widths = engine.model.fixed_widths
    return nullcontext() if widths is None else widths.held()
