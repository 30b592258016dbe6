"""Instances of a rewrite rule in a text, and what they become."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from lsp_server.editor.editing.checks import new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.anti_unification import (
    Substitution,
    Term,
    forms,
    matches,
    parts_of,
    respelt,
    term_of,
)
from lsp_server.editor.next_edits.rewrite_rules import ANY_NUMBER, Rule
from lsp_server.editor.next_edits.rewrites import (
    LARGEST_NODE,
    as_long,
    caught_around,
    function_around,
    indent_at,
    is_target,
    role_of,
)
from lsp_server.editor.next_edits.words import refuse_many, whole
from lsp_server.text.syntax.name_uses import Span
from lsp_server.text.syntax.nodes import around, child_of, inner, kind_of, may_await, outside
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from tree_sitter import Node

    Instance = tuple[Term, Substitution, Node]

ERROR = re.compile(r"[^%\n]*[eE]rr\w*\W*?$", re.MULTILINE)
"""Has no other verb and ends with an error, as what Go's ``%w`` is for."""
_TRUTH = re.compile(r"[<>!]=*|[!=]==?|&&|in|instanceof")
_OF_CLASS = re.compile(r"[A-Z]\w*\.")
_CONDITION = re.compile(r"^if|^while|^do_|^for|unary|ternary")
_NAMED = re.compile(r"[(,]\s*(?:(\w+)=(?!=)|\*\*)")
"""Arguments that are given by their names, some of which a mapping may have."""
_BINARY = re.compile(r"""["'](?=\w?b)\w{1,2}\+?["']""")
"""How a file is opened that has no encoding."""
_VALUE = re.compile(r"""["'`]|\b(?:\d|nil\b|null\b|None\b|undefined\b|[tT]rue\b|[fF]alse\b)""")
_OPERATION = re.compile(
    r"binary|bool|comparison|unary|not_op|await|ternary|conditional|as_exp"
    r"|union|intersect|assign|(function|constructor|readonly)_t|query"
)
_TIGHT = re.compile(r"binary|boolean_op|comparison|unary|not_op|await|attribute|member|selector"
                    r"|field_exp|subscript|index_exp|^array_type")  # fmt: skip
"""What binds its parts, so that an operation in it wants brackets."""


def candidates(rule: Rule, now: SyntaxTree, start: int, by: int) -> Iterator[Node]:
    """Yield nodes of the pattern's kind that hold its rarest word, or its sign."""
    if rule.siblings is not None:
        yield from _siblings(rule, now, start, by)
        return
    words = (leaf.text for leaf in rule.pattern.leaves())
    anchor = min(words, key=lambda text: (not re.search(r"\w", text), now.text.count(text)))
    refuse_many(now.text, anchor)
    visited = set()
    for offset in whole(anchor).finditer(now.text):
        node = now.node(*offset.span())
        while node is not None and node.end_byte - node.start_byte <= 2 * LARGEST_NODE:
            if node.type == rule.pattern.kind and node.id not in visited:
                visited.add(node.id)
                yield node
            node = node.parent


def _siblings(rule: Rule, now: SyntaxTree, start: int, by: int) -> Iterator[Node]:
    """Return the nodes after the examples in one list or class, unless one was left out."""
    assert rule.siblings is not None
    kind, offset = rule.siblings
    # The change may be the beginning of the list.
    moved = offset + by if offset > start else offset
    parent = now.node(moved, moved + 1)
    while parent is not None and not (parent.type == kind and now.start(parent) in (offset, moved)):
        parent = parent.parent
    if parent is None:
        return
    is_front = rule.template.kind == ""
    done, same = [], []
    for number, rewrite in enumerate(parent.children):
        if _is_made(rule, now, rewrite) or (is_front and _is_made_before(rule, now, rewrite)):
            done.append(number)
        elif rewrite.type == rule.pattern.kind and _match(rule, now, rewrite) is not None:
            same.append(number)
    if len(done) >= 2 and all(number > done[-1] for number in same):
        yield from (parent.children[number] for number in same)


def instances(rule: Rule, tree: SyntaxTree, nodes: Iterable[Node]) -> dict[Span, Instance]:
    """Return those of ``nodes`` that are instances of the pattern of a rule, by their place."""
    edits: dict[Span, Instance] = {}
    for node in nodes:
        is_read = not node.has_error and len(edits) <= 1_000
        substitution = _match(rule, tree, node) if is_read else None
        if substitution is not None:
            term = term_of(tree, node)
            edits[term.start, term.end] = term, substitution, node
    return edits


def _match(rule: Rule, now: SyntaxTree, node: Node) -> Substitution | None:
    """Return what is in the holes of the pattern at a node; None where the rule is not for it."""
    substitution: Substitution = {}
    if not _is_place(rule, now, node):
        return None
    term = term_of(now, node)
    is_instance = matches(rule.pattern, term, substitution)
    return substitution if is_instance and _is_meant(rule, now, term, substitution) else None


