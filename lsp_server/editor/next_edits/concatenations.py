"""Texts that are put together and become formatted strings by example: ``"a " + b``,
``"a {}".format(b)`` and ``"a %s" % b`` are ``f"a {b}"`` in Python, the first a template in
JavaScript and TypeScript."""

from __future__ import annotations

import re
from itertools import islice, takewhile

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
_NO_VALUE = re.compile("argument|splat|lambda|named")
_FORMATTED = re.compile(r"""f["']|`""")
_FIELDS = {"format": re.compile(r"\{(:[^{}]*)?\}"), "%": re.compile(r"%[sd]()")}

Piece = tuple[str, str, str]
"""A text or value with what is around it in a formatted string."""


def formatted_alike(rewrite: Rewrite, other: Rewrite, now: SyntaxTree) -> list[TextEdit[int]]:
    """Return the other texts that are put together as formatted strings, where two became such."""
    sign = "" if rewrite is other else _sign_formatted(rewrite)
    if not sign or sign != _sign_formatted(other):
        return []
    refuse_many(now.text, sign)
    edits: list[TextEdit[int]] = []
    for match in re.finditer(re.escape(sign), now.text):
        if edits and match.start() < edits[-1].end:
            continue
        outer = around(now.node(*match.span()))
        sums = takewhile(lambda each: now.text_of(child_of(each, "operator")) == sign, outer)
        # The attribute and its call.
        nodes = [*(islice(outer, 2) if sign == "format" else sums)]
        if nodes and (text := _formatted(term := term_of(now, nodes[-1]), sign)):
            edits.append(TextEdit(term.start, term.end, text, f"{term.text} → {text}"))
    return edits


def _sign_formatted(rewrite: Rewrite) -> str:
    """Return by what the text was put together that became a formatted string; empty if there is
    none, or if something else changed, too."""
    if not _FORMATTED.search(rewrite[0].new.text):
        return ""
    terms = ((level, term) for level in rewrite for term in (level.old, *parts_of(level.old)))
    return next((sign for level, term in terms for sign in ("+", *_FIELDS)
                 if (text := _formatted(term, sign))
                 and level.old.text.replace(term.text, text, 1) == level.new.text), "")  # fmt: skip


def _formatted(term: Term, sign: str) -> str:
    """Return as a formatted string what ``sign`` puts together; empty for what is not clear."""
    strings, pieces = _added(term) if sign == "+" else _filled(term, sign)
    quote = strings[0].text[0] if strings else "none"
    if quote not in "'\"" or any(each.text[0] != quote for each in strings):
        return ""
    if any(_UNCLEAR.search(text) or quote in text for _, text, _ in pieces):
        return ""
    text = "".join(map("".join, pieces))
    return f"`{text}`" if term.kind == "binary_expression" else f"f{quote}{text}{quote}"


def _added(term: Term) -> tuple[list[Term], list[Piece]]:
    """Return the strings of a concatenation, and its pieces; none where they are not clear."""
    operands = _operands(term)
    strings = [each for each in operands if each.kind == "string"]
    values = [each for each in operands if _VALUE.match(each.kind)]
    # Numbers are added up before a string comes.
    begins = any(each in strings for each in operands[:2])
    if not (begins and values and len(strings) + len(values) == len(operands)):
        return [], []
    before = "${" if term.kind == "binary_expression" else "{"
    return strings, [("", each.text[1:-1], "") if each in strings else (before, each.text, "}")
                     for each in operands]  # fmt: skip


def _operands(term: Term) -> list[Term]:
    """Return what a term concatenates, from left to right; the term itself where it does not."""
    children = [each for each in term.parts if isinstance(each, Term)]
    if term.kind in _SUMS and [each.text for each in children[1:-1]] == ["+"]:
        return [*_operands(children[0]), *_operands(children[-1])]
    return [term]


def _filled(term: Term, sign: str) -> tuple[list[Term], list[Piece]]:
    """Return the string of Python whose fields are filled, and its pieces; none where they are not
    clear."""
    children = [each for each in term.parts if isinstance(each, Term)]
    if sign == "format" and term.kind == "call" and children[0].text.endswith(".format"):
        string, arguments = children[0].parts[0], children[1]
    elif [each.text for each in children[1:-1]] == [sign]:
        string, arguments = children[0], children[-1]
    else:
        return [], []
    is_list = arguments.kind in ("argument_list", "tuple")
    values = [each for each in (arguments.parts if is_list else [arguments])
              if isinstance(each, Term) and each.is_named]  # fmt: skip
    if not isinstance(string, Term) or string.kind != "string":
        return [], []
    fields = [*_FIELDS[sign].finditer(string.text)]
    texts = _FIELDS[sign].sub("\0", string.text[1:-1]).split("\0")
    is_clear = len(fields) == len(values) and not (sign == "%" and "%" in "".join(texts))
    if not is_clear or any(_NO_VALUE.search(each.kind) for each in values):
        return [], []
    pieces = [("", texts[0], "")]
    for value, field, text in zip(values, fields, texts[1:], strict=True):
        pieces += [("{", value.text, f"{field[1] or ''}}}"), ("", text, "")]
    return [string], pieces
