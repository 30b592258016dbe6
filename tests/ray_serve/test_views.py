"""What replicas must know of a workspace travels once, and again to a replica that lacks it."""

from __future__ import annotations

from lsp_server.ray_serve.views import KeptViews, OpenViews

FOLDER = "repository:1/editor"
OPEN = {"op": "open_workspace", "folder": FOLDER, "store": "/stores/1"}


class Recorded:
    """An engine that notes what it is passed."""

    def __init__(self):
        self.frames = []

    def pass_on(self, frame):
        self.frames.append(frame)

    @property
    def operations(self):
        operations = [frame["op"] for frame in self.frames]
        self.frames.clear()
        return operations


def set_buffer(path: str, text: str):
    return {"op": "set_buffer", "folder": FOLDER, "path": path, "text": text}


def test_a_view_is_told_once_and_then_what_changed():
    kept, engine = KeptViews(), Recorded()
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
    assert engine.frames == [set_buffer("a.py", "a = 2\n")]


def test_another_replica_asks_for_what_it_lacks():
    kept, engine = KeptViews(), Recorded()
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    kept.part(FOLDER, [])
    opened = OpenViews(engine)
    assert opened.take(kept.part(FOLDER, [])) == ["a.py"]
    assert opened.take(kept.part(FOLDER, ["a.py"])) == []
    assert engine.operations == ["open_workspace", "set_buffer"]


def test_a_closed_document_and_a_new_index_reach_the_replica():
    kept, engine = KeptViews(), Recorded()
    opened = OpenViews(engine)
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    opened.take(kept.part(FOLDER, []))
    engine.frames.clear()
    kept.take({"op": "close_buffer", "folder": FOLDER, "path": "a.py"})
    kept.take({"op": "reload_index", "folder": FOLDER, "store": "/stores/2"})
    assert opened.take(kept.part(FOLDER, [])) == []
    assert engine.frames[0] == {"op": "reload_index", "folder": FOLDER, "store": "/stores/2"}
    assert engine.operations == ["reload_index", "close_buffer"]
    assert kept.part(FOLDER, []).opened["store"] == "/stores/2"


def test_a_closed_workspace_is_forgotten():
    kept = KeptViews()
    kept.take(OPEN)
    kept.take({"op": "close_workspace", "folder": FOLDER})
    assert kept.part(FOLDER, []) is None


def test_an_engine_that_was_started_again_is_told_all():
    kept, engine = KeptViews(), Recorded()
    opened = OpenViews(engine)
    kept.take(OPEN)
    kept.take(set_buffer("a.py", "a = 1\n"))
    opened.take(kept.part(FOLDER, []))
    engine.frames.clear()
    opened.forget()
    assert opened.take(kept.part(FOLDER, [])) == ["a.py"]
    assert engine.operations == ["open_workspace"]
