"""Text of other files: what is imported first, within the budget, in an order that stays."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from text_cases import data_cases

from lsp_server.editor.completion.context import MOST_FILES, OpenFiles
from lsp_server.editor.completion.request import (
    PREFIX_CHARACTERS,
    STEP,
    SUFFIX_CHARACTERS,
    CompletionRequest,
)
from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet
from lsp_server.shared.settings import ContextSettings, read_settings
from lsp_server.tasks.completion import cross_file
from lsp_server.tasks.completion.cross_file import Chosen, CrossFile
from lsp_server.text.documents.allowed_files import AllowedFiles
from lsp_server.text.documents.document import Documents
from lsp_server.text.documents.secret_documents import SecretDocuments
from lsp_server.text.documents.workspace_folders import Folders
from lsp_server.text.syntax.imports import imports_of
from lsp_server.text.syntax.outline import outline
from tests.token_files import datastore_of

SHAPES = """import math


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius ** 2


class Square:
    def perimeter(self):
        return 4 * self.side
"""


class Words:
    """A tokenizer of words and single other characters, for indexes that tests can read."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> np.ndarray[Any, np.dtype[np.int32]]:
        words = re.findall(r"\w+|\W", text)
        return np.array([self._ids.setdefault(word, len(self._ids)) for word in words], np.int32)

    def decode(self, tokens: np.ndarray[Any, Any]) -> str:
        spelt = list(self._ids)
        return "".join(spelt[token] for token in tokens.tolist())


FILES = {
    "shop/shapes.py": SHAPES,
    "shop/prices.py": "def price_of(shape):\n    return shape.area() * 3\n",
    "shop/__init__.py": "VERSION = 1\n",
    "far/report.py": (
        "def unrelated():\n    pass\n\n" * 20
        + "def total_price(basket):\n    total = 0\n    for shape in basket.shapes:\n"
        + "        total += price_of(shape) * basket.count(shape)\n    return total\n"
    ),
    "far/other.py": "x = 1\n" * 50,
}
PREFIX = """from .shapes import Circle
from shop.prices import price_of
import os


def total(basket):
    total = 0
    for shape in basket.shapes:
        total += """


SECRET = f"key = '{'ghp_' + 'aB3dE6gH9k' * 3 + 'Zx4Yw7'}'"
JOB = CompletionJob("/w", "shop/basket.py", PREFIX, "\n    return total\n")


class Engine:
    """Cross-file context over an index in memory."""

    def __init__(self, files: dict[str, str] | None = None) -> None:
        self.words = Words()
        encoded = {path: self.words.encode(text) for path, text in (files or FILES).items()}
        self.snapshot = datastore_of(encoded).snapshot()
        self.cross_file = CrossFile(self.words.encode, self.words.decode)

    def snippets(self, budget: int = 800, **changes: Any) -> list[ContextSnippet]:
        return self.cross_file.snippets(replace(JOB, **changes), self.snapshot, budget)

    def fresh(self, budget: int = 800, **changes: Any) -> Chosen | None:
        return self.cross_file.fresh(replace(JOB, **changes), self.snapshot, budget)

    def use(self, chosen: Chosen) -> None:
        self.cross_file.use(JOB, chosen)

    def paths(self, budget: int = 800, **changes: Any) -> list[str]:
        return [one.path for one in self.snippets(budget, **changes)]


def test_imported_files_come_first_then_open_ones_then_similar_places() -> None:
    opened = [
        ContextSnippet("shop/apple.py", "APPLE = 1"),
        ContextSnippet("shop/zebra.py", "ZEBRA = 1"),
    ]
    paths = Engine().paths(snippets=opened)
    assert paths == ["shop/shapes.py", "shop/prices.py", "shop/apple.py", "shop/zebra.py",
                     "far/report.py"]  # fmt: skip


def test_an_open_file_that_is_imported_stands_once_as_it_is_in_the_editor() -> None:
    opened = [ContextSnippet("shop/prices.py", "def price_of(shape, discount): ...")]
    found = {one.path: one.text for one in Engine().snippets(snippets=opened)}
    assert found["shop/prices.py"] == opened[0].text


def test_the_similar_place_is_the_part_that_is_alike_in_whole_lines() -> None:
    (found,) = (one for one in Engine().snippets() if one.path == "far/report.py")
    assert "total += price_of(shape)" in found.text
    assert all(line in FILES["far/report.py"].split("\n") for line in found.text.split("\n"))


def test_the_file_itself_is_no_context_of_itself() -> None:
    engine = Engine({**FILES, "shop/basket.py": PREFIX})
    assert "shop/basket.py" not in engine.paths()


def test_the_budget_is_kept_in_tokens() -> None:
    engine = Engine()
    for budget in (0, 20, 30, 60, 120, 400):
        found = engine.snippets(budget)
        cost = sum(len(engine.words.encode(f"{one.path}\n{one.text}")) + 1 for one in found)
        assert cost <= budget
    assert engine.snippets(60)


