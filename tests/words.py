"""Shares of docstrings and names that a reader stumbles over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

QUESTION_WORD = re.compile(r"(What|Whether|Where|How|Which|Who|Whose|When|Why|Whatever|Whoever)\b")
LOOSE_PHRASE = re.compile(
    r"\b(so (many|long|much|large|few)|whoever|whatever|whichever|nobody|somebody"
    r"|who(?:se)? (?:is|has|does|asks|types|computes)|of such\b|comes? (?:along|of it)|goes by"
    r"|by whomever|no business|the same (?:of|with) )",
    re.IGNORECASE,
)
EMPTY_NAME = re.compile(
    r"(ones?|found|places?|parts?|at|known|whole|left|told|taken|made|wanted|given|asked|kept|shown"
    r"|said|seen|things?|stuff|tmp|got|behind|begun|meant|about)$"
)
DOCUMENTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def stumbling_shares(files: Iterable[Path]) -> dict[str, float]:
    """Return percentages of the docstrings and of the bound names in ``files``."""
    docstrings: list[str] = []
    names: list[str] = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED):
                docstrings.append(ast.get_docstring(node) or "")
            elif isinstance(node, ast.arg):
                names.append(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
    docstrings = [text for text in docstrings if text]
    names = [name for name in names if name != "_"]
    return {
        "question words": _percent(map(QUESTION_WORD.match, docstrings), len(docstrings)),
        "loose phrases": _percent(map(LOOSE_PHRASE.search, docstrings), len(docstrings)),
        "empty names": _percent(map(EMPTY_NAME.match, names), len(names)),
    }


def _percent(hits: Iterable[object], total: int) -> float:
    return 100 * sum(map(bool, hits)) / max(total, 1)
