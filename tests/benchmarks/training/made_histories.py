"""Next edits made up from Python files: the same mechanical change, made here and due there.

Each kind gives the places of one change in the order in which a person makes them; the first ones
are made, and the window around the next holds what is left of them.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from tests.benchmarks.training.function_source import FunctionNode, Substitution, replaced
from tests.benchmarks.training.samples.code import CodeFile, lines_of
from tests.benchmarks.training.samples.commit_edits import blocks_of
from tests.benchmarks.training.samples.next_edits import WINDOW_REACH, NextEdit, shown_change

Kind = Callable[["ModuleSource", random.Random], "list[Substitution] | None"]
"""The places of a change, the first of which is made first; None where the kind does not apply."""

LEAST_PLACES = 2
SETTLED_SHARE = 1 / 10
"""Histories after which nothing is left to change in the window."""
_TYPES = ("int", "str", "float", "bool", "Path", "bytes", "list[str]", "dict[str, int]")
_NAMES = ("value", "item", "source", "target", "limit", "options", "entry", "label", "offset")


class ModuleSource:
    """A Python file, its syntax tree, and where nodes stand. Raises SyntaxError or ValueError."""

    def __init__(self, text: str) -> None:
        self.text = text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(text)
        self._lines = lines_of(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.functions: list[FunctionNode] = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]

    def offset(self, line: int, column: int) -> int:
        """The character at a line, from 1, and a column of UTF-8 bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.arg) -> tuple[int, int]:
        """The characters of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def calls(self, name: str) -> list[ast.Call]:
        """Calls of a function by its plain name, from the top."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
            and not any(isinstance(one, ast.Starred) for one in node.args)
        ]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def made_history(file: CodeFile, rng: random.Random) -> NextEdit | None:
    """A mechanical change of a file, made in part; None where none is found in it."""
    try:
        source = ModuleSource(file.text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for kind in rng.sample(KINDS, len(KINDS)):
        places = kind(source, rng)
        if places is None or len(places) < LEAST_PLACES or _overlap(places):
            continue
        text = file.text
        if kind is _added_parameter:
            text, places = _backwards(text, places)
        return _made_in_part(file.path, text, places, rng)
    return None


def _overlap(places: list[Substitution]) -> bool:
    ordered = sorted(places, key=lambda one: (one.start, one.end))
    return any(other.start < one.end for one, other in pairwise(ordered))


def _backwards(text: str, places: list[Substitution]) -> tuple[str, list[Substitution]]:
    """The text that deletions make, and the insertions that make the given one of it."""
    made: dict[Substitution, Substitution] = {}
    removed = 0
    for one in sorted(places, key=lambda each: each.start):
        at = one.start - removed
        made[one] = Substitution(at, at, text[one.start : one.end])
        removed += one.end - one.start
    return replaced(text, places), [made[one] for one in places]


def _made_in_part(
    path: str, text: str, places: list[Substitution], rng: random.Random
) -> NextEdit | None:
    is_settled = rng.random() < SETTLED_SHARE
    count = len(places) if is_settled else min(rng.choice([1, 1, 1, 2, 2, 3]), len(places) - 1)
    old = lines_of(text)
    current = lines_of(replaced(text, places[:count]))
    whole = lines_of(replaced(text, places))
    made = [block for block in blocks_of(old, current) if block.is_change]
    left = [block for block in blocks_of(current, whole) if block.is_change]
    if not made or bool(left) == is_settled:
        return None
    near = left[0] if left else made[-1]
    at = near.old_start if left else near.new_start
    cursor = min(max(at + rng.choice([0, 0, 1, -1, -3, 3]), 0), len(current) - 1)
    first, end = max(cursor - WINDOW_REACH, 0), min(cursor + WINDOW_REACH + 1, len(current))
    updated = current[first:end]
    for block in reversed(left):
        if first <= block.old_start and block.old_end <= end:
            part = slice(block.old_start - first, block.old_end - first)
            updated[part] = whole[block.new_start : block.new_end]
    window = "".join(current[first:end])
    if left and "".join(updated) == window:
        return None
    recent = [shown_change(old, current, block, rng) for block in made[-3:]]
    return NextEdit(path, recent, window, window, "".join(updated))


def _new_name(text: str, old: str, rng: random.Random) -> str | None:
    names = [*_NAMES, f"{old}_{rng.choice(_NAMES)}", f"{rng.choice(_NAMES)}_{old}"]
    new = rng.choice(names)
    return None if re.search(rf"\b{new}\b", text) else new


def _renamed_local(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """A parameter or local name of a function, at all of its uses."""
    function = rng.choice(source.functions) if source.functions else None
    if function is None or any(
        isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal))
        for node in ast.walk(function)
        if node is not function
    ):
        return None
    uses: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            start = source.offset(node.lineno, node.col_offset)
            uses[node.arg].append((start, start + len(node.arg)))
        elif isinstance(node, ast.Name):
            uses[node.id].append(source.span(node))
            given |= {node.id} if isinstance(node.ctx, ast.Store) else set()
    names = [name for name in sorted(given) if len(uses[name]) > 1 and name not in ("self", "cls")]
    old = rng.choice(names) if names else ""
    new = _new_name(source.text, old, rng) if old else None
    if new is None:
        return None
    return [Substitution(start, end, new) for start, end in sorted(set(uses[old]))]


