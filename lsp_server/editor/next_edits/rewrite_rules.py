"""Rewrite rules: what two rewrites have in common, as far as it says what it is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from lsp_server.editor.next_edits.anti_unification import (
    Generalisation,
    Hole,
    Term,
    is_literal_kind,
    parts_of,
)
from lsp_server.editor.next_edits.rewrites import Rewrite, RewrittenNode, indent_at
from lsp_server.text.syntax.tree import SyntaxTree

_CONSTANT = re.compile(r"(?:[\w]+\.)*[A-Z][A-Z0-9_]+")
_PLAIN_VALUE = re.compile(r"[Tt]rue|[Ff]alse|\d[\w.]*")
ANY_NUMBER = 2_000
"""The hole of a call's arguments."""
_OPERATOR = re.compile(r"[^\w\s()\[\]{},;:]+")
_SAME = {("==", "==="), ("!=", "!=="), ("===", "=="), ("!==", "!="), ("&&", "and"), ("||", "or"),
         ("||", "??"), ("<>", "!="), ("any", "unknown"), ("interface{}", "any"), (".", "?."),
         ("type_assertion", "as_expression")}  # fmt: skip
"""Operators, types and kinds of nodes that are written for one another; any other change of an
operator is a change of sense."""
_COMMON = {
    *("self", "this", "cls", "super", "int", "str", "float", "bool", "bytes", "string", "number"),
    *("boolean", "void", "any", "object", "double", "long", "char"),
}
"""Names that say nothing of where they are."""
_LITERAL_LIST = re.compile(r"dict|object$|list|tuple|array|literal_[ve]|initializer|struct")
_TYPED = {"composite_literal", "struct_expression", "object_creation_expression"}
"""Literals whose type says what they are."""
_OPERAND = re.compile(r"call|invocation|subscript|index_exp|^attribute$|member|field_exp|selector"
                      r"|^type_(?:parameter|arguments)$|tuple|binary"
                      r"|^(?:list|set|dictionary|array|object)$|comparison")  # fmt: skip
_RECEIVERS = {"object", "operand", "value"}
_NAMES = {"function", "name", "property", "attribute", "field", "cause"}
_CALL = re.compile(r"^call$|call_exp|invocation")
_REPEATING = re.compile("binary|boolean|declarator|lambda|^pair$")
_SIGNATURE = re.compile(r"parameter|argument|(?:function|class|method|decorated)_(?:def|decl|item)")
_TYPE = re.compile(r"(?:^|[ _])types?(?:$|[ _])|annotation")
_MODIFIERS = re.compile(
    "readonly|export|final|static|public|private|protected|internal|pub|override|abstract"
)
_MODIFIER = re.compile(r"decorator|attribute|annotation|modifier")


@dataclass(frozen=True, slots=True)
class Rule:
    """Instances of a pattern become instances of a template."""

    pattern: Term
    template: Term
    """Its holes are those of the pattern; its text is that of an example."""
    example: RewrittenNode
    indent: str = ""
    """With which the line of the example begins."""
    other: int = 0
    """Where the other example was."""
    siblings: tuple[str, int] | None = None
    """The node in which alone it holds, where the pattern says little."""
    by_role: bool = False
    loose: frozenset[str] = frozenset()
    """Names of variables for which others of that name may stand."""

    @property
    def is_called_instead(self) -> bool:
        """Return whether a call has the operands of an operation: ``errors.Is(err, ErrGone)``."""
        is_operation = re.search("binary|comparison", self.pattern.kind) is not None
        operands = {hole.number for hole in self.pattern.holes()}
        holes = {hole.number for hole in self.template.holes()}
        return is_operation and _CALL.search(self.template.kind) is not None and operands == holes

    @property
    def words_came(self) -> set[str]:
        """Return the words and signs that the template has and the pattern has not."""
        before, after = ({leaf.text for leaf in term.leaves()}
                         for term in (self.pattern, self.template))  # fmt: skip
        return after - before

    @property
    def is_same(self) -> bool:
        """Return whether an operator or kind of node is written as another of its sense."""
        old, new = ((each.text, each.kind) for each in (self.pattern, self.template))
        return not _SAME.isdisjoint(zip(old, new, strict=True))

    @property
    def is_caused(self) -> bool:
        """Return whether an error that is raised gets its cause: ``raise X() from error``."""
        old, new = ({leaf.text for leaf in each.leaves()} for each in (self.pattern, self.template))
        return "raise" in old and "from" in new - old

    @property
    def title(self) -> str:
        """The text that the user is told."""
        return f"{_short(self.example.old.text)} → {_short(self.example.new.text)}"


