"""What replicas must know of a workspace travels once, and again to a replica that lacks it."""

from __future__ import annotations

from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
)
from lsp_server.team.ray_serve.views import OpenViews, ViewCache

FOLDER = "repository:1/editor"
OPEN = OpenWorkspace(FOLDER, "/stores/1")


class Recorded:
    """An engine that notes what it is passed."""

    def __init__(self):
        self.notes = []

    def tell(self, note):
        self.notes.append(note)

    @property
    def operations(self):
        operations = [note.operation for note in self.notes]
        self.notes.clear()
        return operations


def set_buffer(path: str, text: str):
    return SetBuffer(FOLDER, path, text)


def test_a_view_is_told_once_and_then_what_changed():
    kept, engine = ViewCache(), Recorded()
    opened = OpenViews(engine)
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    kept.take(set_buffer("b.py", "b = 1\n"))
    assert opened.take(kept.part(FOLDER, [])) == []
    assert sorted(engine.operations) == ["open_workspace", "set_buffer", "set_buffer"]
    assert opened.take(kept.part(FOLDER, [])) == []
    assert engine.operations == []
    kept.take(set_buffer("a.py", "a = 2\n"))
    part = kept.part(FOLDER, [])
    assert part.texts == {"a.py": "a = 2\n"}
    assert opened.take(part) == []
    assert engine.notes == [set_buffer("a.py", "a = 2\n")]


def test_another_replica_asks_for_what_it_lacks():
    kept, engine = ViewCache(), Recorded()
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    kept.part(FOLDER, [])
    opened = OpenViews(engine)
    assert opened.take(kept.part(FOLDER, [])) == ["a.py"]
    assert opened.take(kept.part(FOLDER, ["a.py"])) == []
    assert engine.operations == ["open_workspace", "set_buffer"]


def test_a_closed_document_and_a_new_index_reach_the_replica():
    kept, engine = ViewCache(), Recorded()
    opened = OpenViews(engine)
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    opened.take(kept.part(FOLDER, []))
    engine.notes.clear()
    kept.take(CloseBuffer(FOLDER, "a.py"))
    kept.take(ReloadIndex(FOLDER, "/stores/2"))
    assert opened.take(kept.part(FOLDER, [])) == []
    assert engine.notes[0] == ReloadIndex(FOLDER, "/stores/2")
    assert engine.operations == ["reload_index", "close_buffer"]
    assert kept.part(FOLDER, []).opened.store == "/stores/2"


def test_a_closed_workspace_is_forgotten():
    kept = ViewCache()
    kept.take(OPEN)
    kept.take(CloseWorkspace(FOLDER))
    assert kept.part(FOLDER, []) is None


def test_an_engine_that_was_started_again_is_told_all():
    kept, engine = ViewCache(), Recorded()
    opened = OpenViews(engine)
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    opened.take(kept.part(FOLDER, []))
    engine.notes.clear()
    opened.forget()
    assert opened.take(kept.part(FOLDER, [])) == ["a.py"]
    assert engine.operations == ["open_workspace"]
