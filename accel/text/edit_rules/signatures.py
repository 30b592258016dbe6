"""Edits of signatures: annotations, parameters, defaults, async, decorators."""

from __future__ import annotations

import ast
import random
import re

from accel.text.edit_rules import names
from accel.text.edit_rules.places import Change, signature_end, with_default
from accel.text.edit_rules.source_region import FunctionNode, Region, Replacement


def add_type_hint(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Annotate one parameter that has no annotation."""
    pairs = [pair for pair in with_default(function) if pair[0].annotation is None]
    if not pairs:
        return None
    argument, value = rng.choice(pairs)
    hint, end = names.random_type(rng), region.end(argument)
    slots = {"name": argument.arg, "type": hint}
    if value is None:
        return slots, [Replacement(end, end, f": {hint}")]
    between = region.source[end : region.start(value)]
    if not re.fullmatch(r"\s*=\s*", between):
        return None
    return slots, [Replacement(end, region.start(value), f": {hint} = ")]


def add_return_type(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Annotate the return value of a function without such an annotation."""
    places = signature_end(region, function) if function.returns is None else None
    if places is None:
        return None
    hint = rng.choice((names.random_type(rng), "None"))
    return {"type": hint}, [Replacement(places[0] + 1, places[1], f" -> {hint}")]


def remove_type_hints(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Remove every annotation of the signature."""
    found: list[Replacement] = []
    star = [(a, None) for a in (function.args.vararg, function.args.kwarg) if a is not None]
    own = [*function.args.posonlyargs, *function.args.args][:1]
    first = [(a, None) for a in own if a.arg in ("self", "cls")]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [*first, *with_default(function), *star]
    for argument, value in pairs:
        if argument.annotation is None:
            continue
        name_end = region.start(argument) + len(argument.arg)
        end = region.end(argument)
        if value is None:
            found.append(Replacement(name_end, end, ""))
        elif re.fullmatch(r"\s*=\s*", region.source[end : region.start(value)]):
            found.append(Replacement(name_end, region.start(value), "="))
        else:
            return None
    if function.returns is not None:
        places = signature_end(region, function)
        if places is None:
            return None
        found.append(Replacement(places[0] + 1, places[1], ""))
    return ({}, found) if found else None


def add_parameter(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Add a last parameter with a default; its layout follows the parameter before it."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        return None
    new, value = names.new_name(region.source, rng), names.random_value(rng)
    slots = {"new": new, "value": value}
    every = [*arguments.posonlyargs, *arguments.args]
    text = f"{new}={value}"
    if not every:
        places = signature_end(region, function)
        if places is None or region.source[places[0] - 1] != "(":
            return None
        return slots, [Replacement(places[0], places[0], text)]
    last = every[-1]
    end = region.end(arguments.defaults[-1]) if arguments.defaults else region.end(last)
    if not re.compile(r"\s*,?\s*\)").match(region.source, end):
        return None
    line = region.line_start(last.lineno)
    lead = region.source[line : region.start(last)]
    text = f",\n{lead}{text}" if not lead.strip() else f", {text}"
    return slots, [Replacement(end, end, text)]


def change_default(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Give one parameter another default."""
    pairs = [(a, v) for a, v in with_default(function) if isinstance(v, (ast.Constant, ast.Name))]
    if not pairs:
        return None
    argument, old = rng.choice(pairs)
    value = names.random_value(rng)
    if value == region.text(old):
        return None
    place = Replacement(region.start(old), region.end(old), value)
    return {"name": argument.arg, "value": value}, [place]


def make_async(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Turn def into async def."""
    if isinstance(function, ast.AsyncFunctionDef):
        return None
    start = region.start(function)
    return {}, [Replacement(start, start, "async ")]


def add_decorator(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Put a decorator above the function and its other decorators."""
    decorator = "@" + rng.choice(
        (
            "staticmethod",
            "classmethod",
            "property",
            "cache",
            "functools.cache",
            "override",
            "final",
            names.new_name(region.source, rng),
            f"functools.lru_cache(maxsize={rng.randrange(512)})",
            f'deprecated("{names.random_sentence(rng)}")',
            "abstractmethod",
            "timed",
            "no_grad()",
        )
    )
    first = function.decorator_list[0].lineno if function.decorator_list else function.lineno
    place = region.line_start(first)
    text = f"{region.indent(function)}{decorator}\n"
    return {"decorator": decorator}, [Replacement(place, place, text)]


def remove_decorators(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Remove all decorators of the function."""
    if not function.decorator_list:
        return None
    start = region.line_start(function.decorator_list[0].lineno)
    return {}, [Replacement(start, region.line_start(function.lineno), "")]
