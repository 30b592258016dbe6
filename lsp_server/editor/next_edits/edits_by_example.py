"""The same change elsewhere: what two edits have in common is done wherever it matches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from lsp_server.editor.editing.checks import new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.anti_unification import (
    Substitution,
    Term,
    forms,
    is_literal,
    matches,
    parts_of,
    respelt,
    term_of,
)
from lsp_server.editor.next_edits.concatenations import formatted_alike
from lsp_server.editor.next_edits.rewrite_rules import (
    ANY_NUMBER,
    Rule,
    generalised,
    loosened,
    rule_of_one,
)
from lsp_server.editor.next_edits.rewrites import (
    LARGEST_NODE,
    Rewrite,
    RewrittenNode,
    as_long,
    caught_around,
    function_around,
    indent_at,
    is_target,
    rewrites,
    role_of,
)
from lsp_server.editor.next_edits.words import changed_word, refuse_many, whole
from lsp_server.text.syntax.name_uses import NameUse, Span
from lsp_server.text.syntax.nodes import (
    child_of,
    enclosing,
    inner,
    kind_of,
    may_await,
    outside,
)
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.syntax.roles import PROSE
from lsp_server.text.syntax.scopes import Scope
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit

    Instance = tuple[Term, Substitution, Node]

MOST_EDITS = 8
"""Edits that are compared with the last one."""
MOST_NAMES = 8
"""Names of a pattern of which it is asked what they mean."""
_TRUTH = re.compile(r"[<>!]=*|[!=]==?|&&|in|instanceof")
_CONDITION = re.compile(r"parenthesized|unary|ternary")
_TEXTS = PROSE | {"latex", "typst"}
"""Grammars of texts, in which equal words need not mean the same."""
_NAME = re.compile(r"[^\W\d]\w*")
_LEAF = re.compile(r"\w+")
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
    whole = next((each for each in _made(edit) if each[0].is_whole
                  and each[-1].old.start == other[-1].old.start), other)  # fmt: skip
    if whole is other:
        return False
    gone = _words_gone(whole[-1]) - _words_gone(other[0])
    return bool(gone) and gone <= Counter(_LEAF.findall(rewrite[-1].new.text))


def _explains(rule: Rule, before: SyntaxTree, statement: RewrittenNode) -> bool:
    """Return whether all that changed in a statement of an example is what the rule makes of some
    of its instances there."""
    old, new = statement.old, statement.new.text
    nodes = (node for node in _candidates(rule, before, 0, 0)
             if old.start <= before.start(node) and before.end(node) <= old.end)  # fmt: skip
    text, offset = "", old.start
    for edit in _outermost(rule, before, _instances(rule, before, nodes)):
        text += before.text[offset : edit.start]
        offset = edit.end
        is_made = new.startswith(edit.text, len(text))
        text += edit.text if is_made else before.text[edit.start : edit.end]
    return text + before.text[offset : old.end] == new


def _words_gone(node: RewrittenNode) -> Counter[str]:
    return Counter(_LEAF.findall(node.old.text)) - Counter(_LEAF.findall(node.new.text))


_ERROR = re.compile(r"[^%\n]*[eE]rr\w*\W*?$", re.MULTILINE)
"""Has no other verb and ends with an error, as what Go's ``%w`` is for."""
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
        spans = [span for span in spans if _ERROR.match(now.text, span[1])]
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
    edits = _instances(rule, now, _candidates(rule, now, start, by))
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
            held = meanings(*span, [place[1:] for place in edits[span][1].values()])
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
    return _checked(rule, now, _outermost(rule, now, edits))


def _instances(rule: Rule, tree: SyntaxTree, nodes: Iterable[Node]) -> dict[Span, Instance]:
    """Return those of ``nodes`` that are instances of the pattern of a rule, by their place."""
    edits: dict[Span, Instance] = {}
    for node in nodes:
        is_read = not node.has_error and len(edits) <= 1_000
        substitution = _match(rule, tree, node) if is_read else None
        if substitution is not None:
            term = term_of(tree, node)
            edits[term.start, term.end] = term, substitution, node
    return edits


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


def _candidates(rule: Rule, now: SyntaxTree, start: int, by: int) -> Iterator[Node]:
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