def generalised(mine: Rewrite, other: Rewrite, before: SyntaxTree) -> Rule | None:
    """Return the rule of two rewrites: the smallest nodes whose pattern says what changes."""
    roles = [rewrite[0].role for rewrite in (mine, other)]
    first = mine[0]
    if roles[0][:1] == ("literal",) and not first.new.parts and roles[0] != roles[1]:
        return None
    last = None
    for level in mine:
        same = next((its for its in other if its.old.kind == level.old.kind
                     and its.new.kind == level.new.kind), None)  # fmt: skip
        if same is None:
            continue
        sides = [(each.old.start, each.parent, each.old.text, each.new.text)
                 for each in (level, same)]  # fmt: skip
        holds_both = level.old.start <= other[0].old.start < level.old.end
        if holds_both and (sides[0] == sides[1] or last is not None):
            break
        generalisation = Generalisation(level.function, same.function)
        pattern = generalisation.of(level.old, same.old)
        template = generalisation.template(level.new, same.new)
        if not isinstance(pattern, Term):
            continue
        numbers = {hole.number for hole in pattern.holes()}
        holes = [template] if isinstance(template, Hole) else template.holes()
        if {hole.number for hole in holes} - numbers or level.is_target != same.is_target:
            continue
        if isinstance(template, Hole):
            template = Term("", level.new.text, level.new.start, (template,))
        pattern, template = _with_shared_operands(pattern, template)
        rule = Rule(pattern, template, level, indent_at(before.text, level.old.start))
        is_alias = not template.parts and next(pattern.holes(), None) is None
        by_role = level.role == same.role != () and (is_alias or level.role[0] != "type")
        rule = replace(rule, other=same.old.start, by_role=by_role)
        if _is_sense_changed(rule):
            continue
        if _says_enough(rule):
            return rule
        if level.parent == same.parent and _is_of_siblings(rule):
            last = rule
    if last is None:
        return None
    return replace(last, siblings=last.example.parent)


def _with_shared_operands(pattern: Term, template: Term) -> tuple[Term, Term]:
    """Return both with one hole for each operand with holes that both have."""
    before, after = ({_key(term) for term in parts_of(each) if _OPERAND.search(term.kind)}
                     for each in (pattern, template))  # fmt: skip
    numbers = {key: 1_000 + number for number, key in enumerate(before & after)}

    def number_of(term: Term) -> int | None:
        # What is called says what it is about.
        is_operand = _OPERAND.search(term.kind) and term.field != "function"
        is_operand = is_operand and next(term.holes(), None) is not None
        is_replaced = is_operand or term.kind.startswith("type_")
        return numbers.get(_key(term)) if is_replaced else None

    return _with_any_number(_with_holes(pattern, number_of), _with_holes(template, number_of))


