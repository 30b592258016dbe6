"""Features of selected Python code, by which presets are offered."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from dataclasses import dataclass

from lsp_server.text.syntax.python_tree import python_tree

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Documented = (*_Function, ast.ClassDef)
LONGEST = 20_000
"""Characters. Longer selections are not parsed."""


@dataclass(frozen=True, slots=True)
class SelectedPython:
    """Features of the definitions and statements in a selection; one may lack what another has."""

    lacks_docstring: bool
    has_docstring: bool
    lacks_hints: bool
    has_hints: bool
    has_comment: bool
    has_formatting: bool
    """Text is put together by ``%``, ``.format`` or ``+``."""
    has_single_quotes: bool

    @staticmethod
    def of(code: str) -> SelectedPython | None:
        """Return the features of ``code``; None if it is no whole statement."""
        if len(code) > LONGEST:
            return None
        text = textwrap.dedent(code).strip("\n") + "\n"
        tree = python_tree(text) or python_tree(f"{text.rstrip()}\n    pass\n")
        if tree is None:
            return None
        nodes = [*ast.walk(tree)]
        documented = [ast.get_docstring(n) is not None for n in nodes if isinstance(n, _Documented)]
        hints = [hint is not None for node in nodes for hint in _hints(node)]
        tokens = _tokens(text)
        return SelectedPython(
            lacks_docstring=False in documented,
            has_docstring=True in documented or ast.get_docstring(tree) is not None,
            lacks_hints=False in hints,
            has_hints=True in hints,
            has_comment=any(token.type == tokenize.COMMENT for token in tokens),
            has_formatting=any(map(_puts_text_together, nodes)),
            has_single_quotes=any(
                token.type == tokenize.STRING and token.string.lstrip("rRbBuUfF").startswith("'")
                for token in tokens
            ),
        )


def _hints(node: ast.AST) -> list[ast.expr | None]:
    """Return the annotations of ``node``, None for each that is missing."""
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if not isinstance(node, _Function):
        return []
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    more = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [
        node.returns,
        *(argument.annotation for argument in (*named, *arguments.kwonlyargs, *more)),
    ]


def _puts_text_together(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        sides = [node.left] if isinstance(node.op, ast.Mod) else [node.left, node.right]
        return isinstance(node.op, ast.Mod | ast.Add) and any(map(_is_text, sides))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "format" and _is_text(node.func.value)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    try:
        return [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return []
