"""Instruction edits made from plain source by syntax-tree transforms and checked by rule."""

from __future__ import annotations

import ast
import random
import warnings
from dataclasses import dataclass

from accel.text.edit_rules import bodies as edit_bodies
from accel.text.edit_rules import renames as edit_renames
from accel.text.edit_rules import signatures as edit_signatures
from accel.text.edit_rules.phrases import instruction, said_parts
from accel.text.edit_rules.places import Change, Transform, docstring_lines
from accel.text.edit_rules.source_region import (
    FunctionNode,
    Region,
    Replacement,
    apply,
    docstring_of,
    led_by_newline,
)

# How often each kind is drawn; given instruction and text, all but write_docstring are determined.
SHARES: dict[str, float] = {
    "rename_parameter": 18,
    "rename_variable": 16,
    "rename_function": 8,
    "add_docstring": 6,
    "remove_docstring": 7,
    "write_docstring": 5,
    "add_type_hint": 5,
    "add_return_type": 4,
    "remove_type_hints": 5,
    "change_quotes": 6,
    "to_fstring": 7,
    "add_guard": 5,
    "add_print": 3,
    "remove_prints": 3,
    "add_logging": 3,
    "add_parameter": 5,
    "change_default": 6,
    "remove_comments": 7,
    "wrap_try": 3,
    "invert_if": 7,
    "make_async": 2,
    "add_decorator": 3,
    "remove_decorators": 3,
}
KINDS = tuple(SHARES)
EXACT_KINDS = tuple(kind for kind in KINDS if kind != "write_docstring")

# Rare in real code, so half of their sources are made by the opposite transform.
_OPPOSITES = {
    "remove_prints": "add_print",
    "remove_decorators": "add_decorator",
    "remove_type_hints": "add_type_hint",
}
_BARE = frozenset({"add_docstring", "write_docstring"})


@dataclass(frozen=True)
class EditExample:
    """An instruction, the text before and after it, and the character spans of `after` it made."""

    kind: str
    parts: tuple[str, ...]
    """The instruction; in the wording of prompts every second part fills a slot."""
    before: str
    after: str
    changed: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, int], ...] = ()
    """Character spans of `before` that gave way to `changed`; none where the instruction leaves
    open which."""

    @property
    def instruction(self) -> str:
        """The instruction as one text."""
        return "".join(self.parts)


def _transform(kind: str) -> Transform:
    for module in (edit_renames, edit_signatures, edit_bodies):
        if hasattr(module, kind):
            found: Transform = getattr(module, kind)
            return found
    raise AssertionError(f"no transform makes {kind}")


def _function_of(region: Region, rng: random.Random) -> FunctionNode | None:
    functions = region.functions()
    return rng.choice(functions) if functions else None


def _named(region: Region, name: str) -> FunctionNode | None:
    return next((found for found in region.functions() if found.name == name), None)


def _prepared(region: Region, kind: str, name: str, rng: random.Random) -> Region:
    """The region without the docstring, or with what is to be removed put in, where that helps."""
    function = _named(region, name)
    assert function is not None
    if kind in _BARE and docstring_of(function):
        change = edit_bodies.remove_docstring(region, function, rng)
    elif kind in _OPPOSITES and rng.random() < 0.5:
        change = _transform(_OPPOSITES[kind])(region, function, rng)
    else:
        change = None
    return Region(apply(region.source, change[1])[0]) if change else region


def _write_docstring(region: Region, name: str) -> Change | None:
    """The docstring that the function has, as the answer to a request for one."""
    function = _named(region, name)
    docstring = docstring_of(function) if function else None
    if function is None or docstring is None or len(function.body) == 1:
        return None
    lines = docstring_lines(region, docstring)
    if lines is None or lines[1] - lines[0] > 600:
        return None
    place = lines[0]
    return {}, [Replacement(place, place, region.source[lines[0] : lines[1]])]


def _make(source: str, kind: str, rng: random.Random, canonical: bool) -> EditExample | None:
    region = Region(source)
    function = _function_of(region, rng)
    if function is None:
        return None
    name, several = function.name, len(region.functions()) > 1
    if several and sum(found.name == name for found in region.functions()) > 1:
        return None
    written = _write_docstring(region, name) if kind == "write_docstring" else None
    if kind == "write_docstring" and written is None:
        return None
    region = _prepared(region, kind, name, rng)
    function = _named(region, name)
    if function is None:
        return None
    change = written or _transform(kind)(region, function, rng)
    if change is None:
        return None
    slots, replacements = change
    parts = said_parts(kind, slots) if canonical else (instruction(kind, slots, rng),)
    if several and kind not in (
        "rename_function",
        "change_quotes",
        "to_fstring",
        "remove_comments",
        "remove_prints",
    ):
        place = f" {rng.choice(('in', 'of'))} "
        parts = (*parts[:-1], parts[-1].rstrip(".") + place, name)
    replacements = led_by_newline(region.source, replacements)
    after, spans = apply(region.source, replacements)
    if after == region.source:
        return None
    ast.parse("if 1:\n" + after if after[:1] in (" ", "\t") else after)
    places = [] if written else [(item.start, item.end) for item in replacements]
    return EditExample(kind, parts, region.source, after, tuple(spans), tuple(places))


def make_edit(source: str, kind: str, seed: int, *, canonical: bool = False) -> EditExample | None:
    """An edit of one kind (see KINDS) of whole statements of Python, e.g. one function.

    The same source, kind and seed give the same edit. None where the kind does not apply.
    canonical: in the wording that prompts use for what they recognise, else in one by chance.
    `edit.before` is the source, without docstring or with an addition where the kind needs it.
    """
    if kind not in SHARES:
        raise ValueError(f"unknown kind of edit {kind!r}; known are {', '.join(KINDS)}")
    rng = random.Random(f"{kind} {seed}")
    try:
        return _make(source, kind, rng, canonical)
    except (SyntaxError, RecursionError):
        return None


def definitions(text: str, most: int) -> list[str]:
    """Functions and classes of a file as whole lines, of 60 to ``most`` characters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            definition = "".join(lines[first - 1 : node.end_lineno])
            if 60 <= len(definition) <= most:
                found.append(definition)
    return found


def draw_kind(rng: random.Random) -> str:
    """One kind by its share."""
    return rng.choices(KINDS, list(SHARES.values()))[0]