def test_typing_changes_nothing_until_the_cursor_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, looked = Engine(), 0
    search = cross_file.similar_places

    def counted(*args: Any) -> Any:
        nonlocal looked
        looked += 1
        return search(*args)

    monkeypatch.setattr(cross_file, "similar_places", counted)
    first = engine.snippets()
    for typed in ("p", "price", "price_of(shape)\n        x = 1\n"):
        assert engine.snippets(prefix=PREFIX + typed) is first
    assert engine.snippets(prefix=PREFIX + "\n" * 100) is first
    assert looked == 1
    engine.fresh(prefix=PREFIX + "\n" * 100)
    assert looked == 2


def test_a_change_of_another_file_changes_the_prompt_when_nobody_waits() -> None:
    engine = Engine()
    before, after = (
        ContextSnippet("shop/prices.py", "A = 1"),
        ContextSnippet("shop/prices.py", "B = 2"),
    )
    first = engine.snippets(snippets=[before])
    assert engine.fresh(snippets=[before]) is None
    assert engine.snippets(snippets=[after]) is first
    found = engine.fresh(snippets=[after])
    assert found is not None
    assert "B = 2" in [one.text for one in found.snippets]
    assert engine.snippets(snippets=[after]) is first, "the new prompt is not computed yet"
    engine.use(found)
    assert engine.snippets(snippets=[after]) is found.snippets
    assert engine.fresh(snippets=[after]) is None


def test_a_file_indexed_anew_stays_in_the_prompt_as_it_was() -> None:
    engine = Engine()
    first = engine.snippets()
    changed = {**FILES, "shop/prices.py": "def price_of(shape, discount):\n    return 0\n"}
    encoded = {path: engine.words.encode(text) for path, text in changed.items()}
    engine.snapshot = datastore_of(encoded).snapshot()
    assert engine.snippets() is first
    found = engine.fresh()
    assert found is not None
    assert "discount" in "".join(one.text for one in found.snippets)


@pytest.mark.parametrize("by", ["a secret", "being held back"])
def test_what_may_stand_in_no_prompt_any_more_is_left_out_at_once(by: str) -> None:
    engine = Engine()
    opened = ContextSnippet("apple.py", "APPLE = 1")
    assert "apple.py" in engine.paths(snippets=[opened])
    secret = ContextSnippet("apple.py", SECRET)
    assert "apple.py" not in engine.paths(snippets=[secret] if by == "a secret" else [])


def test_secrets_are_left_out_however_many_files_were_looked_through() -> None:
    engine = Engine()
    for number in range(2 * cross_file.DOCUMENTS):
        others = [
            ContextSnippet(f"other{number}.py", f"X = {number}"),
            ContextSnippet("apple.py", SECRET),
        ]
        assert "apple.py" not in engine.paths(snippets=others)


def test_a_document_that_is_opened_again_has_its_context_chosen_anew() -> None:
    engine = Engine()
    first = engine.snippets(snippets=[ContextSnippet("apple.py", "A = 1")])
    engine.cross_file.forget("/w", "shop/other.py")
    later = [ContextSnippet("apple.py", "B = 2")]
    assert engine.snippets(snippets=later) is first
    engine.cross_file.forget("/w", "shop/basket.py")
    assert "B = 2" in [one.text for one in engine.snippets(snippets=later)]


def test_a_new_import_and_a_file_indexed_anew_change_the_choice() -> None:
    engine = Engine()
    before = engine.paths()
    assert "far/other.py" not in before
    assert "far/other.py" in engine.paths(prefix="import far.other\n" + PREFIX)
    engine.snapshot = datastore_of({}).snapshot()
    assert "shop/shapes.py" not in engine.paths()


def test_without_an_index_the_open_files_remain() -> None:
    engine = Engine()
    job = CompletionJob("", "basket.py", PREFIX, "", snippets=[ContextSnippet("a.py", "A = 1")])
    assert [one.path for one in engine.cross_file.snippets(job, None, 400)] == ["a.py"]


def paths_of(text: str, path: str) -> list[str]:
    return [path for one in imports_of(text, path) for path in one.paths]


def test_imports_of_python() -> None:
    text = (
        "import os.path as p, json\nfrom ..core import (one,  # first\n    two)\nfrom . import x\n"
    )
    found = paths_of(text, "pkg/sub/here.py")
    for wanted in ("os/path.py", "json.py", "pkg/core.py", "pkg/core/one.py", "pkg/sub/x.py"):
        assert wanted in found
    names = [one.names for one in imports_of(text, "pkg/sub/here.py")]
    assert ("one", "two") in names


@data_cases()
def test_imports_of_other_languages(path: str, text: str, wanted: str) -> None:
    assert wanted in paths_of(text, path)


