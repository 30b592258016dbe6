"""Next edits that need no model, counted on histories made of other people's code.

``next_edit_histories.py REPOS [--each N] [--seed S]``: REPOS is a folder of ``*.jsonl`` files, one
``{path, content}`` a line, each file a repository. What is right is found by Python's own parser,
which shares no code with what is measured. Of every kind at most N histories, by chance.

- renames: a local name or parameter is typed anew where it is given
- imports: a function that other files import is typed anew
- parameters: a parameter goes, its calls are to follow
- literals: an argument of equal calls is changed twice, the others are to follow
- look-alikes: equal names of other functions, equal literals in other roles, names that are being
  typed, changes that are undone: nothing of it may be proposed
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import difflib
import io
import json
import random
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lsp_server.text.text_edit import TextEdit

sys.path.insert(0, str(Path(__file__).parents[1] / "server" / "editor" / "next_edits"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from typist import Typist

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.text.documents.document import Position

NEW = "fresh_name"
Span = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One word or stretch of a line that is typed anew."""

    line: int
    column: int
    old: str
    new: str


@dataclass(frozen=True)
class TypedHistory:
    """What somebody does in a file, and what the files of the repository become."""

    kind: str
    path: str
    steps: tuple[Step, ...]
    wanted: dict[str, str]
    """Texts of the files that change, behind the steps and all next edits."""