def loosened(rule: Rule, is_local: Callable[[str], bool]) -> Rule:
    """Return ``rule`` with holes for the operands that both examples have alike and that stay:
    arguments, literals, types, and variables of a function by ``is_local``. If the rest says too
    little, other variables of their names may stand for them. What a method is called on is an
    operand where more than a name goes."""
    is_reshaped = sum(re.search(r"\w|[=<>]", text) is not None for text in _gone(rule)) > 1
    arguments = [child for each in parts_of(rule.pattern) if "argument" in each.kind
                 for child in each.parts]  # fmt: skip

    def is_given(term: Term) -> bool:
        return term.field not in _NAMES

    def is_operand(term: Term) -> bool:
        if not term.is_named or not is_given(term) or next(term.holes(), None) is not None:
            return False
        is_name = term.kind == "identifier" or _OPERAND.search(term.kind) is not None
        is_variable = is_name and is_local(re.split(r"\W", term.text, maxsplit=1)[0])
        is_argument = any(term is each for each in arguments)
        is_value = is_argument or is_variable or is_literal_kind(term.kind) or term.kind == "type"
        return is_value and (is_reshaped or term.field not in _RECEIVERS)

    before = [term.text for term in parts_of(rule.pattern) if is_operand(term)]
    after = [term.text for term in parts_of(rule.template) if is_given(term)]
    # What an anonymous function calls its parameters is its own.
    bound = {leaf.text for each in parts_of(rule.pattern) if "parameters" in each.kind
             for leaf in each.leaves() if leaf.kind == "identifier"}  # fmt: skip
    opened_texts = ({*before} & {*after}) | bound
    numbers = {text: 10_000 + 1_000 * number for number, text in enumerate(opened_texts)}
    # Numbers and strings may be alike by accident.
    values = filter(re.compile(r"\W|\d").match, numbers)
    apart = {text for text in values if before.count(text) == after.count(text)}

    def opened(term: Term) -> Term:
        met = Counter[str]()

        def number_of(child: Term) -> int | None:
            if not is_given(child) or child.text not in numbers:
                return None
            met[child.text] += child.text in apart
            return numbers[child.text] + met[child.text]

        return _with_holes(term, number_of)

    pattern, template = opened(rule.pattern), opened(rule.template)
    looser = replace(rule, pattern=pattern, template=template)
    says_enough = _says_enough(looser) and not _is_sense_changed(looser)
    return replace(looser if says_enough else rule, loose=frozenset(numbers))


def _with_holes(term: Term, number_of: Callable[[Term], int | None]) -> Term:
    """Return ``term`` with a hole in place of each part for which ``number_of`` has a number."""

    def opened(child: Term | Hole) -> Term | Hole:
        if isinstance(child, Hole):
            return child
        number = number_of(child)
        hole = None if number is None else Hole(number, child.start, child.end)
        return hole or _with_holes(child, number_of)

    return replace(term, parts=tuple(map(opened, term.parts)))


def _with_any_number(pattern: Term, template: Term) -> tuple[Term, Term]:
    """Return both for any number of arguments, where those of a message, which begin with a text,
    get others before or behind them."""
    for arguments in filter(_is_message, parts_of(pattern)):
        values = [*map(_key, arguments.parts[1:-1])]
        for others in parts_of(template):
            keys = [*map(_key, others.parts)] if "argument" in others.kind else []
            for first in range(1, len(keys) - len(values)):
                run = slice(first, first + len(values))
                if keys[run] == values:
                    pattern = _with_sequence(pattern, arguments, slice(1, len(values) + 1))
                    return pattern, _with_sequence(template, others, run)
    return pattern, template


def _is_message(term: Term) -> bool:
    """Return whether ``term`` is a list of arguments that begins with a text."""
    return (
        "argument" in term.kind
        and len(term.parts) > len("(a)")
        and term.text[1:2] in ("'", '"', "`")
    )


def _with_sequence(term: Term, inner: Term, run: slice) -> Term:
    """Return ``term`` with one hole for a ``run`` of the parts of ``inner``, which is in it."""
    children = [_with_sequence(child, inner, run) if isinstance(child, Term) else child
                for child in term.parts]  # fmt: skip
    if term is inner:
        start, end = children[run][0].start, children[run][-1].end
        children[run] = [Hole(ANY_NUMBER, start, end, is_sequence=True)]
    return replace(term, parts=tuple(children))


def _key(term: Term | Hole) -> tuple[object, ...]:
    if isinstance(term, Hole):
        return term.number, term.form
    return term.kind, term.text, *((hole.number, hole.form) for hole in term.holes())


