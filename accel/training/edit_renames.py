"""Renames of parameters, local variables and functions."""

from __future__ import annotations

import ast
import random
import re

from accel.training import edit_names as names
from accel.training.edit_places import Change, parameters
from accel.training.region import FunctionNode, Region, Replacement


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


def _uses(region: Region, tree: ast.AST, old: str, new: str) -> list[Replacement]:
    return [
        Replacement(region.start(node), region.end(node), new)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == old
    ]


def rename_parameter(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename one parameter and its uses; strings and comments stay."""
    free = [a for a in parameters(function) if not _nested_scopes_bind(function, a.arg)]
    if not free:
        return None
    chosen = rng.choice(free)
    new = names.new_name(region.source, rng)
    start = region.start(chosen)
    own = Replacement(start, start + len(chosen.arg), new)
    return {"old": chosen.arg, "new": new}, [own, *_uses(region, function, chosen.arg, new)]


def rename_variable(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename one local variable and its uses."""
    given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    free = sorted(
        name for name in stored - given if name != "_" and not _nested_scopes_bind(function, name)
    )
    if not free:
        return None
    old, new = rng.choice(free), names.new_name(region.source, rng)
    return {"old": old, "new": new}, _uses(region, function, old, new)


def rename_function(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Rename the function where it is defined and where it calls itself by name."""
    old = function.name
    for node in ast.walk(region.tree):
        if isinstance(node, ast.Attribute) and node.attr == old:
            return None
        if isinstance(node, ast.arg) and node.arg == old:
            return None
        if isinstance(node, (ast.JoinedStr, ast.Global)) and re.search(
            rf"\b{re.escape(old)}\b", ast.unparse(node)
        ):
            return None
    same = [n for n in ast.walk(region.tree) if isinstance(n, FunctionNode) and n.name == old]
    if len(same) != 1 or old.startswith("__"):
        return None
    new = names.new_name(region.source, rng)
    head = re.compile(r"(?:async\s+)?def\s+").match(region.source, region.start(function))
    assert head, "a function starts with def"
    own = Replacement(head.end(), head.end() + len(old), new)
    return {"old": old, "new": new}, [own, *_uses(region, region.tree, old, new)]
