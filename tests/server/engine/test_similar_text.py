"""What a client sends of its datastore, and a server that drafts from it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from lsp_server.engine import workspaces
from lsp_server.engine.similar_text import similar_text
from lsp_server.engine.workspaces import WorkspaceIndexes, text_tokenizer
from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet, EditJob
from lsp_server.text.byte_budget import fitting_snippets
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from tests.token_files import path_of

SMALL_MODEL = str(Path(__file__).parents[2] / "data" / "small_model")
LINES = [
    f"    total_{name} = measured_width(shape.{name}, unit={number})\n"
    for number, name in enumerate(("left", "right", "top", "bottom", "depth", "margin"))
]
BEFORE, AFTER = "def widths(shape):\n" + "".join(LINES[:2]), "\nprint(widths)\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The datastore of a workspace with a file like the text, another one, and one with a key."""
    work = tmp_path_factory.mktemp("work")
    (work / "like.py").write_text("def other(shape):\n" + "".join(LINES))
    (work / "own.py").write_text("def own(shape):\n" + "".join(LINES) + "own_file = 1\n")
    (work / "unlike.py").write_text("import os\nprint(os.sep)\n")
    secret = "AWS_SECRET_ACCESS_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY'\n"
    (work / "secret.py").write_text(secret + "".join(LINES))
    folder = tmp_path_factory.mktemp("store")
    indexer = Indexer(FolderTree(work), folder, text_tokenizer(SMALL_MODEL))
    indexer.refresh()
    indexer.close()
    return str(folder)


def test_similar_places_and_continuations_of_other_files_are_sent(store: str) -> None:
    continuations, places = similar_text(store, SMALL_MODEL, "own.py", BEFORE, AFTER)
    assert [place.path for place in places] == ["like.py"]
    assert "".join(LINES) in places[0].text
    assert continuations.path == ""
    assert LINES[2].strip() in continuations.text
    assert "AWS" not in continuations.text


@pytest.mark.parametrize("text", ["", "x", "\ud800", "é" * 5000])
def test_any_text_can_be_looked_up(store: str, text: str) -> None:
    continuations, _ = similar_text(store, SMALL_MODEL, "own.py", text, text)
    assert len(continuations.text.encode()) <= 16 << 10


def test_what_is_sent_is_no_longer_than_may_be() -> None:
    snippets = [ContextSnippet(str(number), f"{number}" + "é" * 100) for number in range(5)]
    for most, count in ((0, 0), (201, 0), (202, 1), (1010, 5), (1009, 4)):
        chosen = fitting_snippets(most, [ContextSnippet("", ""), *snippets])
        assert chosen == snippets[:count]


def completion(path: str, *similar: ContextSnippet) -> CompletionJob:
    return CompletionJob("", path, BEFORE, AFTER, similar=list(similar), owner="ann")


def continued(indexes: WorkspaceIndexes, job: CompletionJob) -> set[str]:
    """The files that the index of a job knows continuations from."""
    snapshot = indexes.snapshot_for(job)
    if snapshot is None:
        return set()
    context = indexes.tokenizer.encode([LINES[2]])[0][1:8]
    matches = snapshot.lookup(context)
    rows = zip(matches.files.tolist(), matches.lengths.tolist(), strict=True)
    return {path_of(snapshot, file) for file, length in rows if length == len(context)}


def test_a_job_is_drafted_from_the_texts_that_it_carries_and_from_no_earlier_ones() -> None:
    indexes = WorkspaceIndexes(SMALL_MODEL, common=False)
    like, more = (ContextSnippet(path, "".join(LINES)) for path in ("like.py", "more.py"))
    assert continued(indexes, completion("a.py")) == set()
    assert continued(indexes, completion("a.py", like)) == {"like.py"}
    assert continued(indexes, completion("b.py", ContextSnippet("x.py", "y = 1\n"))) == set()
    assert continued(indexes, completion("a.py", more)) == {"more.py"}
    assert continued(indexes, completion("a.py", like, more)) == {"like.py", "more.py"}
    assert continued(indexes, completion("a.py")) == set()


def test_the_text_of_the_document_is_looked_up_too() -> None:
    indexes = WorkspaceIndexes(SMALL_MODEL, common=False)
    edit = EditJob(
        "", "own.py", "shorten", "".join(LINES), similar=[ContextSnippet("x.py", "y = 1\n")]
    )
    snapshot = indexes.snapshot_for(edit)
    assert snapshot is not None
    context = indexes.tokenizer.encode([LINES[2]])[0][1:8]
    assert np.max(snapshot.lookup(context).lengths) == len(context)


def test_texts_of_few_documents_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "MOST_SENT", 2)
    indexes = WorkspaceIndexes(SMALL_MODEL, common=False)
    like = ContextSnippet("like.py", "".join(LINES))
    for owner, path in itertools.product(("ann", "ben"), ("a.py", "b.py")):
        indexes.snapshot_for(CompletionJob("", path, "x = ", "", similar=[like], owner=owner))
    assert len(indexes.folders) == 2
    indexes.clear()
    assert indexes.folders == []
