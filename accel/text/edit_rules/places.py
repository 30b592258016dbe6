"""Places in a function that the transforms of the instruction edits share."""

from __future__ import annotations

import ast
import random
import re
import tokenize
from collections.abc import Callable

from accel.text.edit_rules.source_region import FunctionNode, Region, Replacement, docstring_of

# The slots of the instruction and the replacements.
Change = tuple[dict[str, str], list[Replacement]]
# Characters start to end (exclusive).
Place = tuple[int, int]
# Gives None where it does not apply. Given instruction and region, the result is determined.
Transform = Callable[[Region, FunctionNode, random.Random], Change | None]


def parameters(function: FunctionNode) -> list[ast.arg]:
    """All parameters but self and cls."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument for argument in every if argument.arg not in ("self", "cls")]


def with_default(function: FunctionNode) -> list[tuple[ast.arg, ast.expr | None]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = [
        *zip(positional, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [(argument, value) for argument, value in pairs if argument.arg not in ("self", "cls")]


def some_name(region: Region, function: FunctionNode, rng: random.Random) -> str | None:
    given = [argument.arg for argument in parameters(function)]
    return rng.choice(given) if given else None


def signature_end(region: Region, function: FunctionNode) -> tuple[int, int] | None:
    """Places of the closing parenthesis and of the colon of the signature."""
    depth, closing, first = 0, -1, region.start(function)
    for token in region.tokens():
        if token.start < first or token.type != tokenize.OP:
            continue
        if token.text in "([{":
            depth += 1
        elif token.text in ")]}":
            depth -= 1
            if depth == 0 and closing < 0:
                closing = token.start
        elif token.text == ":" and depth == 0 and closing >= 0:
            return closing, token.start
    return None


def body_start(region: Region, function: FunctionNode) -> int:
    """Start of the line where code after the docstring begins."""
    docstring = docstring_of(function)
    if docstring is None:
        first = function.body[0]
        decorated = getattr(first, "decorator_list", None)
        return region.line_start(decorated[0].lineno if decorated else first.lineno)
    if len(function.body) == 1:
        return region.line_start((docstring.end_lineno or 0) + 1)
    assert docstring.end_lineno is not None
    return region.line_start(docstring.end_lineno + 1)


def insert_first(region: Region, function: FunctionNode, lines: list[str]) -> list[Replacement]:
    indent = region.indent(function.body[0])
    place = body_start(region, function)
    text = "".join(f"{indent}{line}\n" for line in lines)
    if place and region.source[place - 1] != "\n":
        text = "\n" + text[:-1]
    return [Replacement(place, place, text)]


def docstring_lines(region: Region, docstring: ast.Expr) -> tuple[int, int] | None:
    """Characters of the docstring's lines and of the blank lines after it."""
    start, end = region.line_start(docstring.lineno), region.end(docstring)
    rest = re.compile(r"[ \t]*(?:\n|$)(?:[ \t]*\n)*").match(region.source, end)
    if region.source[start : region.start(docstring)].strip() or not rest:
        return None
    return start, rest.end()