def _is_place(rule: Rule, now: SyntaxTree, node: Node) -> bool:
    """Return whether a rule may hold at a node by what is there and around it."""
    text = now.text_of(node)
    came = rule.words_came
    is_other_role = rule.by_role and role_of(now, node) != rule.example.role
    if is_other_role or is_target(node) != rule.example.is_target:
        return False
    if "%w" in rule.template.text and not ERROR.search(text):
        return False
    if "await" in came and not may_await(node):
        return False
    if rule.is_caused and caught_around(now, node) in ("", text.removeprefix("raise ")):
        return False
    # A function that others are to call is not made to call itself.
    if function_around(now, node) in came or not _keeps_sense(rule, now, node):
        return False
    # An argument's call is around the list of its arguments.
    is_made = any(_is_made(rule, now, outer) for outer in (node, *islice(around(node), 2)))
    return not is_made and not _is_made_before(rule, now, node)


def _is_meant(rule: Rule, now: SyntaxTree, term: Term, substitution: Substitution) -> bool:
    """Return whether an instance of the pattern is one of the rule, by what is in the holes."""
    named, arguments = (set(_NAMED.findall(each)) for each in (rule.template.text, term.text))
    named -= set(_NAMED.findall(rule.pattern.text))
    is_binary = "encoding" in named and _BINARY.search(term.text) is not None
    if named and (is_binary or "" in arguments or named & arguments):
        return False
    spans = {(start, end) for _, start, end in substitution.values()}
    calls = [call for call in parts_of(rule.pattern) if "call" in call.kind]
    values = [value for value in parts_of(term) if (value.start, value.end) in spans]
    if any(matches(call, value, {}) for call in calls for value in values):
        # ``type(a) == type(b)`` is no ``isinstance(a, …)``.
        return False
    texts = [text for text, _, _ in substitution.values() if _VALUE.match(text)]
    is_union = rule.template.kind == "binary_operator" and "generic" in rule.pattern.kind
    if is_union and any(text[0] in "\"'" for text in texts):
        # A string and a type have none.
        return False
    if texts and rule.is_called_instead and not _VALUE.search(rule.example.old.text):
        return False
    formed = (forms(substitution[hole.number][0])[hole.form]
              for hole in rule.template.holes() if hole.form)  # fmt: skip
    if not all(formed) or not substitution.get(ANY_NUMBER, ("any",))[0]:
        return False
    quoted = {text for text in rule.words_came if text[:1] in ("'", '"', "`")}
    return quoted.isdisjoint(leaf.text for leaf in term.leaves())


def _keeps_sense(rule: Rule, now: SyntaxTree, node: Node) -> bool:
    """Return whether an operator at a node may become the rule's: ``??`` where nothing is a truth
    value, ``===`` where nothing is compared with ``null``, ``is`` for no column of a class."""
    came = rule.words_came
    operation = node if node.named_child_count else outside(node)
    texts = [now.text_of(side) for side in inner(operation)]
    if came & {"===", "!=="}:
        return {"null", "undefined"}.isdisjoint(texts)
    if "is" in came:
        return not any(map(_OF_CLASS.match, texts))
    if "??" not in came:
        return True
    outer = next((each for each in around(operation) if "parenthesized" not in each.type), None)
    sides = [outer, operation, *inner(operation)]
    signs = {now.text_of(child_of(side, "operator")) for side in sides}
    return not _CONDITION.search(kind_of(outer)) and not any(map(_TRUTH.fullmatch, signs))


def _is_made(rule: Rule, now: SyntaxTree, node: Node) -> bool:
    """Return whether a node is what the rule makes."""
    return node.type == rule.template.kind and bool(rule.template.parts) and matches(
        rule.template, term_of(now, node), {}
    )  # fmt: skip


def _is_made_before(rule: Rule, now: SyntaxTree, node: Node) -> bool:
    """Return whether what the rule puts before a node is there."""
    first = rule.template.parts[0] if rule.template.kind == "" and rule.template.parts else None
    before = node.prev_sibling
    return isinstance(first, Term) and before is not None and matches(
        first, term_of(now, before), {}
    )  # fmt: skip


def replacements(rule: Rule, now: SyntaxTree, edits: dict[Span, Instance]) -> list[TextEdit[int]]:
    """Return the replacement of each place; places within others are part of those."""
    proposals: dict[Span, str] = {}
    for start, end in sorted(edits, key=lambda span: span[1] - span[0]):
        within = [span for span in proposals if start <= span[0] and span[1] <= end]
        inner = {span: proposals.pop(span) for span in within}
        proposals[start, end] = _instance(rule, now, edits[start, end], inner)
    return [TextEdit(*span, text) for span, text in sorted(proposals.items())]