def test_no_import_leads_out_of_the_workspace_into_a_file() -> None:
    engine = Engine({**FILES, "secret.py": "S = 1\n"})
    assert engine.paths(prefix="from ....etc import passwd\n", suffix="") == []


def test_an_outline_keeps_the_files_order_and_prefers_what_is_imported() -> None:
    text = SHAPES * 3
    assert outline(SHAPES, 10_000) == SHAPES
    short = outline(SHAPES + "\n" * 500, 45, ["Square"])
    assert short == "class Square:\n    def perimeter(self):"
    for room in range(0, len(text), 17):
        assert len(outline(text, room)) <= room


def opened(**texts: str) -> tuple[Documents, OpenFiles]:
    documents = Documents()
    for name, text in texts.items():
        documents.open(f"file:///w/{name}.py", "python", 1, text)
    documents.open("file:///w/other.lua", "lua", 1, "function f() end\n")
    secrets = SecretDocuments(AllowedFiles())
    return documents, OpenFiles(
        documents, Folders(), lambda document: not secrets.withheld_reason(document)
    )


ASK = CompletionRequest("file:///w/here.py", "here.py", "/w", "python", "", "")


def test_open_files_of_the_language_by_name_and_no_secrets() -> None:
    body = "\n".join(
        "MIIEpAIBAAKCAQEA7bq3vX9zYt1Kc0Jm5rPqWnLx2dVhUfGs8aTeyRwQ4uIoZkCj" for _ in range(6)
    )
    key = "-----BEGIN RSA " + f"PRIVATE KEY-----\n{body}\n-----END RSA " + "PRIVATE KEY-----\n"
    texts = {"zebra": "Z = 1\n", "apple": "A = 1\n", "here": "H = 1\n", "id_rsa": "I = 1\n"}
    documents, files = opened(**texts)
    documents.open("file:///w/.env", "python", 1, "E = 1\n")
    snippets = [ContextSnippet("hidden.py", key), ContextSnippet("shown.py", "S = 1")]
    paths = Engine().paths(snippets=snippets)
    assert "shown.py" in paths
    assert "hidden.py" not in paths
    assert [one.path for one in files.snippets(ASK, ContextSettings())] == [
        "apple.py",
        "id_rsa.py",
        "zebra.py",
    ]
    assert files.snippets(ASK, ContextSettings(cross_file=False)) == []


def test_an_outline_is_made_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    from lsp_server.editor.completion import context

    documents, files = opened(apple="A = 1\n", zebra="Z = 1\n")
    made: list[str] = []
    monkeypatch.setattr(context, "outline", lambda text, room: made.append(text) or text)
    for _ in range(5):
        files.snippets(ASK, ContextSettings())
    assert len(made) == 2
    document = documents.get("file:///w/zebra.py")
    document.replace_all("Z = 2\n")
    document.version = 2
    assert "Z = 2\n" in [one.text for one in files.snippets(ASK, ContextSettings())]
    assert len(made) == 3
    documents.close("file:///w/apple.py")
    assert len(files.snippets(ASK, ContextSettings())) == 1


def test_many_open_files_are_bounded() -> None:
    _, files = opened(**{f"f{number}": "X = 1\n" for number in range(30)})
    assert len(files.snippets(ASK, ContextSettings())) == MOST_FILES


@data_cases()
def test_the_budget_is_set_for_all_models_or_for_one(values: dict[str, Any], tokens: int) -> None:
    assert read_settings(values).settings.context_tokens == tokens


def between(prefix: str, suffix: str) -> CompletionRequest:
    return CompletionRequest("d", "d.py", "", "python", prefix, suffix)


def test_the_window_of_a_long_text_begins_at_a_line_and_stays_while_typing() -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    windows = [between(text + "x" * typed, "").windowed_prefix for typed in range(0, STEP // 2, 50)]
    assert len({window[:20] for window in windows}) <= 2
    window = between(text, "").windowed_prefix
    assert window.startswith("line ")
    assert text.endswith(window)
    assert len(window) <= PREFIX_CHARACTERS
    after = between("", text).windowed_suffix
    assert text.startswith(after)
    assert after.endswith("\n")
    assert len(after) <= SUFFIX_CHARACTERS
    short = between("before", "after")
    assert (short.windowed_prefix, short.windowed_suffix) == ("before", "after")


def test_owners_with_files_of_one_name_are_told_their_own_texts() -> None:
    """Documents without a repository have one workspace, the empty one, for all users."""
    engine = Engine()
    for owner in ("ann", "bob", "ann"):
        open_file = ContextSnippet("shop/shapes.py", f"class Of_{owner}:\n    pass\n")
        told = engine.cross_file.snippets(
            replace(JOB, workspace="", owner=owner, snippets=[open_file]), None, 800
        )
        assert [f"Of_{owner}" in one.text for one in told] == [True]
