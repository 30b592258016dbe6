"""The instruction edits are right by rule: they parse and change what they say, no more."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator

import frozen_corpus
import pytest

from accel.text.edit_rules.phrases import PHRASES
from accel.text.edit_rules.source_region import Region, Replacement, apply
from accel.training.edits import EXACT_KINDS, KINDS, EditExample, make_edit

_EXTRA = '''
@cached
@other(1)
def report(name: str, rows: list[int] = None, *, width: int = 80, **more: int) -> str:
    """Report rows.

    At length.
    """

    # Nothing to report.
    if not rows:
        print("none")  # tell
        return 'No rows for {} of {}'.format(name, more.total)
    else:
        count = len(rows)
        text = "%s has %s" % (name, count)
    print(text)
    return text


class Store:
    def größe(self, schlüssel, standard="ä"):
        """Größe."""
        wert = self.daten.get(schlüssel)  # ü
        if wert is None:
            wert = standard
        else:
            wert = wert + 1
        return wert
'''


def _functions() -> Iterator[str]:
    """Functions of the frozen corpus and of the examples above, as whole lines."""
    for text in [_EXTRA, *frozen_corpus.texts()]:
        lines = text.splitlines(keepends=True)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                yield "".join(lines[first - 1 : node.end_lineno])


FUNCTIONS = list(_functions())


def _edits(kind: str, most: int = 150) -> list[EditExample]:
    found = [make_edit(source, kind, seed) for seed, source in enumerate(FUNCTIONS)]
    return [edit for edit in found if edit is not None][:most]


def _tree(source: str) -> ast.AST:
    return ast.parse("if 1:\n" + source if source[:1] in " \t" else source)


def _dump(tree: ast.AST) -> str:
    return ast.dump(tree)


def _first(tree: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef:
    return next(
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def _target(edit: EditExample) -> str | None:
    match = re.search(r" (?:in|of) (\w+)$", edit.instruction)
    return match[1] if match else None


def _without_docstrings(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return _dump(tree)


def _without_hints(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
    return _dump(tree)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_applies_parses_and_is_determined(kind: str) -> None:
    edits = _edits(kind)
    assert edits, f"no function takes {kind}"
    for edit in edits:
        _tree(edit.before)
        _tree(edit.after)
        assert edit.before != edit.after
        assert not re.search(r"<[a-z]+>", edit.instruction)
    for seed, source in enumerate(FUNCTIONS[:40]):
        assert make_edit(source, kind, seed) == make_edit(source, kind, seed)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_unchanged_spans_stand_in_the_original(kind: str) -> None:
    for edit in _edits(kind):
        rest, place = [], 0
        for start, end in edit.changed:
            rest.append(edit.after[place:start])
            place = end
        rest.append(edit.after[place:])
        place = 0
        for part in rest:
            found = edit.before.find(part, place)
            assert found >= 0, (kind, part)
            place = found + len(part)


@pytest.mark.parametrize("kind", ["rename_parameter", "rename_variable", "rename_function"])
def test_renaming_back_gives_the_same_tree(kind: str) -> None:
    class Back(ast.NodeTransformer):
        def __init__(self, new: str, old: str) -> None:
            self.new, self.old = new, old

        def visit(self, node: ast.AST) -> ast.AST:
            for field in ("id", "arg", "name"):
                if getattr(node, field, None) == self.new:
                    setattr(node, field, self.old)
            return self.generic_visit(node)

    for edit in _edits(kind):
        start, end = edit.changed[0]
        new = edit.after[start:end]
        assert not re.search(rf"\b{re.escape(new)}\b", edit.before)
        old_end = len(edit.before) - len(edit.after[edit.changed[-1][1] :])
        old = re.compile(r"\w+").match(edit.before, start)
        assert old
        assert new in edit.instruction
        assert edit.before[:old_end].endswith(old[0])
        assert _dump(Back(new, old[0]).visit(_tree(edit.after))) == _dump(_tree(edit.before))
        if kind != "rename_function" and _target(edit) is None:
            names = {n.id for n in ast.walk(_tree(edit.after)) if isinstance(n, ast.Name)}
            assert old[0] not in names


def _standing(source: str) -> str:
    return "if 1:\n" + source if source[:1] in " \t" else source


@pytest.mark.parametrize("kind", ["add_docstring", "remove_docstring", "write_docstring"])
def test_docstring_edits_change_docstrings_only(kind: str) -> None:
    for edit in _edits(kind):
        assert _without_docstrings(_tree(edit.before)) == _without_docstrings(_tree(edit.after))
        assert _dump(_tree(edit.before)) != _dump(_tree(edit.after))
        if kind == "add_docstring":
            text = re.search(r'"(.*)"', edit.instruction)
            assert text
            docs = [
                ast.get_docstring(node)
                for node in ast.walk(_tree(edit.after))
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            assert text[1] in docs


@pytest.mark.parametrize("kind", ["add_type_hint", "add_return_type", "remove_type_hints"])
def test_type_hint_edits_change_annotations_only(kind: str) -> None:
    for edit in _edits(kind):
        assert _without_hints(_tree(edit.before)) == _without_hints(_tree(edit.after))
        if kind == "remove_type_hints" and _target(edit) is None:
            assert _dump(_tree(edit.after)) == _without_hints(_first_signature_bare(edit.after))


def _first_signature_bare(source: str) -> ast.AST:
    tree = _tree(source)
    function = _first(tree)
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    function.returns = None
    return tree


@pytest.mark.parametrize("kind", ["change_quotes", "remove_comments"])
def test_layout_edits_keep_the_tree(kind: str) -> None:
    for edit in _edits(kind):
        assert _dump(_tree(edit.before)) == _dump(_tree(edit.after))
        tokens = list(tokenize.generate_tokens(io.StringIO(_standing(edit.after)).readline))
        if kind == "remove_comments":
            assert not [token for token in tokens if token.type == tokenize.COMMENT]


def test_f_strings_give_the_same_text() -> None:
    source = (
        "def f(a, b):\n"
        '    x = "{} and {}".format(a, b.real)\n'
        "    y = 'n %s' % a\n"
        '    return "%s-%s" % (a, b), x, y\n'
    )
    edit = make_edit(source, "to_fstring", 0)
    assert edit is not None
    assert edit.after.count("f'") + edit.after.count('f"') == 3
    spaces: list[dict[str, object]] = [{}, {}]
    exec(edit.before, spaces[0])
    exec(edit.after, spaces[1])
    assert spaces[0]["f"](3, 4.5) == spaces[1]["f"](3, 4.5)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("kind", "call"),
    [("invert_if", (True, 7)), ("invert_if", (False, 7)), ("wrap_try", (True, 7))],
)
def test_behaviour_stays(kind: str, call: tuple[bool, int]) -> None:
    source = (
        "def f(flag, n):\n    if flag:\n        n += 1\n    else:\n        n -= 1\n    return n\n"
    )
    for seed in range(10):
        edit = make_edit(source, kind, seed)
        assert edit is not None
        spaces: list[dict[str, object]] = [{}, {}]
        exec(edit.before, spaces[0])
        exec(edit.after, spaces[1])
        assert spaces[0]["f"](*call) == spaces[1]["f"](*call)  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["add_parameter", "change_default"])
def test_parameter_edits_change_the_signature_only(kind: str) -> None:
    for edit in _edits(kind):
        pairs = list(zip(_all(edit.before), _all(edit.after), strict=True))
        changed = [(a, b) for a, b in pairs if _dump(a.args) != _dump(b.args)]
        assert len(changed) == 1
        a, b = changed[0]
        if kind == "add_parameter":
            assert len(b.args.args) == len(a.args.args) + 1
            assert b.args.args[-1].arg in edit.instruction
        for a, b in pairs:
            a.args = b.args
        assert [_dump(a) for a, _ in pairs] == [_dump(b) for _, b in pairs]


def _all(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(_tree(source)) if isinstance(node, kinds)]


def test_added_lines_come_first_in_the_body() -> None:
    for kind in ("add_guard", "add_print", "add_logging"):
        for edit in _edits(kind):
            ((start, end),) = edit.changed
            assert edit.before == edit.after[:start] + edit.after[end:]


def test_decorators_and_async() -> None:
    for edit in _edits("remove_decorators"):
        if _target(edit) is None:
            assert not _first(_tree(edit.after)).decorator_list
    for edit in _edits("add_decorator"):
        assert "@" in edit.instruction
    for edit in _edits("make_async"):
        ((start, end),) = edit.changed
        assert edit.after[start:end] == "async "


def test_prints_are_gone() -> None:
    for edit in _edits("remove_prints"):
        calls = [n for n in ast.walk(_tree(edit.after)) if isinstance(n, ast.Expr)]
        assert not [n for n in calls if ast.unparse(n).startswith("print(")]


def wordings(kind: str) -> int:
    """How many wordings a kind has, slots and marks not counted."""
    total = 0
    for phrase in PHRASES[kind]:
        count = 1
        for choice in re.findall(r"\{([^{}]*)\}", phrase):
            count *= len(choice.split("|"))
        total += count
    return total


def test_many_wordings() -> None:
    assert set(PHRASES) == set(KINDS)
    assert min(wordings(kind) for kind in KINDS) >= 9
    assert sum(wordings(kind) >= 12 for kind in KINDS) >= 18


def test_unknown_kind_and_broken_source() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        make_edit("x = 1\n", "dance", 0)
    assert make_edit("def f(:\n", "rename_function", 0) is None
    assert make_edit("x = 1\n", "rename_function", 0) is None


def test_places_are_characters_even_in_indented_unicode() -> None:
    source = '    def f(ä, b):\n        return "üü" + ä.ö + b\n'
    region = Region(source)
    names = [node for node in ast.walk(region.tree) if isinstance(node, ast.Name)]
    assert sorted(region.text(node) for node in names) == ["b", "ä"]
    texts = [token.text for token in region.tokens()]
    assert all(source[t.start : t.end] == t.text for t in region.tokens() if t.text.strip())
    assert '"üü"' in texts


def test_apply_equals_one_by_one() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(500):
        text = "".join(rng.choice("abc\n") for _ in range(20))
        cuts = sorted(rng.sample(range(21), 6))
        items = [Replacement(cuts[i], cuts[i + 1], rng.choice(["", "X", "YY"])) for i in (0, 2, 4)]
        expected = text
        for item in reversed(items):
            expected = expected[: item.start] + item.text + expected[item.end :]
        result, spans = apply(text, items)
        assert result == expected, f"seed {seed}"
        assert [result[a:b] for a, b in spans] == [item.text for item in items]
