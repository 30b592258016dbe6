"""Edits that an instruction leaves nothing open about, made by rule on the syntax tree.

What is foreseen of an edit is a draft for the model to verify; which places it is about is marked
in its prompt.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from typing import Any, cast

from accel.text.edit_rules import bodies as edit_bodies
from accel.text.edit_rules import signatures as edit_signatures
from accel.text.edit_rules.places import Change, insert_first, signature_end, with_default
from accel.text.edit_rules.renames import renamed_places
from accel.text.edit_rules.source_region import FunctionNode, Region, Replacement, led_by_newline

Slots = dict[str, str]


def by_rule(kind: str, slots: Slots, source: str, within: str = "") -> list[Replacement]:
    """The edit of a piece of Python, in the order of its places.

    kind, slots: as in ``edits.make_edit``, and ``rename``, of every place of the name where the
    source does not parse. within: the function that is meant, the first where it is empty or
    unknown. Nothing for other kinds, and where the source does not parse or nothing in it is
    plainly what is meant.
    """
    if kind == "rename":
        places = renamed_places(source, slots["old"], within)
        return [Replacement(*place, slots["new"]) for place in places]
    edit = _EDITS.get(kind)
    if edit is None:
        return []
    try:
        region = Region(source)
        function = _function(region, within)
        change = edit(region, function, slots) if function else None
        return led_by_newline(source, change[1]) if change else []
    except (SyntaxError, RecursionError, LookupError, AssertionError):
        return []


def _function(region: Region, name: str) -> FunctionNode | None:
    functions = region.functions()
    found = (function for function in functions if function.name == name)
    return next(found, functions[0] if functions else None)


class _Wanted:
    """Stands for chance in the transforms of the training: the choice is what was asked for."""

    def __init__(self, region: Region, slots: Slots) -> None:
        self._region, self._slots = region, slots

    def choice(self, options: Any) -> Any:
        """The option that the slots name. Raises LookupError without one."""
        wanted = set(self._slots.values())
        for option in options:
            is_tuple = isinstance(option, tuple)
            named = self._region.text(option.test) if isinstance(option, ast.If) else option
            if (wanted & set(option)) if is_tuple else named in wanted:
                return option
        raise LookupError("nothing of what was asked for")


def _as_trained(transform: Callable[..., Change | None]) -> Callable[..., Change | None]:
    def edit(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
        return transform(region, function, cast(random.Random, _Wanted(region, slots)))

    return edit


def _first(*lines: str) -> Callable[..., Change | None]:
    """Lines, with slots filled in, first in the body; a tab stands for one step of indentation."""

    def edit(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
        step = region.indent(function.body[0])[len(region.indent(function)) :] or "    "
        written = [re.sub(r"<(\w+)>", lambda slot: slots[slot[1]], line) for line in lines]
        written = [line.replace("\t", step) for line in written]
        return {}, insert_first(region, function, written)

    return edit


def _add_decorator(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
    first = function.decorator_list[0].lineno if function.decorator_list else function.lineno
    place = region.line_start(first)
    text = f"{region.indent(function)}{slots['decorator']}\n"
    return {}, [Replacement(place, place, text)]


def _add_return_type(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
    places = signature_end(region, function)
    return ({}, [Replacement(places[0] + 1, places[1], f" -> {slots['type']}")]) if places else None


def _add_type_hint(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
    for argument, value in with_default(function):
        if argument.arg == slots["name"]:
            end = region.start(argument) + len(argument.arg)
            stop = region.end(argument) if value is None else region.start(value)
            assigned = "" if value is None else " = "
            return {}, [Replacement(end, stop, f": {slots['type']}{assigned}")]
    return None


def _change_default(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
    for argument, value in with_default(function):
        if argument.arg == slots["name"] and value is not None:
            return {}, [Replacement(region.start(value), region.end(value), slots["value"])]
    return None


def _add_parameter(region: Region, function: FunctionNode, slots: Slots) -> Change | None:
    text = f"{slots['new']}={slots['value']}"
    every = [*function.args.posonlyargs, *function.args.args]
    if not every:
        places = signature_end(region, function)
        return ({}, [Replacement(places[0], places[0], text)]) if places else None
    last, defaults = every[-1], function.args.defaults
    end = region.end(defaults[-1]) if defaults else region.end(last)
    lead = region.source[region.line_start(last.lineno) : region.start(last)]
    joint = ", " if lead.strip() else f",\n{lead}"
    return {}, [Replacement(end, end, joint + text)]


_EDITS: dict[str, Callable[[Region, FunctionNode, Slots], Change | None]] = {
    "add_docstring": _first('"""<text>"""'),
    "remove_docstring": _as_trained(edit_bodies.remove_docstring),
    "change_quotes": _as_trained(edit_bodies.change_quotes),
    "to_fstring": _as_trained(edit_bodies.to_fstring),
    "add_guard": _first("if <condition>:", "\t<action>"),
    "add_print": _first("print(<name>)"),
    "remove_prints": _as_trained(edit_bodies.remove_prints),
    "add_logging": _first('logger.<level>("<name>=%s", <name>)'),
    "remove_comments": _as_trained(edit_bodies.remove_comments),
    "wrap_try": _as_trained(edit_bodies.wrap_try),
    "invert_if": _as_trained(edit_bodies.invert_if),
    "add_type_hint": _add_type_hint,
    "add_return_type": _add_return_type,
    "remove_type_hints": _as_trained(edit_signatures.remove_type_hints),
    "add_parameter": _add_parameter,
    "change_default": _change_default,
    "make_async": _as_trained(edit_signatures.make_async),
    "add_decorator": _add_decorator,
    "remove_decorators": _as_trained(edit_signatures.remove_decorators),
}
