"""Renames of parameters, local variables and functions, and the places that they are about."""

from __future__ import annotations

import ast
import random
import re

from accel.text.edit_rules import names
from accel.text.edit_rules.places import Change, Place, parameters
from accel.text.edit_rules.source_region import FunctionNode, Region, Replacement


def _bound_names(node: ast.AST) -> set[str]:
    """Names that a node inside a function gives a meaning of their own."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return set(node.names)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        return own if isinstance(node, ast.Lambda) else own | {node.name}
    if isinstance(node, (ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return {node.name} if node.name else set()
    if isinstance(node, ast.alias):
        return {node.asname or node.name.split(".")[0]}
    if isinstance(node, ast.JoinedStr):
        # Places inside f-strings are known from Python 3.12 on only.
        return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return set()


def _nested_scopes_bind(function: FunctionNode, name: str) -> bool:
    """Whether the name means something else somewhere inside, so that renaming is not plain."""
    inside = (node for node in ast.walk(function) if node is not function)
    return name == function.name or any(name in _bound_names(node) for node in inside)


def _uses(region: Region, tree: ast.AST, name: str) -> list[Place]:
    return [
        (region.start(node), region.end(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name
    ]


def _free_parameters(function: FunctionNode) -> list[ast.arg]:
    return [a for a in parameters(function) if not _nested_scopes_bind(function, a.arg)]


def _free_variables(function: FunctionNode) -> list[str]:
    given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(
        name for name in stored - given if name != "_" and not _nested_scopes_bind(function, name)
    )


def parameter_places(region: Region, function: FunctionNode, name: str) -> list[Place]:
    """Characters where a parameter is declared and used; none where that is not plain to see."""
    for argument in _free_parameters(function):
        if argument.arg == name:
            start = region.start(argument)
            return [(start, start + len(name)), *_uses(region, function, name)]
    return []


def variable_places(region: Region, function: FunctionNode, name: str) -> list[Place]:
    """Characters where a local variable stands; none where that is not plain to see."""
    return _uses(region, function, name) if name in _free_variables(function) else []


def function_places(region: Region, function: FunctionNode, name: str) -> list[Place]:
    """Characters where a function is defined and calls itself by name; none where other things of
    its name stand in the region."""
    if function.name != name or name.startswith("__"):
        return []
    for node in ast.walk(region.tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            return []
        if isinstance(node, ast.arg) and node.arg == name:
            return []
        if isinstance(node, (ast.JoinedStr, ast.Global)) and re.search(
            rf"\b{re.escape(name)}\b", ast.unparse(node)
        ):
            return []
    same = [n for n in ast.walk(region.tree) if isinstance(n, FunctionNode) and n.name == name]
    if len(same) != 1:
        return []
    head = re.compile(r"(?:async\s+)?def\s+").match(region.source, region.start(function))
    assert head, "a function starts with def"
    return [(head.end(), head.end() + len(name)), *_uses(region, region.tree, name)]


def _renamed(region: Region, old: str, places: list[Place], rng: random.Random) -> Change:
    new = names.new_name(region.source, rng)
    return {"old": old, "new": new}, [Replacement(start, end, new) for start, end in places]


def rename_parameter(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename one parameter and its uses; strings and comments stay."""
    free = _free_parameters(function)
    if not free:
        return None
    old = rng.choice(free).arg
    return _renamed(region, old, parameter_places(region, function, old), rng)


def rename_variable(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename one local variable and its uses."""
    free = _free_variables(function)
    if not free:
        return None
    old = rng.choice(free)
    return _renamed(region, old, variable_places(region, function, old), rng)


def rename_function(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename the function where it is defined and where it calls itself by name."""
    places = function_places(region, function, function.name)
    return _renamed(region, function.name, places, rng) if places else None


def renamed_places(source: str, name: str, within: str = "") -> list[Place]:
    """Characters of a piece of Python that a rename of ``name`` is about, in their order.

    within: the function whose parameter or variable is meant; every function where it is empty.
    Where the source does not parse or nothing in it is plainly what is renamed, all places where
    the name stands as a word.
    """
    found: set[Place] = set()
    try:
        region = Region(source)
        for function in region.functions():
            if within in ("", function.name):
                found |= {*parameter_places(region, function, name)}
                found |= {*variable_places(region, function, name)}
            found |= {*function_places(region, function, name)}
    except (SyntaxError, RecursionError, AssertionError):
        found = set()
    if not found:
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        found = {match.span() for match in word.finditer(source)}
    return sorted(found)