def _instance(rule: Rule, now: SyntaxTree, instance: Instance, inner: dict[Span, str]) -> str:
    """Return what a place becomes: the template with what is in the pattern's holes."""
    term, substitution, node = instance
    indent = indent_at(now.text, term.start)
    template, pieces, offset = rule.template, [], rule.template.start
    functions = rule.example.function, function_around(now, node)
    came = {leaf.text: respelt(leaf, *functions) for leaf in template.leaves()}
    for leaf in rule.pattern.leaves():
        came.pop(leaf.text, None)
    causes = (leaf.text for leaf in template.leaves() if leaf.field == "cause")
    came |= dict.fromkeys(causes, caught_around(now, node))

    def literal(text: str) -> str:
        for leaf, new in came.items():
            text = new.join(whole(leaf).split(text)) if leaf != new else text
        return re.sub(rf"(\r?\n){rule.indent}", lambda blanks: blanks[1] + indent, text)

    for hole, kind in template.holes_with_kinds():
        pieces.append(literal(template.text[offset - template.start : hole.start - template.start]))
        text, start, end = substitution[hole.number]
        text = forms(text)[hole.form]
        hunks = [TextEdit(a - start, b - start, new) for (a, b), new in sorted(inner.items())
                 if start <= a and b <= end]  # fmt: skip
        text = apply_hunks(text, hunks)
        is_first = hole.start == template.start
        # Python's comparisons bind less than its arithmetic.
        same = {template.kind if is_first else "",
                "binary_operator" if kind == "comparison_operator" else ""}  # fmt: skip
        before = "type T = " if kind == "array_type" else ""
        is_operation = _TIGHT.search(kind) and _is_operation(text, now.grammar, same, before)
        pieces.append(f"({text})" if is_operation else text)
        offset = hole.end
    pieces.append(literal(template.text[offset - template.start :]))
    text = "".join(pieces)
    parent = node.parent
    is_bound = parent is not None and _TIGHT.search(parent.type) is not None
    is_looser = _OPERATION.search(template.kind) and not _OPERATION.search(rule.pattern.kind)
    return f"({text})" if is_bound and is_looser else text


def _is_operation(text: str, grammar: str, same: set[str], before: str) -> bool:
    """Return whether a text is, behind another, an operation of another kind than ``same``."""
    tree = SyntaxTree.parsed(before + text, grammar)
    node = tree.node(len(before), len(before + text))
    while node is not None and not _OPERATION.search(node.type):
        if node.named_child_count != 1 or node.start_byte or node.type.startswith("paren"):
            return False
        node = node.named_children[0]
    return node is not None and node.type not in same


def checked(rule: Rule, now: SyntaxTree, edits: list[TextEdit[int]]) -> list[TextEdit[int]]:
    """Return the replacements that give the template, cut; none where the text breaks by them."""
    if not edits:
        return []
    after = SyntaxTree.parsed(apply_hunks(now.text, edits), now.grammar)
    matches, by = [], 0
    for edit in edits:
        start, old = edit.start + by, now.text[edit.start : edit.end]
        by += len(edit.text) - len(old)
        if not _stands(after, start, edit.text, rule.template.kind):
            continue
        head, tail = common_ends(old, edit.text)
        head, tail = _at_words(old, edit.text, head, tail)
        new = edit.text[head : len(edit.text) - tail]
        matches.append(TextEdit(edit.start + head, edit.end - tail, new, rule.title))
    is_broken = after.has_errors and not now.has_errors
    changed = apply_hunks(now.text, matches)
    return [] if is_broken or new_problem(now.text, changed, now.grammar) else matches


def _at_words(old: str, new: str, head: int, tail: int) -> tuple[int, int]:
    """Common ends that tear no word apart."""
    while head and (old[head - 1].isalnum() or old[head - 1] == "_"):
        head -= 1
    while tail and (old[len(old) - tail].isalnum() or old[len(old) - tail] == "_"):
        tail -= 1
    return head, min(tail, len(old) - head, len(new) - head)


def _stands(tree: SyntaxTree, start: int, text: str, kind: str) -> bool:
    """Return whether a text was read as one node of a kind, or in brackets as such; without a kind,
    as some."""
    end = start + len(text)
    node = tree.node(start, end)
    if node is None or node.has_error:
        return False
    is_exact = (tree.start(node), tree.end(node)) == (start, end)
    if not kind:
        starts, ends = map(tree.start, node.children), map(tree.end, node.children)
        return is_exact or (start in starts and end in ends)
    kinds = {each.type.replace("union_type", "binary_operator") for each in (node, *as_long(node))}
    is_same = kind.replace("union_type", "binary_operator") in kinds
    return is_exact and (is_same or node.type.startswith("parenthesized"))
