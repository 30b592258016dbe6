"""The same change elsewhere: what two edits have in common is done wherever it matches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.anti_unification import (
    Substitution,
    is_literal,
)
from lsp_server.editor.next_edits.concatenations import formatted_alike
from lsp_server.editor.next_edits.rewrite_rules import (
    Rule,
    generalised,
    loosened,
    rule_of_one,
)
from lsp_server.editor.next_edits.rewrites import (
    Rewrite,
    RewrittenNode,
    rewrites,
    role_of,
)
from lsp_server.editor.next_edits.rule_instances import (
    ERROR,
    candidates,
    checked,
    instances,
    replacements,
)
from lsp_server.editor.next_edits.words import changed_word, refuse_many, whole
from lsp_server.text.syntax.name_uses import NameUse, Span
from lsp_server.text.syntax.nodes import (
    child_of,
    enclosing,
)
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.syntax.roles import PROSE
from lsp_server.text.syntax.scopes import Scope
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from lsp_server.editor.next_edits.history import RecordedEdit

MOST_EDITS = 8
"""Edits that are compared with the last one."""
MOST_NAMES = 8
"""Names of a pattern of which it is asked what they mean."""
_TEXTS = PROSE | {"latex", "typst"}
"""Grammars of texts, in which equal words need not mean the same."""
_OPERATOR = re.compile("binary|boolean|not_operator|unary|comparison")
_NAME = re.compile(r"[^\W\d]\w*")
_LEAF = re.compile(r"\w+")


def same_change(
    edits: Iterable[RecordedEdit], names: tuple[ResolvedNames, ResolvedNames]
) -> list[TextEdit[int]]:
    """Return what follows from the last edit and an earlier one by example. ``names``: of the
    document without the last edit and with it. Raises WorkTakesTooLong."""
    before, now = (each.tree for each in names)
    if before.grammar in _TEXTS:
        return []
    last, *earlier = islice(edits, MOST_EDITS)
    mine = _made(last)
    start, by = last.start_offset(), len(now.text) - len(before.text)
    others = [(last, other) for other in mine]
    if mine:
        same = (edit for edit in earlier if edit.document.language == last.document.language)
        others += [(edit, other) for edit in same for other in _made(edit)]
    read_as_wholes = set[int]()
    for edit, other in others:
        for rewrite in mine:
            is_whole = rewrite[0].is_whole and other[0].is_whole
            if edit.number in read_as_wholes and not is_whole:
                # Each of its parts says less than all of them together.
                continue
            if rewrite[0].is_whole and _has_more_to_go(rewrite, other, edit):
                continue
            rule = generalised(rewrite, other, before) if rewrite is not other else None
            matches = []
            is_part = not (rewrite[0].is_whole or other[0].is_whole)
            if rule is not None and not (is_part and not _explains(rule, before, rewrite[-1])):
                kinds = partial(_is_local, names[0], rule)
                matches = _edits(loosened(rule, kinds), names, start, by)
            matches = matches or _same_in_literals(rewrite, other, now)
            matches = matches or formatted_alike(rewrite, other, now)
            if matches:
                return matches
            if rule is not None and is_whole:
                read_as_wholes.add(edit.number)
    rules = map(rule_of_one, mine)
    proposals = (_edits(rule, names, start, by) for rule in rules if rule is not None)
    return next((some for some in proposals if some), [])


def _has_more_to_go(rewrite: Rewrite, other: Rewrite, edit: RecordedEdit) -> bool:
    """Return whether ``edit`` also took words away, beside those of ``other``, that are still in
    the statement of ``rewrite``: what is typed is the beginning of the same."""
    statement = next((each for each in _made(edit) if each[0].is_whole
                      and each[-1].old.start == other[-1].old.start), other)  # fmt: skip
    if statement is other:
        return False
    gone = _words_gone(statement[-1]) - _words_gone(other[0])
    return bool(gone) and gone <= Counter(_LEAF.findall(rewrite[-1].new.text))


def _explains(rule: Rule, before: SyntaxTree, statement: RewrittenNode) -> bool:
    """Return whether all that changed in a statement of an example is what the rule makes of some
    of its instances there."""
    old, new = statement.old, statement.new.text
    nodes = [node] if (node := before.node(old.start, old.end)) is not None else []
    for node in nodes:
        nodes += node.children
    nodes = [node for node in nodes if node.type == rule.pattern.kind]
    text, offset = "", old.start
    for edit in replacements(rule, before, instances(rule, before, nodes)):
        text += before.text[offset : edit.start]
        offset = edit.end
        is_made = new.startswith(edit.text, len(text))
        text += edit.text if is_made else before.text[edit.start : edit.end]
    return text + before.text[offset : old.end] == new


def _words_gone(node: RewrittenNode) -> Counter[str]:
    return Counter(_LEAF.findall(node.old.text)) - Counter(_LEAF.findall(node.new.text))


_WORD = re.compile(r"[%$\\]?\w+|.", re.DOTALL)


def _same_in_literals(rewrite: Rewrite, other: Rewrite, now: SyntaxTree) -> list[TextEdit[int]]:
    """Return the change of one word in the other strings of the role of two that had it."""
    change, role = _word_in(rewrite), rewrite[0].role
    if rewrite is other or change is None or other[0].role != role or _word_in(other) != change:
        return []
    old, new = change
    refuse_many(now.text, old)
    spans = [match.span() for match in whole(old).finditer(now.text)]
    if new == "%w":
        spans = [span for span in spans if ERROR.match(now.text, span[1])]
    same = (span for span in spans if _literal_role(now, *span) == role)
    return [TextEdit(*span, new, f"{old} → {new}") for span in same]


def _word_in(rewrite: Rewrite) -> tuple[str, str] | None:
    """Return the word of a string that became another one; None for any other change."""
    old, new = rewrite[0].old.text, rewrite[0].new.text
    if rewrite[0].role[:1] != ("literal",) or old[-1:] not in ("'", '"', "`"):
        return None
    change = changed_word(old, new, _WORD)
    return (change.old, change.new) if change and re.search(r"\w", change.old) else None


def _literal_role(tree: SyntaxTree, start: int, end: int) -> tuple[str, ...]:
    node = tree.node(start, end)
    while node is not None and node.parent is not None and not is_literal(node):
        node = node.parent
    return role_of(tree, node) if node is not None else ()


_known: dict[int, list[Rewrite]] = {}
"""What edits rewrote, by their numbers: each is looked at once."""
_MOST_KNOWN = 100


def _made(edit: RecordedEdit) -> list[Rewrite]:
    if edit.number not in _known:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        before, now = edit.names_before(), edit.names_now()
        _known[edit.number] = rewrites(edit, before.tree, now.tree) if before and now else []
    return _known[edit.number]


def _edits(
    rule: Rule, names: tuple[ResolvedNames, ResolvedNames], start: int, by: int
) -> list[TextEdit[int]]:
    """Return what a rule changes in a text. The texts differ from ``start`` on, by ``by``."""
    now = names[1].tree
    matched = instances(rule, now, candidates(rule, now, start, by)).items()
    edits = {span: instance for span, instance in matched if _has_types(rule, names, instance[1])}
    old, new = rule.example.old, rule.example.new
    leaves = {leaf.text for leaf in rule.pattern.leaves() if leaf.is_named}
    names_of_pattern = filter(_NAME.fullmatch, sorted(leaves)[:MOST_NAMES])
    for name in names_of_pattern if rule.siblings is None and edits else ():
        if name == "self":
            classes = {_kin(names[0].tree, offset) for offset in (old.start, rule.other)}
            same = {span for span in edits if len(classes) > 1 or _kin(now, span[0]) in classes}
            edits = {span: edits[span] for span in edits if span in same}
            continue
        holes = [(hole.start, hole.end) for hole in rule.pattern.holes()]
        scopes = _meanings(names[0], name)(old.start, old.end, holes)
        # The examples may mean different variables.
        is_same = all(scope is None or scope.start <= rule.other < scope.end for scope in scopes)
        is_same = is_same and name not in rule.loose
        moved = {scope and scope.start + by * (scope.start > start) for scope in scopes}
        meanings, kinds = _meanings(names[1], name), {_kind(scope) for scope in scopes}
        types = _types(names[0], name, (old.start, old.end)) - {""}
        for span in list(edits):
            held = meanings(*span, [hole[1:] for hole in edits[span][1].values()])
            starts = {scope and scope.start for scope in held}
            is_it = is_same and (not types or _types(names[1], name, span) != types)
            if starts != moved if is_it else {_kind(scope) for scope in held} != kinds:
                del edits[span]
    came = {leaf.text for leaf in rule.template.leaves() if leaf.is_named} - leaves
    for name in filter(_NAME.fullmatch, () if rule.is_caused else came):
        uses = [use for use in names[1].uses(name) if use.use is NameUse.VARIABLE]
        is_variable = any(new.start <= use.start < new.end for use in uses)
        visible_in = [use.scope for use in uses if is_variable and use.declares and use.scope]
        for span in list(edits) if visible_in else ():
            # A variable of the example's function is nothing in another one.
            if not any(scope.start <= span[0] < scope.end for scope in visible_in):
                del edits[span]
    return checked(rule, now, replacements(rule, now, edits))


def _has_types(
    rule: Rule, names: tuple[ResolvedNames, ResolvedNames], substitution: Substitution
) -> bool:
    """Return whether operands have the types of the example's, as far as those are told: for an
    operator that comes in place of something else."""
    if rule.template.kind == rule.pattern.kind or not _OPERATOR.search(rule.template.kind):
        return True

    def type_at(texts: ResolvedNames, start: int, end: int) -> str:
        return re.split(r"\W", texts.type_of(texts.tree.node(start, end)), maxsplit=1)[0]

    pairs = ((type_at(names[0], hole.start, hole.end), substitution[hole.number])
             for hole in rule.pattern.holes())  # fmt: skip
    return all(told in ("", type_at(names[1], start, end)) for told, (_, start, end) in pairs)


def _kin(tree: SyntaxTree, offset: int) -> str:
    """Return the bases of the class around a character, or its name where it has none."""
    node = enclosing(tree.node(offset, offset), "^class_definition$")
    return tree.text_of(child_of(node, "superclasses", "name"))


def _meanings(
    names: ResolvedNames, name: str
) -> Callable[[int, int, Iterable[Span]], set[Scope | None]]:
    """Return what gives the scopes of ``name`` between two characters, outside some spans; None
    where it has none."""
    uses = [use for use in names.uses(name)
            if use.use is not NameUse.KEY and use.receiver != "self"]  # fmt: skip
    starts = [use.start for use in uses]
    scopes = [use.scope for use in uses]

    def scopes_between(start: int, end: int, holes: Iterable[Span]) -> set[Scope | None]:
        edges = [start, *(edge for hole in sorted(holes) for edge in hole), end]
        spans = (slice(*(bisect_left(starts, edge) for edge in edges[n : n + 2]))
                 for n in range(0, len(edges), 2))  # fmt: skip
        return {scope for span in spans for scope in scopes[span]}

    return scopes_between


def _types(names: ResolvedNames, name: str, span: Span) -> set[str]:
    """Return the types of a name between two characters."""
    return {names.type_of(use.node) for use in names.uses(name) if span[0] <= use.start < span[1]}


def _is_local(names: ResolvedNames, rule: Rule, name: str) -> bool:
    """Return whether a name of the example is a variable of a function, or the object itself."""
    scopes = _meanings(names, name)(rule.example.old.start, rule.example.old.end, ())
    return name in ("self", "this") or {_kind(scope) for scope in scopes} == {"function"}


def _kind(scope: Scope | None) -> str:
    """Return the kind of a scope; those within functions are alike, as a parameter's."""
    is_outer = scope is None or scope.is_class or scope.kind == "module"
    return "function" if not is_outer else scope.kind if scope is not None else ""
