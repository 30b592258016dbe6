"""Ready-made instructions, offered as code actions where they fit the code."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lsp_server.editor.editing.wordings import TABLE
from lsp_server.text.syntax.python_tree import python_tree

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Documented = (*_Function, ast.ClassDef)
LONGEST = 20_000
"""Characters. Longer selections are not parsed."""


@dataclass(frozen=True, slots=True)
class Preset:
    """An instruction, which is its title, too; ``languages`` empty for all; ``needs``: what
    a piece of Python must have, of :func:`python_features`."""

    instruction: str
    languages: Sequence[str] = ()
    title: str = ""
    needs: str = ""


PRESETS = tuple(Preset(**preset) for preset in TABLE["presets"])
LONGEST_TITLE = 60


def presets_for(
    language: str, own: Sequence[str], done: Collection[str] = (), code: str = ""
) -> list[Preset]:
    """Return the presets to offer in ``language``: the user's ``own`` instructions, then ours that
    fit the selected ``code`` and that the model handles (``done``; empty: all)."""
    mine = [Preset(text, title=text[:LONGEST_TITLE]) for text in map(str.strip, own) if text]
    ours = [preset for preset in PRESETS if not preset.languages or language in preset.languages]
    features = python_features(code) if language == "python" else None
    if features is not None:
        ours = [preset for preset in ours if preset.needs in {"", *features}]
    return [*mine, *(preset for preset in ours if not done or preset.instruction in done)]


def python_features(code: str) -> set[str] | None:
    """Return what the definitions and statements of a selection have; one may lack what another
    has. None for what is no whole statement."""
    if len(code) > LONGEST:
        return None
    text = textwrap.dedent(code).strip("\n") + "\n"
    tree = python_tree(text) or python_tree(f"{text.rstrip()}\n    pass\n")
    if tree is None:
        return None
    nodes, tokens = [*ast.walk(tree)], _tokens(text)
    documented = [ast.get_docstring(n) is not None for n in nodes if isinstance(n, _Documented)]
    hints = [hint is not None for node in nodes for hint in _hints(node)]
    strings = (token.string for token in tokens if token.type == tokenize.STRING)
    features = {
        "no docstring": False in documented,
        "docstring": True in documented or ast.get_docstring(tree) is not None,
        "no hint": False in hints,
        "hint": True in hints,
        "comment": any(token.type == tokenize.COMMENT for token in tokens),
        "formatting": any(map(_puts_text_together, nodes)),
        "single quotes": any(text.lstrip("rRbBuUfF").startswith("'") for text in strings),
    }
    return {feature for feature, is_there in features.items() if is_there}


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
    named += [*arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
    return [node.returns, *(argument.annotation for argument in named)]


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