def _called_function(source: ModuleSource, rng: random.Random) -> FunctionNode | None:
    found = [
        node
        for node in source.tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and source.calls(node.name)
        and not (node.args.posonlyargs or node.args.vararg or node.args.kwarg)
    ]
    return rng.choice(found) if found else None


def _removed_parameter(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """The last parameter of a function goes, and what calls pass for it."""
    function = _called_function(source, rng)
    if function is None or len(function.args.args) < 2 or function.args.defaults:
        return None
    before, last = function.args.args[-2:]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if last.arg in used or function.args.kwonlyargs:
        return None
    places = [Substitution(source.span(before)[1], source.span(last)[1], "")]
    for call in source.calls(function.name):
        if call.keywords or len(call.args) != len(function.args.args):
            return None
        one, other = call.args[-2:]
        places.append(Substitution(source.span(one)[1], source.span(other)[1], ""))
    return places


def _renamed_keyword(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """A parameter, its uses, and the keyword of calls."""
    function = _called_function(source, rng)
    if function is None:
        return None
    calls = source.calls(function.name)
    passed = {one.arg for call in calls for one in call.keywords if one.arg}
    own = [*function.args.args, *function.args.kwonlyargs]
    known = [one for one in own if one.arg in passed]
    if not known:
        return None
    parameter = rng.choice(known)
    new = _new_name(source.text, parameter.arg, rng)
    if new is None:
        return None
    start = source.offset(parameter.lineno, parameter.col_offset)
    places = [Substitution(start, start + len(parameter.arg), new)]
    places += [
        Substitution(*source.span(node), new)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == parameter.arg
    ]
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg == parameter.arg:
                start = source.offset(keyword.lineno, keyword.col_offset)
                places.append(Substitution(start, start + len(parameter.arg), new))
    return sorted(places, key=lambda one: one.start)


def _added_parameter(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """The last parameter of a function comes, and calls pass the local of its name: told backwards,
    by a file that has them."""
    function = _called_function(source, rng)
    if function is None or len(function.args.args) < 2 or function.args.defaults:
        return None
    if function.args.kwonlyargs:
        return None
    before, last = function.args.args[-2:]
    places = [Substitution(source.span(before)[1], source.span(last)[1], "")]
    for call in source.calls(function.name):
        if call.keywords or len(call.args) != len(function.args.args):
            return None
        one, other = call.args[-2:]
        if not (isinstance(other, ast.Name) and other.id == last.arg):
            return None
        places.append(Substitution(source.span(one)[1], source.span(other)[1], ""))
    return places


def _changed_literal(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """The same literal as the same argument of the same call, several times."""
    groups: defaultdict[tuple[str, object, str], list[ast.expr]] = defaultdict(list)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        passed = [(str(place), one) for place, one in enumerate(node.args)]
        passed += [(one.arg or "", one.value) for one in node.keywords]
        for role, one in passed:
            if isinstance(one, ast.Constant) and type(one.value) in (int, str, bool):
                text = ast.unparse(one)
                groups[(ast.unparse(node.func), role, text)].append(one)
    known = [group for _, group in sorted(groups.items(), key=str) if len(group) > 2]
    if not known:
        return None
    group = rng.choice(known)
    first = group[0]
    assert isinstance(first, ast.Constant)
    new = repr(not first.value) if isinstance(first.value, bool) else repr(rng.randrange(2, 900))
    if isinstance(first.value, str):
        new = repr(f"{rng.choice(_NAMES)}").replace("'", '"')
    return sorted(
        (Substitution(*source.span(one), new) for one in group), key=lambda one: one.start
    )


def _repeated_guard(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """Each parameter of a function is looked at before it is used, in the same words."""
    usable = [one for one in source.functions if len(one.args.args) > 2]
    if not usable:
        return None
    function = rng.choice(usable)
    body = [one for one in function.body if not _is_docstring(one)]
    names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    if not body or len(names) < LEAST_PLACES:
        return None
    place = source.offset(body[0].lineno, 0)
    indent = " " * body[0].col_offset
    wording = rng.choice(
        [
            '{i}if {n} is None:\n{i}    raise ValueError("{n} is missing")\n',
            "{i}if not {n}:\n{i}    return None\n",
            "{i}assert {n} is not None\n",
        ]
    )
    return [Substitution(place, place, wording.format(i=indent, n=name)) for name in names]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _repeated_type(source: ModuleSource, rng: random.Random) -> list[Substitution] | None:
    """Parameters of one name get the same type in one function after another."""
    groups: defaultdict[str, list[ast.arg]] = defaultdict(list)
    for function in source.functions:
        for one in [*function.args.args, *function.args.kwonlyargs]:
            if one.annotation is None and one.arg not in ("self", "cls"):
                groups[one.arg].append(one)
    known = [group for _, group in sorted(groups.items()) if len(group) >= LEAST_PLACES]
    if not known:
        return None
    group, kind = rng.choice(known), rng.choice(_TYPES)
    ends = sorted(source.span(one)[1] for one in group)
    return [Substitution(end, end, f": {kind}") for end in ends]


KINDS: tuple[Kind, ...] = (
    _renamed_local,
    _removed_parameter,
    _renamed_keyword,
    _added_parameter,
    _changed_literal,
    _repeated_guard,
    _repeated_type,
)
