"""Rules for answers to instructions of a known kind: what may change, and what must.

Python only: a rename must be the code with another name and nothing else, removing a docstring must
leave the code as it is, and so on. Both versions are compared as syntax trees from which the kind's
own part is taken out, so layout and comments are free.
"""

from __future__ import annotations

import ast
import copy
import io
import re
import textwrap
import tokenize
import warnings
from collections.abc import Callable

from accel.text.edit_rules.recognition import Instruction, recognise
from lsp_server.editing.tree_parts import (
    MAY_CHANGE,
    Function,
    docstring_of,
    is_print,
    no_docstrings,
)

_BESIDE_THE_TREE = ("change_quotes", "remove_comments")
"""Kinds that change the text and not its syntax tree."""


def broken_rule(instruction: str, old: str, new: str, language: str) -> str:
    """Why ``new`` is not ``old`` after the instruction; empty when it is, or no rule is known."""
    known = recognise(instruction, old) if language == "python" else None
    if known is None:
        return ""
    before, after = _tree(old), _tree(new)
    if before is None or after is None:
        return ""
    if known.kind not in _BESIDE_THE_TREE and _same(before, after):
        return "it changes nothing"
    if known.kind == "rename":
        return _broken_rename(known, old, new)
    forget = MAY_CHANGE.get(known.kind)
    if forget is None:
        return ""
    if not _same(forget(copy.deepcopy(before)), forget(copy.deepcopy(after))):
        return "it changes more than it was asked to"
    missing = _MISSING[known.kind](known, after, new)
    return "" if not missing else f"it {missing}"


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def _broken_rename(known: Instruction, old: str, new: str) -> str:
    name, wanted = known.slots["old"], known.slots["new"]
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    before, after = (_tree(whole.sub(wanted, text)) for text in (old, new))
    if before is None or after is None or not _same(no_docstrings(before), no_docstrings(after)):
        return f"it changes more than the name {name}"
    tree = _tree(new)
    names = set() if tree is None else _bound(tree)
    if wanted not in names:
        return f"it does not rename {name}"
    if name in names and name not in _bound_deeper(old):
        return f"it leaves {name} in places"
    return ""


def _bound(tree: ast.AST) -> set[str]:
    """Names of variables, parameters and functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, Function):
            found.add(node.name)
    return found


def _bound_deeper(text: str) -> set[str]:
    """Parameters of functions within functions and of lambdas: other things of the same name."""
    tree = _tree(text)
    if tree is None:
        return set()
    found: set[str] = set()
    for outer in (node for node in ast.walk(tree) if isinstance(node, Function)):
        for node in ast.walk(outer):
            if node is not outer and isinstance(node, Function | ast.Lambda):
                found |= {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    return found


# What a kind of edit must have done: the rest of "it …", empty when it has.


def _functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _arguments(tree: ast.AST) -> list[ast.arg]:
    return [each for node in _functions(tree) for each in ast.walk(node.args)
            if isinstance(each, ast.arg)]  # fmt: skip


def _no_docstring_of(known: Instruction, tree: ast.Module, text: str) -> str:
    wanted = known.slots.get("text")
    found = [each for node in ast.walk(tree) if (each := docstring_of(node)) is not None]
    if known.kind == "remove_docstring":
        every = all(docstring_of(node) is not None for node in _functions(tree))
        return "leaves the docstring" if found and every else ""
    if wanted is None:
        return "" if found else "adds no docstring"
    said = any(each.strip().rstrip(".") == wanted.strip().rstrip(".") for each in found)
    return "" if said else "adds another docstring"


def _no_annotation_of(known: Instruction, tree: ast.Module, text: str) -> str:
    if known.kind == "remove_type_hints":
        hints = any(each.annotation for each in _arguments(tree))
        every = all(node.returns is not None for node in _functions(tree))
        return "leaves type hints" if hints or every else ""
    if known.kind == "add_return_type":
        hints_of = [node.returns for node in _functions(tree)]
    else:
        name = known.slots["name"]
        hints_of = [each.annotation for each in _arguments(tree) if each.arg == name]
    wanted = _squeezed(known.slots["type"])
    if any(hint is not None and _squeezed(ast.unparse(hint)) == wanted for hint in hints_of):
        return ""
    return f"does not add the type {known.slots['type']}"


def _no_default_of(known: Instruction, tree: ast.Module, text: str) -> str:
    name = known.slots.get("new") or known.slots["name"]
    wanted = rf"(?<!\w){re.escape(name)}\s*(?::[^=]*)?=\s*{re.escape(known.slots['value'])}"
    return "" if re.search(wanted, text) else f"does not give {name} that default"


def _no_decorator_of(known: Instruction, tree: ast.Module, text: str) -> str:
    found = [
        _squeezed(ast.unparse(each)) for node in _functions(tree) for each in node.decorator_list
    ]
    if known.kind == "remove_decorators":
        every = all(node.decorator_list for node in _functions(tree))
        return "leaves decorators" if found and every else ""
    wanted = _squeezed(known.slots["decorator"].lstrip("@"))
    return "" if wanted in found else f"does not add {known.slots['decorator']}"


def _no_call_of(known: Instruction, tree: ast.Module, text: str) -> str:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if known.kind == "remove_prints":
        statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        left = any(isinstance(each, ast.Call) and is_print(each.func) for each in statements)
        return "leaves print statements" if left else ""
    name, wanted = known.slots["name"], known.slots.get("level", "print")
    told = any(_called(call) == wanted and name in _bound(call) for call in calls)
    return "" if told else f"adds no {wanted} of {name}"


def _called(call: ast.Call) -> str:
    """Last part of the name of what is called."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _no_async_of(known: Instruction, tree: ast.Module, text: str) -> str:
    found = any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))
    return "" if found else "does not make it async"


def _comments_in(known: Instruction, tree: ast.Module, text: str) -> str:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(textwrap.dedent(text)).readline))
    except (tokenize.TokenError, IndentationError):
        return ""
    left = any(token.type == tokenize.COMMENT for token in tokens)
    return "leaves comments" if left else ""


def _nothing(known: Instruction, tree: ast.Module, text: str) -> str:
    return ""


def _squeezed(code: str) -> str:
    return re.sub(r"\s|['\"]", "", code)


_MISSING: dict[str, Callable[[Instruction, ast.Module, str], str]] = {
    "add_docstring": _no_docstring_of,
    "write_docstring": _no_docstring_of,
    "remove_docstring": _no_docstring_of,
    "add_type_hint": _no_annotation_of,
    "add_return_type": _no_annotation_of,
    "remove_type_hints": _no_annotation_of,
    "change_quotes": _nothing,
    "remove_comments": _comments_in,
    "add_print": _no_call_of,
    "remove_prints": _no_call_of,
    "add_logging": _no_call_of,
    "add_parameter": _no_default_of,
    "change_default": _no_default_of,
    "make_async": _no_async_of,
    "add_decorator": _no_decorator_of,
    "remove_decorators": _no_decorator_of,
}