def _match(rule: Rule, now: SyntaxTree, node: Node) -> Substitution | None:
    """Return what is in the holes of the pattern at a node; None where the rule is not for it."""
    edits: Substitution = {}
    if rule.by_role and role_of(now, node) != rule.example.role:
        return None
    if is_target(node) != rule.example.is_target:
        return None
    text = now.text_of(node)
    if "%w" in rule.template.text and not _ERROR.search(text):
        return None
    words = [{leaf.text for leaf in term.leaves()} for term in (rule.pattern, rule.template)]
    if "await" in words[1] - words[0] and not may_await(node):
        return None
    if rule.is_caused and caught_around(now, node) in ("", text.removeprefix("raise ")):
        return None
    named, arguments = (set(_NAMED.findall(each)) for each in (rule.template.text, text))
    named -= set(_NAMED.findall(rule.pattern.text))
    is_binary = "encoding" in named and _BINARY.search(text) is not None
    if named and (is_binary or "" in arguments or named & arguments):
        return None
    if not matches(rule.pattern, term_of(now, node), edits):
        return None
    term = term_of(now, node)
    spans = {(start, end) for _, start, end in edits.values()}
    calls = [part for part in parts_of(rule.pattern) if "call" in part.kind]
    parts = [part for part in parts_of(term) if (part.start, part.end) in spans]
    if any(matches(call, part, {}) for call in calls for part in parts):
        # ``type(a) == type(b)`` is no ``isinstance(a, …)``.
        return None
    if function_around(now, node) in words[1] - words[0] or not _may_be_null(rule, now, node):
        return None
    values = [text for text, _, _ in edits.values() if _VALUE.match(text)]
    if (
        rule.template.kind == "binary_operator"
        and "generic" in rule.pattern.kind
        and any(text[0] in "\"'" for text in values)
    ):
        # A string and a type have no union.
        return None
    if values and rule.is_called_instead and not _VALUE.search(rule.example.old.text):
        return None
    if not all(
        forms(edits[hole.number][0])[hole.form] or not hole.form for hole in rule.template.holes()
    ):
        return None
    if ANY_NUMBER in edits and not edits[ANY_NUMBER][0]:
        return None
    quoted = {text for text in words[1] - words[0] if text[:1] in ("'", '"', "`")}
    if quoted & {leaf.text for leaf in term_of(now, node).leaves()}:
        return None
    around: Node | None = node
    for _ in range(3):
        # An argument's call is around the list of its arguments.
        if around is not None and _is_made(rule, now, around):
            return None
        around = around.parent if around is not None else None
    return None if _is_made_before(rule, now, node) else edits


def _may_be_null(rule: Rule, now: SyntaxTree, node: Node) -> bool:
    """Return whether the operands at a node are no truth values, if ``||`` is to be ``??``."""
    if "??" not in {leaf.text for leaf in rule.template.leaves()}:
        return True
    operation = node if node.named_child_count else outside(node)
    sides = [operation, *inner(operation)]
    signs = {now.text_of(child_of(side, "operator")) for side in sides}
    return not any(map(_TRUTH.fullmatch, signs)) and not _CONDITION.search(
        kind_of(outside(operation))
    )


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


def _outermost(rule: Rule, now: SyntaxTree, edits: dict[Span, Instance]) -> list[TextEdit[int]]:
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
        return re.sub(rf"(\r?\n){rule.indent}", lambda edits: edits[1] + indent, text)

    for hole, around in template.holes_with_kinds():
        pieces.append(literal(template.text[offset - template.start : hole.start - template.start]))
        text, start, end = substitution[hole.number]
        text = forms(text)[hole.form]
        hunks = [TextEdit(a - start, b - start, new) for (a, b), new in sorted(inner.items())
                 if start <= a and b <= end]  # fmt: skip
        text = apply_hunks(text, hunks)
        is_first = hole.start == template.start
        # Python's comparisons bind less than its arithmetic.
        same = {template.kind if is_first else "",
                "binary_operator" if around == "comparison_operator" else ""}  # fmt: skip
        before = "type T = " if around == "array_type" else ""
        is_operation = _TIGHT.search(around) and _is_operation(text, now.grammar, same, before)
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


def _checked(rule: Rule, now: SyntaxTree, edits: list[TextEdit[int]]) -> list[TextEdit[int]]:
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