def columns(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def column_of(lines: list[str], line: int, utf8: int) -> int:
    """Code points of a line before a column that the parser tells in bytes."""
    return len(lines[line].encode()[:utf8].decode())


def replaced(source: str, places: set[tuple[int, int, int]], new: str) -> str:
    """The text with other text at (line, start, end)."""
    lines = columns(source)
    for line, start, end in sorted(places, reverse=True):
        lines[line] = lines[line][:start] + new + lines[line][end:]
    return "".join(lines)


def name_places(
    lines: list[str], nodes: Iterator[ast.AST] | list[ast.AST], name: str
) -> set[tuple[int, int, int]]:
    found = set()
    for node in nodes:
        if (isinstance(node, ast.Name) and node.id == name) or (
            isinstance(node, ast.arg) and node.arg == name
        ):
            start = column_of(lines, node.lineno - 1, node.col_offset)
            found.add((node.lineno - 1, start, start + len(name)))
    return found


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def is_simple(function: ast.FunctionDef, name: str) -> bool:
    """Whether a name has one meaning in a function and all that is in it."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if node is function:
            continue
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if name in {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}:
                return False
            stored = {one.id for one in ast.walk(node)
                      if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
            if name in stored:
                return False
        if isinstance(node, ast.comprehension):
            targets = {one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)}
            if name in targets:
                return False
        if isinstance(node, (ast.ClassDef, ast.ExceptHandler, ast.alias)):
            return False
    return True


def renames(path: str, source: str) -> Iterator[TypedHistory]:
    tree, lines = ast.parse(source), columns(source)
    for function in functions(tree):
        given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
        stored = {one.id for one in ast.walk(function)
                  if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
        defaults = [*function.args.defaults, *function.args.kw_defaults, *function.decorator_list]
        for name in sorted(given | stored):
            outside = {
                one.id for default in defaults if default for one in ast.walk(default)
                if isinstance(one, ast.Name)
            }  # fmt: skip
            keywords = {
                node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)
            } if name in given else set()  # fmt: skip
            annotated = name in {
                one.id for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
                and argument.annotation for one in ast.walk(argument.annotation)
                if isinstance(one, ast.Name)
            }  # fmt: skip
            if name in outside | keywords or annotated or not is_simple(function, name):
                continue
            places = name_places(lines, list(ast.walk(function)), name)
            if len(places) < 2 or NEW in source:
                continue
            loops = [node for node in ast.walk(function) if isinstance(node, (ast.For, ast.With))]
            bound = sum(
                isinstance(one, ast.Name) and one.id == name
                for loop in loops for one in ast.walk(loop.target if isinstance(loop, ast.For) else
                ast.Tuple([item.optional_vars for item in loop.items if item.optional_vars]))
            )  # fmt: skip
            times = sum(
                isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
                for node in ast.walk(function)
            )
            if bound and times > 1:
                continue
            first = min(places)
            step = Step(first[0], first[1], name, NEW)
            yield TypedHistory("renames", path, (step,), {path: replaced(source, places, NEW)})


def imports(files: dict[str, str]) -> Iterator[TypedHistory]:
    """Functions that other files take from their module, or call as its attributes."""
    for path, source in files.items():
        stem = Path(path).stem
        for node in ast.parse(source).body:
            if not isinstance(node, ast.FunctionDef) or NEW in source:
                continue
            found = {path: _name_tokens(source, node.name, "")}
            fits = found[path] is not None and _times_given(source, node.name) == 1
            for other, text in files.items():
                if other == path or node.name not in text:
                    continue
                from_it = [
                    one
                    for one in ast.walk(ast.parse(text))
                    if isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[-1] == stem
                    and any(name.name == node.name for name in one.names)
                ]  # fmt: skip
                module = any(
                    name.name == stem and name.asname is None
                    for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ImportFrom)
                    for name in one.names
                )  # fmt: skip
                if from_it:
                    found[other] = _name_tokens(text, node.name, stem if module else "")
                    fits = fits and found[other] is not None and _times_given(text, node.name) == 1
                elif module:
                    found[other] = _attributes(text, node.name, stem)
            if not fits or len([one for one in found.values() if one]) < 2:
                continue
            line = columns(source)[node.lineno - 1]
            step = Step(node.lineno - 1, line.index(node.name), node.name, NEW)
            wanted = {
                one: replaced(files[one], places, NEW) for one, places in found.items() if places
            }
            yield TypedHistory("imports", path, (step,), wanted)


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    kinds = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
    read = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token for token in read if token.type not in kinds]


def _attributes(source: str, name: str, stem: str) -> set[tuple[int, int, int]]:
    """Where ``stem.name`` stands."""
    tokens = _tokens(source)
    return {
        (token.start[0] - 1, token.start[1], token.end[1])
        for first, dot, token in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if (first.string, dot.string, token.string) == (stem, ".", name)
    }


def _name_tokens(source: str, name: str, stem: str) -> set[tuple[int, int, int]] | None:
    """Where a name stands; None where another object has an attribute of that name."""
    tokens = _tokens(source)
    places = {
        (token.start[0] - 1, token.start[1], token.end[1])
        for before, token in pairwise(tokens)
        if token.string == name and before.string != "."
    }
    dotted = sum(
        before.string == "." and token.string == name for before, token in pairwise(tokens)
    )
    attributes = _attributes(source, name, stem) if stem else set()
    return places | attributes if dotted == len(attributes) else None


def _times_given(source: str, name: str) -> int:
    """How often a file gives a name a meaning, arguments and keywords too."""
    count = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            count += node.name == name
        elif isinstance(node, ast.ImportFrom):
            count += sum(name in (one.name, one.asname) for one in node.names)
        elif isinstance(node, (ast.arg, ast.keyword)):
            count += node.arg == name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            count += node.id == name
    return count


def parameters(path: str, source: str, imported: set[str]) -> Iterator[TypedHistory]:
    """Functions that no other file imports, or calls as attributes of the module."""
    tree, lines = ast.parse(source), columns(source)
    names = Counter(node.name for node in functions(tree))
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or names[node.name] > 1 or node.name in imported:
            continue
        arguments = node.args
        plain = not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs)
        if not plain or arguments.posonlyargs or len(arguments.args) < 2:
            continue
        loaded = [one for one in ast.walk(tree) if isinstance(one, ast.Name)
                  and one.id == node.name]  # fmt: skip
        calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)
                 and isinstance(one.func, ast.Name) and one.func.id == node.name]  # fmt: skip
        if not calls or len(loaded) != len(calls):
            continue
        for number, argument in enumerate(arguments.args):
            wanted = _without_argument(source, lines, calls, number, argument.arg)
            step = _without_parameter(lines, node, number)
            if wanted is None or step is None or wanted == source:
                continue
            line, column, old = step.line, step.column, step.old
            after = columns(wanted)
            if not after[line][column:].startswith(old):
                continue
            after[line] = after[line][:column] + after[line][column + len(old) :]
            yield TypedHistory("parameters", path, (step,), {path: "".join(after)})


def _without_parameter(lines: list[str], node: ast.FunctionDef, number: int) -> Step | None:
    """Deleting a parameter with its annotation, default and comma, on one line."""
    argument, arguments = node.args.args[number], node.args.args
    first_default = len(arguments) - len(node.args.defaults)
    if number >= first_default:
        return None
    line = argument.lineno - 1
    start = column_of(lines, line, argument.col_offset)
    end = column_of(lines, line, argument.end_col_offset or 0)
    if argument.end_lineno != argument.lineno:
        return None
    if number + 1 < len(arguments):
        other = arguments[number + 1]
        if other.lineno - 1 != line:
            return None
        end = column_of(lines, line, other.col_offset)
    else:
        other = arguments[number - 1]
        if other.end_lineno is None or other.end_lineno - 1 != line:
            return None
        start = column_of(lines, line, other.end_col_offset or 0)
    return Step(line, start, lines[line][start:end], "")


def _without_argument(
    source: str, lines: list[str], calls: list[ast.Call], number: int, name: str
) -> str | None:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, utf8: int) -> int:
        return starts[line - 1] + column_of(lines, line - 1, utf8)

    hunks = []
    for call in calls:
        if any(isinstance(one, ast.Starred) for one in call.args):
            return None
        if any(one.arg is None for one in call.keywords):
            return None
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        given = sorted(arguments, key=lambda one: (one.lineno, one.col_offset))
        gone: ast.expr | ast.keyword | None = next(
            (one for one in call.keywords if one.arg == name), None
        )
        if gone is None and number < len(call.args):
            gone = call.args[number]
        if gone is None:
            continue
        at = given.index(gone)
        start = offset(gone.lineno, gone.col_offset)
        end = offset(gone.end_lineno, gone.end_col_offset)  # type: ignore[arg-type]
        if source[end : end + 1] == ")" and source[start - 1 : start] == "(" and len(given) > 1:
            return None
        if at + 1 < len(given):
            end = offset(given[at + 1].lineno, given[at + 1].col_offset)
        elif at:
            before = given[at - 1]
            start = offset(before.end_lineno, before.end_col_offset)  # type: ignore[arg-type]
        hunks.append(TextEdit(start, end, ""))
    hunks.sort(key=lambda one: one.start)
    for one, other in pairwise(hunks):
        if other.start < one.end:
            return None
    return apply_hunks(source, hunks)


def literals(path: str, source: str) -> Iterator[TypedHistory]:
    tree, lines = ast.parse(source), columns(source)
    groups: dict[tuple[str, str, str], list[ast.Constant]] = defaultdict(list)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            value = keyword.value
            if isinstance(value, ast.Constant) and value.end_lineno == value.lineno:
                text = ast.get_source_segment(source, value)
                if text and text[0] in "'\"0123456789":
                    groups[ast.unparse(node.func), keyword.arg or "", text].append(value)
    for (_, _, text), values in groups.items():
        if len(values) < 3:
            continue
        values.sort(key=lambda one: (one.lineno, one.col_offset))
        new = f"{text[0]}fresh{text[0]}" if text[0] in "'\"" else f"{text}7"
        places = []
        for value in values:
            start = column_of(lines, value.lineno - 1, value.col_offset)
            places.append((value.lineno - 1, start, start + len(text)))
        if places[0][0] == places[1][0]:
            continue
        steps = tuple(Step(line, start, text, new) for line, start, _ in places[:2])
        yield TypedHistory("literals", path, steps, {path: replaced(source, set(places), new)})


# Look-alikes


def lookalikes(path: str, source: str, rng: random.Random) -> Iterator[tuple[str, TypedHistory]]:
    """Histories of which nothing, or nothing more, may follow."""
    made = list(renames(path, source))
    for one in made:
        # What the same name is in other functions: the history's own truth leaves it alone.
        step = one.steps[0]
        if source.count(step.old) > one.wanted[path].count(NEW) + 1:
            yield "equal names", one
        typed = Step(step.line, step.column, step.old, NEW[: rng.randrange(1, len(NEW))])
        yield "half-typed", TypedHistory("half-typed", path, (typed,), {})
        yield "undone", TypedHistory("undone", path, (step,), {path: source})
    tree, lines = ast.parse(source), columns(source)
    by_text: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                text = ast.get_source_segment(source, keyword.value) or ""
                if text[:1] in tuple("'\"0123456789") and isinstance(keyword.value, ast.Constant):
                    line = keyword.value.lineno - 1
                    column = column_of(lines, line, keyword.value.col_offset)
                    by_text[text].append((f"{ast.unparse(node.func)}.{keyword.arg}", line, column))
    for text, places in by_text.items():
        roles = {role for role, _, _ in places}
        if len(roles) >= 3:
            chosen = {role: (line, column) for role, line, column in places}
            two = [chosen[role] for role in sorted(roles)[:2]]
            if two[0][0] != two[1][0] and "\n" not in text:
                steps = tuple(
                    Step(line, column, text, f"{text[0]}9{text[1:]}") for line, column in two
                )
                yield "equal literals", TypedHistory("equal literals", path, steps, {})


# Playing


def played(typist: Typist, files: dict[str, str], folder: Path, history: TypedHistory) -> Position:
    document = typist.open(files[history.path], uri=(folder / history.path).as_uri())
    cursor = Position(0, 0)
    for step in history.steps:
        typist.now_s += 3
        place = (step.line, step.column)
        typist.change(document, place, (step.line, step.column + len(step.old)), step.new)
        cursor = Position(step.line, step.column + len(step.new))
    return cursor


def outcome(files: dict[str, str], folder: Path, history: TypedHistory) -> dict[str, str]:
    """The texts behind all next edits, of the files that were proposed to change."""
    typist = Typist(str(folder))
    cursor = played(typist, files, folder, history)
    typist.now_s += 1
    document = typist.documents.get((folder / history.path).as_uri())
    found = typist.next_edits(document, cursor)
    texts = {history.path: document.text}
    by_file = defaultdict(list)
    for one in found:
        if one.new_text is not None:
            start, end = (one.document.offset(at) for at in (one.region.start, one.region.end))
            by_file[one.document].append(TextEdit(start, end, one.new_text))
    for other, hunks in by_file.items():
        path = str(Path(other.uri.removeprefix("file://")).relative_to(folder))
        texts[path] = apply_hunks(other.text, sorted(hunks, key=lambda hunk: hunk.start))
    return texts


def is_shown_while_typed(files: dict[str, str], folder: Path, history: TypedHistory) -> bool:
    """Whether a request in the midst of a word is answered before the word goes on."""

    async def ask() -> bool:
        typist = Typist(str(folder))
        cursor = played(typist, files, folder, history)
        document = typist.documents.get((folder / history.path).as_uri())
        first = asyncio.ensure_future(typist.provider.next_edits(document, cursor))
        await asyncio.sleep(0.02)
        step = history.steps[0]
        end = (step.line, step.column + len(step.new))
        typist.change(document, end, end, NEW[len(step.new) :])
        typist.now_s += 1
        await typist.provider.next_edits(document, Position(*end))
        return bool(await first)

    return asyncio.run(ask())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("repositories", type=Path)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was missed")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    made: dict[str, list[tuple[int, TypedHistory]]] = defaultdict(list)
    alike: dict[str, list[tuple[int, TypedHistory]]] = defaultdict(list)
    repositories = []
    for number, file in enumerate(sorted(options.repositories.glob("*.jsonl"))):
        rows = map(json.loads, file.read_text("utf-8").splitlines())
        files = {row["path"]: row["content"] for row in rows if "\r" not in row["content"]}
        repositories.append(files)
        imported = {
            one.name
            for source in files.values()
            for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)
            for one in node.names
        } | {
            node.attr for source in files.values() for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Attribute)
        }  # fmt: skip
        for path, source in files.items():
            in_file = [*renames(path, source), *literals(path, source)]
            for one in [*in_file, *parameters(path, source, imported)]:
                made[one.kind].append((number, one))
            for kind, one in lookalikes(path, source, rng):
                alike[kind].append((number, one))
        made["imports"] += [(number, one) for one in imports(files)]
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for number, files in enumerate(repositories):
            folder = Path(place, str(number))
            for path, source in files.items():
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(source, "utf-8", newline="")
            folders.append(folder)
        report: dict[str, object] = {}
        exact = total = 0
        for kind, histories in sorted(made.items()):
            chosen = rng.sample(histories, min(options.each, len(histories)))
            right = 0
            for number, one in chosen:
                texts = outcome(repositories[number], folders[number], one)
                right += texts == one.wanted
                if options.show and texts != one.wanted:
                    print(kind, one.path, one.steps, file=sys.stderr)
                    for path in texts.keys() | one.wanted.keys():
                        before = one.wanted.get(path, "").splitlines()
                        after = texts.get(path, "").splitlines()
                        print(*difflib.unified_diff(before, after, path, n=0, lineterm=""),
                              sep="\n", file=sys.stderr)  # fmt: skip
            report[kind] = {"histories": len(chosen), "exact": right}
            exact, total = exact + right, total + len(chosen)
        wrong = count = 0
        for kind, histories in sorted(alike.items()):
            chosen = rng.sample(histories, min(options.each, len(histories)))
            shown = 0
            for number, one in chosen:
                files, folder = repositories[number], folders[number]
                if kind == "half-typed":
                    bad = is_shown_while_typed(files, folder, one)
                elif kind == "equal names":
                    texts = outcome(files, folder, one)
                    bad = texts != one.wanted and texts[one.path] != _typed(files, one)
                elif kind == "undone":
                    bad = _is_shown_undone(files, folder, one)
                else:
                    bad = outcome(files, folder, one) != {one.path: _typed(files, one)}
                shown += bad
                if options.show and bad:
                    print("wrong", kind, one.path, one.steps, file=sys.stderr)
            report[kind] = {"look-alikes": len(chosen), "wrong": shown}
            wrong, count = wrong + shown, count + len(chosen)
        report["total"] = {
            "histories": total, "exact": exact, "look-alikes": count, "wrong": wrong
        }  # fmt: skip
        print(json.dumps(report, indent=1))


def _typed(files: dict[str, str], history: TypedHistory) -> str:
    """The text behind the steps alone."""
    lines = columns(files[history.path])
    for step in history.steps:
        end = step.column + len(step.old)
        lines[step.line] = lines[step.line][: step.column] + step.new + lines[step.line][end:]
    return "".join(lines)


def _is_shown_undone(files: dict[str, str], folder: Path, history: TypedHistory) -> bool:
    typist = Typist(str(folder))
    cursor = played(typist, files, folder, history)
    document = typist.documents.get((folder / history.path).as_uri())
    typist.now_s += 2
    typist.next_edits(document, cursor)
    (step,) = history.steps
    place = (step.line, step.column)
    typist.change(document, place, (step.line, step.column + len(step.new)), step.old)
    typist.now_s += 2
    return bool(typist.next_edits(document, Position(*place)))


if __name__ == "__main__":
    main()
