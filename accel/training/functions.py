"""Single functions with a line of their body to be filled in: what an editor asks for most.

A file's piece of a thousand tokens has one hole of some ten; a short function teaches as much in a
tenth of the tokens, and shows how a body follows from its docstring.
"""

from __future__ import annotations

import ast
import random
import textwrap
import warnings

from accel.training.units import SUFFIX_FIRST_SHARE, Unit, UnitMaker

MOST_CHARACTERS = 1200
WHOLE_LINE_SHARE = 0.75
DEDENTED_SHARE = 0.8


def function_units(
    sources: list[str], maker: UnitMaker, row_length: int, tokens: int, rng: random.Random
) -> list[Unit]:
    """Functions among the given definitions, each with one hole, until they make up `tokens`
    tokens; sources without a function give nothing."""
    usable = [source for source in sources if len(source) <= MOST_CHARACTERS]
    found: list[Unit] = []
    total = tries = 0
    while total < tokens and usable and tries < 20 * len(usable) + 100:
        tries += 1
        source = rng.choice(usable)
        hole = draw_body_hole(source, rng)
        if hole is None:
            continue
        text, start, end = hole
        unit = maker.fill_in_the_middle(text, start, end, rng.random() < SUFFIX_FIRST_SHARE)
        if len(unit.ids) <= row_length:
            found.append(unit)
            total += len(unit.ids)
    return found


def draw_body_hole(source: str, rng: random.Random) -> tuple[str, int, int] | None:
    """A function's text, mostly dedented, and the start and end of a hole in a line of its body
    behind the docstring; None where the source is no function with such a line."""
    dedented = textwrap.dedent(source)
    first = _first_body_line(dedented)
    text = dedented if rng.random() < DEDENTED_SHARE else source
    lines = text.splitlines(keepends=True)
    filled = [n for n in range(first, len(lines)) if lines[n].strip()] if first else []
    if not filled:
        return None
    number = rng.choice(filled)
    start = sum(len(line) for line in lines[:number])
    end = start + len(lines[number].rstrip("\n"))
    if rng.random() >= WHOLE_LINE_SHARE:
        start = rng.randint(start, end)
    return text, start, end


def _first_body_line(text: str) -> int:
    """Index of the first line of a function's body behind its docstring; 0 where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):
            return 0
    if not body or not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return 0
    statements = body[0].body
    if ast.get_docstring(body[0], clean=False) is not None:
        statements = statements[1:]
    return statements[0].lineno - 1 if statements else 0