def _says_enough(rule: Rule) -> bool:
    """Return whether a pattern has a name or constant that tells what it is about."""
    pattern = rule.pattern
    if rule.is_same or rule.is_caused or _has_twice(rule):
        return True
    if not pattern.parts:
        if rule.example.role == ("parameter",):
            return rule.by_role and rule.example.is_whole and "typed" in rule.template.kind
        return rule.by_role and is_literal_kind(pattern.kind) == is_literal_kind(rule.template.kind)
    is_closed = next(pattern.holes(), None) is None
    is_type = _TYPE.search(f"{pattern.kind} {rule.example.parent[0]}") is not None
    is_name = not rule.template.parts and not _CONSTANT.fullmatch(pattern.text) and not is_type
    if len(_PLAIN_VALUE.findall(" ".join(_gone(rule)))) > 1 and "binary" in pattern.kind:
        # A product of numbers has got a name.
        return True
    is_open = rule.example.role[:1] == ("call",) and isinstance(pattern.parts[-1], Hole)
    if is_open or _has_open_call(pattern) or (is_name and is_closed):
        # What was taken into a variable is a name there alone.
        return False
    if _SIGNATURE.search(pattern.kind) or rule.example.parent[0] in _TYPED:
        return False
    if is_type and is_closed:
        # Another type in one place says nothing of others.
        return re.search(r"[\[<]", pattern.text) is not None
    return any(
        (rewrite.is_named or rewrite.text == "await")
        and rewrite.text not in _COMMON
        and "comment" not in rewrite.kind
        and re.search(r"\w", rewrite.text)
        and not _PLAIN_VALUE.fullmatch(rewrite.text)
        for rewrite in pattern.leaves()
    )


def _has_twice(rule: Rule) -> bool:
    """Return whether the same stands more often before than after: ``a && a.b``, ``a = b.a``."""
    before, after = ([hole.number for hole in term.holes()]
                     for term in (rule.pattern, rule.template))  # fmt: skip
    return _REPEATING.search(rule.pattern.kind) is not None and any(
        before.count(hole) > max(1, after.count(hole)) for hole in before
    )


def _has_open_call(term: Term) -> bool:
    """Return whether a call of a pattern does not say what is called."""
    is_call = _CALL.search(term.kind) is not None
    called: Term | Hole | None = term.parts[0] if is_call and term.parts else None
    while isinstance(called, Term):
        called = called.parts[-1] if called.parts else None
    if called is not None:
        return True
    return any(_has_open_call(child) for child in term.parts if isinstance(child, Term))


def _is_of_siblings(rule: Rule) -> bool:
    """Return whether a pattern that says little holds for nodes side by side."""
    if _LITERAL_LIST.search(rule.pattern.kind) and not _gone(rule):
        return True
    template = rule.template
    first = template.parts[0] if template.parts else template
    is_modified = isinstance(first, Term) and _MODIFIERS.fullmatch(first.text) is not None
    return is_modified or (isinstance(first, Term) and _MODIFIER.search(first.kind) is not None)


def _gone(rule: Rule) -> list[str]:
    """Return the leaves of the pattern that its template has not."""
    before, after = (Counter(leaf.text for leaf in term.leaves())
                     for term in (rule.pattern, rule.template))  # fmt: skip
    return [*(before - after).elements()]


def _is_sense_changed(rule: Rule) -> bool:
    """Return whether an operator or keyword alone became another one, of another sense."""
    pattern, template = rule.pattern, rule.template
    if rule.is_same or rule.is_called_instead or _has_twice(rule):
        return False
    if not pattern.parts:
        return bool(_OPERATOR.fullmatch(pattern.text) or _MODIFIER.search(pattern.kind))
    gone = [text for text in _gone(rule) if text not in set(",;:()[]{}")]
    names = {rewrite.text for rewrite in pattern.leaves()
             if rewrite.is_named and not _MODIFIER.search(rewrite.kind)}  # fmt: skip
    if not gone or names & set(gone):
        return False
    remaining = [rewrite.text for rewrite in pattern.leaves()]
    came = [rewrite.text for rewrite in template.leaves() if rewrite.text not in remaining]
    if not any(re.search(r"[^\s,;:()\[\]{}]", rewrite) for rewrite in came) or all(
        (old, new) in _SAME for old, new in zip(gone, came, strict=False)
    ):
        return False
    return not re.search(r"\b(?:None|null|nil|undefined)\b", pattern.text + "".join(remaining))


def rule_of_one(rewrite: Rewrite) -> Rule | None:
    """Return the rule of a single rewrite: a constant that has another name."""
    for level in rewrite[:3]:
        if _CONSTANT.fullmatch(level.old.text) and _CONSTANT.fullmatch(level.new.text):
            return Rule(level.old, level.new, level, other=level.old.start)
    return None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 30 else line[:29] + "…"
