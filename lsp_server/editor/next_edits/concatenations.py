"""Concatenations that become formatted strings by example: ``"a " + b`` is ``f"a {b}"`` in Python
and a template in JavaScript and TypeScript."""

from __future__ import annotations

import re
from itertools import takewhile

from lsp_server.editor.next_edits.anti_unification import Term, parts_of, term_of
from lsp_server.editor.next_edits.rewrites import Rewrite
from lsp_server.editor.next_edits.words import refuse_many
from lsp_server.text.syntax.nodes import around, child_of
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

_SUMS = {"binary_operator", "binary_expression"}
_VALUE = re.compile("identifier|attribute|member_expression|call|subscript")
_UNCLEAR = re.compile(r"[\\{}`$\n]|^str\(|^String\(")
"""What would be another text in a formatted string, or says less there."""


def formatted_alike(rewrite: Rewrite, other: Rewrite, now: SyntaxTree) -> list[TextEdit[int]]:
    """Return the other concatenations of a text as formatted strings, where two became such."""
    if rewrite is other or not (_is_formatted(rewrite) and _is_formatted(other)):
        return []
    refuse_many(now.text, "+")
    edits: list[TextEdit[int]] = []
    for sign in re.finditer(r"\+", now.text):
        outer = around(now.node(*sign.span()))
        sums = [*takewhile(lambda each: now.text_of(child_of(each, "operator")) == "+", outer)]
        if sums and (text := _formatted(term := term_of(now, sums[-1]))):
            edits.append(TextEdit(term.start, term.end, text, f"{term.text} → {text}"))
    return list(dict.fromkeys(edits))


def _is_formatted(rewrite: Rewrite) -> bool:
    """Return whether a concatenation of a rewrite became a formatted string, and nothing else."""
    return any(
        (text := _formatted(term)) and level.old.text.replace(term.text, text, 1) == level.new.text
        for level in rewrite
        for term in (level.old, *parts_of(level.old))
    )


def _formatted(term: Term) -> str:
    """Return a concatenation as a formatted string; empty for what is none that is clear."""
    operands = _operands(term)
    strings = [each for each in operands if each.kind == "string"]
    values = [each for each in operands if _VALUE.match(each.kind)]
    quotes = {each.text[:1] for each in strings}
    # Numbers are added up before a string comes.
    begins = any(each in strings for each in operands[:2])
    if not (begins and values and len(strings) + len(values) == len(operands)):
        return ""
    quote = strings[0].text[:1]
    if quotes != {quote} or quote not in "'\"":
        return ""
    texts = [each.text.strip(quote) if each in strings else each.text for each in operands]
    if any(_UNCLEAR.search(text) or quote in text for text in texts):
        return ""
    is_template = term.kind == "binary_expression"
    value = "${%s}" if is_template else "{%s}"
    pieces = (text if each in strings else value % text
              for each, text in zip(operands, texts, strict=True))  # fmt: skip
    return f"`{''.join(pieces)}`" if is_template else f"f{quote}{''.join(pieces)}{quote}"


def _operands(term: Term) -> list[Term]:
    """Return what a term concatenates, from left to right; the term itself where it does not."""
    children = [each for each in term.parts if isinstance(each, Term)]
    if term.kind in _SUMS and [each.text for each in children[1:-1]] == ["+"]:
        return [*_operands(children[0]), *_operands(children[-1])]
    return [term]
