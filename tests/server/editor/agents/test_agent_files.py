"""Which files agents get, and how several are written: all of them or none."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from planted_secrets import token
from text_cases import data_cases

from lsp_server.editor.agents import agent_files
from lsp_server.editor.agents.agent_files import AgentFiles, FileRefused, replace_all
from operating_system import files_inside

SECRET = "plum-secret-text"


def linked(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def planted(place: Path, text: str = f"seed = '{SECRET}'\n") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def outside(workspace: Path) -> Path:
    planted(workspace.parent / "o" / "o.py")
    return workspace.parent / "o"


def hard_linked(workspace: Path) -> None:
    planted(workspace.parent / "outside.py")
    os.link(workspace.parent / "outside.py", workspace / "a.py")


def ignored(workspace: Path) -> None:
    planted(workspace / "made" / "a.py")
    (workspace / ".gitignore").write_text("made/\n")


REFUSED = {
    "a file outside": ("../outside.py", lambda w: planted(w.parent / "outside.py")),
    "an absolute file outside": ("/etc/passwd", lambda w: None),
    "a way out and in": ("../workspace/../outside.py", lambda w: planted(w.parent / "outside.py")),
    "the folder itself": (".", lambda w: None),
    "the folder above": ("..", lambda w: None),
    "a longer name": ("../workspace2/a.py", lambda w: planted(w.parent / "workspace2/a.py")),
    "a folder": ("sub", lambda w: planted(w / "sub" / "a.py")),
    "nothing": ("", lambda w: None),
    "a name with a zero": ("a\0.py", lambda w: None),
    "no such file": ("none.py", lambda w: None),
    "a link to a file outside": ("a.py", lambda w: linked(w / "a.py", outside(w) / "o.py")),
    "a link to a file inside": ("a.py", lambda w: linked(w / "a.py", w / "shapes.py")),
    "a link to a folder": ("sub/o.py", lambda w: linked(w / "sub", outside(w))),
    "a hard link": ("a.py", hard_linked),
    "a pipe": ("a.py", lambda w: os.mkfifo(w / "a.py")),
    "git's configuration": (".git/config", lambda w: planted(w / ".git" / "config")),
    "git in other letters": (".GIT/config", lambda w: planted(w / ".GIT" / "config")),
    "git of a folder inside": ("sub/.git/hooks/a", lambda w: planted(w / "sub/.git/hooks/a")),
    "git as Windows calls it": ("git~1/config", lambda w: planted(w / "git~1" / "config")),
    "a file that is ignored": ("made/a.py", ignored),
    "what tools made": ("node_modules/a.js", lambda w: planted(w / "node_modules" / "a.js")),
    "a key by its name": ("id_rsa", lambda w: planted(w / "id_rsa")),
    "an environment": (".env", lambda w: planted(w / ".env")),
    "keys of a cloud": (".aws/credentials", lambda w: planted(w / ".aws" / "credentials")),
    "a file that is no text": ("a.py", lambda w: (w / "a.py").write_bytes(b"\xff\xfe\xff")),
    "a binary file": ("a.py", lambda w: (w / "a.py").write_bytes(b"seed = 1\n\0")),
    "a file that is large": ("a.py", lambda w: planted(w / "a.py", "a = 1\n" * (1 << 20))),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_are_not_for_agents_are_refused_in_a_line(workspace: Path, case: str) -> None:
    path, make = REFUSED[case]
    make(workspace)
    with pytest.raises(FileRefused) as refused:
        AgentFiles([workspace]).read(path)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_files_with_secrets_are_refused_without_them(workspace: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    for _ in range(20):
        value = token(generator)[1]
        (workspace / "a.py").write_text(f"seed = '''{value}'''\n")
        with pytest.raises(FileRefused) as refused:
            AgentFiles([workspace]).read("a.py")
        assert not any(line in str(refused.value) for line in value.splitlines() if len(line) > 8)


@pytest.mark.parametrize("name", ["shapes.py", "./shapes.py", "sub/../shapes.py"])
def test_paths_are_relative_to_the_workspace(workspace: Path, name: str) -> None:
    file = AgentFiles([workspace]).read(name)
    assert (file.folder, file.path) == (workspace.resolve(), "shapes.py")
    assert AgentFiles([workspace]).read(str(workspace / name)).path == "shapes.py"


def test_a_workspace_that_is_a_link_is_known_by_both_names(workspace: Path) -> None:
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    for folder in (link, workspace):
        for name in (link, workspace):
            found = folder.samefile(name) and (folder is link or name is workspace)
            if found:
                assert AgentFiles([folder]).read(str(name / "shapes.py")).path == "shapes.py"


def test_of_several_folders_the_one_that_has_it_is_meant(workspace: Path) -> None:
    other = workspace.parent / "other"
    planted(other / "only.py")
    files = AgentFiles([workspace, other])
    assert files.read("only.py").folder == other.resolve()
    assert files.read("shapes.py").folder == workspace.resolve()


@data_cases()
def test_roots_narrow_and_never_widen(
    workspace: Path, roots: list[str], allowed: list[str]
) -> None:
    planted(workspace / "sub" / "a.py", "a = 1\n")
    planted(workspace.parent / "elsewhere" / "a.py", "a = 1\n")
    files = AgentFiles([workspace]).narrowed([workspace / root for root in roots])
    for path in ("sub/a.py", "shapes.py", str(workspace.parent / "elsewhere" / "a.py")):
        if path in allowed:
            assert files.read(path).path == path
        else:
            with pytest.raises(FileRefused, match="outside of the folders"):
                files.read(path)
    assert AgentFiles([workspace]).narrowed(None).read("shapes.py").path == "shapes.py"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_marks_line_ends_and_modes_are_kept(workspace: Path, mark: str, end: str) -> None:
    place = workspace / "a.py"
    place.write_bytes((mark + f"a = 1{end}b = 2").encode())
    place.chmod(0o751)
    file = AgentFiles([workspace]).read("a.py")
    assert file.text == f"a = 1{end}b = 2"
    replace_all([(file, file.text.replace("2", "3"))])
    assert place.read_bytes() == (mark + f"a = 1{end}b = 3").encode()
    assert stat.S_IMODE(place.stat().st_mode) == 0o751


def both(workspace: Path) -> list[agent_files.Change]:
    files = AgentFiles([workspace])
    return [(files.read(name), f"# {name}\n") for name in ("shapes.py", "uses.py")]


def contents(workspace: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in workspace.iterdir() if path.is_file()}


def test_two_files_are_written(workspace: Path) -> None:
    replace_all(both(workspace))
    assert contents(workspace) == {"shapes.py": "# shapes.py\n", "uses.py": "# uses.py\n"}


@pytest.mark.parametrize("name", ["shapes.py", "uses.py"])
def test_none_is_written_where_one_changed(workspace: Path, name: str) -> None:
    changes = both(workspace)
    (workspace / name).write_text("typed meanwhile\n")
    before = contents(workspace)
    with pytest.raises(FileRefused, match="changed meanwhile"):
        replace_all(changes)
    assert contents(workspace) == before


@pytest.mark.parametrize("failing", [1, 2])
def test_none_is_written_where_one_cannot_be(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    changes, before = both(workspace), contents(workspace)
    replace, count = files_inside.replace_file, 0

    def failing_once(*given: object) -> None:
        nonlocal count
        count += 1
        if count == failing:
            raise PermissionError(13, "Permission denied")
        replace(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(files_inside, "replace_file", failing_once)
    with pytest.raises(FileRefused, match="nothing was written"):
        replace_all(changes)
    assert contents(workspace) == before


def test_what_another_process_writes_is_waited_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_files, "LOCK_WAIT_S", 0.05)
    (change, *_) = both(workspace)
    with agent_files._locked([change[0]]), pytest.raises(FileRefused, match="under way"):
        replace_all([change])
    replace_all([change])
    assert contents(workspace)["shapes.py"] == "# shapes.py\n"


def test_paths_of_diffs_and_uris_are_understood(workspace: Path) -> None:
    planted(workspace / "a" / "own.py")
    files = AgentFiles([workspace])
    uri = (workspace / "shapes.py").as_uri()
    for name in ("a/shapes.py", "b/shapes.py", uri, uri.replace("shapes", "%73hapes")):
        assert files.read(name).path == "shapes.py"
    assert files.read("a/own.py").path == "a/own.py"


def test_a_file_that_is_not_there_is_told_by_those_that_are_like_it(workspace: Path) -> None:
    planted(workspace / "sub" / "deep" / "tills.py")
    planted(workspace / ".env", f"shape = '{SECRET}'\n")
    files = AgentFiles([workspace])
    for name, said in (
        ("shape.py", r"there is no file shape\.py; there is shapes\.py$"),
        ("tills.py", r"there is sub/deep/tills\.py$"),
        ("src/deep/tills.py", r"there is sub/deep/tills\.py$"),
        ("quite_different", "name one that exists"),
    ):
        with pytest.raises(FileRefused, match=said):
            files.read(name)
    with pytest.raises(FileRefused, match="name one that exists"):
        files.narrowed([workspace / "sub" / "other"]).read("sub/other/shape.py")


def test_a_new_file_is_made_with_its_folders_and_undone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = AgentFiles([workspace])
    new, old = files.read("x/y/new.py", may_be_new=True), files.read("shapes.py")
    replaced = files_inside.replace_file

    def failing(new: str, old: str, folder: int | None) -> None:
        if old == "shapes.py":
            raise OSError("no")
        replaced(new, old, folder)

    monkeypatch.setattr(files_inside, "replace_file", failing)
    with pytest.raises(FileRefused):
        replace_all([(new, "a = 1\n"), (old, "")])
    assert not (workspace / "x" / "y" / "new.py").exists()
    assert (workspace / "shapes.py").read_text()
    monkeypatch.undo()
    replace_all([(new, "a = 1\n")])
    assert (workspace / "x" / "y" / "new.py").read_text() == "a = 1\n"
    with pytest.raises(FileRefused, match="changed meanwhile"):
        replace_all([(new, "b = 1\n")])
    for name in ("../out.py", ".git/hooks/new", "id_rsa", ".env"):
        with pytest.raises(FileRefused):
            files.read(name, may_be_new=True)
    linked(workspace / "link", outside(workspace))
    with pytest.raises(FileRefused):
        replace_all([(files.read("link/new.py", may_be_new=True), "a = 1\n")])
    assert [file.name for file in outside(workspace).iterdir()] == ["o.py"]
