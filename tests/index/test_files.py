"""Which files count, and why the others do not."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from counted_calls import counted_calls
from seeds import Amount
from small_model import SMALL_MODEL
from text_cases import data_beside

from repo_index.files import FileRules, Limits
from repo_index.indexer import Indexer, explain
from repo_index.reading import read_content
from repo_index.source_tree import FolderTree
from repo_index.tokens import TextTokenizer

DATA = data_beside(__file__)


def make(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def counted(root: Path, **options: Limits) -> set[str]:
    tree = FolderTree(root, options.get("limits"))
    found = {path for path, _ in tree.walk()}
    for path in found:
        assert tree.excluded(path) == ""
    for place in root.rglob("*"):
        path = str(place.relative_to(root))
        if path not in found and not place.is_dir():
            assert tree.excluded(path), f"{path} is left out without a reason"
    return {path for path in found if not tree.read(path).reason}


def test_ignore_files_are_obeyed_as_git_obeys_them(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".git/HEAD": "ref: refs/heads/main",
            ".git/info/exclude": "excluded.py\n",
            ".gitignore": "*.tmp\n/only_top.py\nbuild/\n!kept.tmp\ndeep/**/x.py\n"
            "\\#odd.py\n# note\n",
            "a.py": "a",
            "a.tmp": "a",
            "kept.tmp": "a",
            "excluded.py": "a",
            "only_top.py": "a",
            "inner/only_top.py": "a",
            "build/b.py": "a",
            "inner/build/c.py": "a",
            "deep/1/2/x.py": "a",
            "deep/1/y.py": "a",
            "#odd.py": "a",
            "inner/.gitignore": "*.py\n!yes.py\n",
            "inner/no.py": "a",
            "inner/yes.py": "a",
            "inner/more/.gitignore": "!again.py\n",
            "inner/more/again.py": "a",
            "white/.gitignore": "*\n!*.py\n!.gitignore\n",
            "white/w.py": "a",
            "white/w.txt": "a",
        },
    )
    assert counted(tmp_path) == {
        *(".gitignore", "a.py", "kept.tmp", "deep/1/y.py", "inner/.gitignore", "inner/yes.py"),
        *("inner/more/.gitignore", "inner/more/again.py", "white/w.py", "white/.gitignore"),
    }
    tree = FolderTree(tmp_path)
    assert tree.excluded("a.tmp") == "ignored by .gitignore: *.tmp"
    assert tree.excluded("inner/no.py") == "ignored by inner/.gitignore: *.py"
    assert tree.excluded("build/b.py") == "ignored by .gitignore: build/"


def test_our_own_ignore_file_has_the_last_word_but_for_secrets(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "generated/\n*.pem\n",
            ".redraftignore": "!generated/\n*.md\n!*.csv\n!*.pem\n",
            "generated/g.py": "a",
            "doc.md": "a",
            "data.csv": "a,b",
            "key.pem": "a",
        },
    )
    assert counted(tmp_path) == {".gitignore", ".redraftignore", "generated/g.py", "data.csv"}


def test_a_workspace_inside_a_repository_obeys_its_ignore_files(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".git/HEAD": "x",
            ".gitignore": "/part/skip/\n*.gen\n/alone/\n",
            "part/.gitignore": "own.py\n",
            "part/skip/a.py": "a",
            "part/b.py": "a",
            "part/b.gen": "a",
            "part/own.py": "a",
            "alone/c.py": "a",
        },
    )
    assert counted(tmp_path / "part") == {".gitignore", "b.py"}
    # A folder that the repository ignores is indexed all the same when it is what one opens.
    assert counted(tmp_path / "alone") == {"c.py"}


def test_nested_repositories_and_environments_are_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".git/HEAD": "x",
            "a.py": "a",
            "submodule/.git": "gitdir: ../.git/modules/submodule",
            "submodule/s.py": "a",
            "nested/.git/HEAD": "x",
            "nested/n.py": "a",
            "bare/HEAD": "x",
            "bare/objects/1": "a",
            "bare/refs/1": "a",
            "bare/hooks/h.py": "a",
            "myenv/pyvenv.cfg": "home = /",
            "myenv/e.py": "a",
            "node_modules/m/i.js": "a",
        },
    )
    assert counted(tmp_path) == {"a.py"}


def test_repositories_in_a_plain_folder_count(tmp_path: Path) -> None:
    make(tmp_path, {"one/.git/HEAD": "x", "one/a.py": "a", "two/.git/HEAD": "x", "two/b.py": "b"})
    assert counted(tmp_path) == {"one/a.py", "two/b.py"}


def test_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "text.py": "x = 1\n",
            "bom.py": b"\xef\xbb\xbfx = 1\n",
            "wide.py": "x = 1\n".encode("utf-16"),
            "crlf.py": b"a\r\nb\r\n",
            "latin.py": b"\xe9\xe8",
            "zero.py": b"a\0b",
            "empty.py": b"",
            "blank.py": b"\n \n",
            "large.py": b"x = 1\n" * 300_000,
            "wide_lines.json": b"[" + b"1," * 5000 + b"1]",
            "image.png": b"abc",
            "package-lock.json": b"{}",
        },
    )
    assert counted(tmp_path) == {"text.py", "bom.py", "wide.py", "crlf.py"}
    tree = FolderTree(tmp_path)
    assert tree.read("bom.py").text == "x = 1\n"
    assert tree.read("wide.py").text == "x = 1\n"
    assert tree.read("crlf.py").text == "a\nb\n"
    assert "UTF-8" in tree.read("latin.py").reason
    assert "minified" in tree.read("wide_lines.json").reason
    assert "larger" in tree.excluded("large.py")


def test_notebooks_are_read_as_their_cells(tmp_path: Path) -> None:
    cells = [{"source": ["a = 1\n", "b = 2"]}, {"source": "print(a)"}, {"source": []}]
    make(
        tmp_path,
        {
            "n.ipynb": json.dumps({"cells": cells, "metadata": {"image": "A" * 9000}}),
            "bad.ipynb": "{",
            "odd.ipynb": "[1]",
            "deep.ipynb": "[" * 100_000,
        },
    )
    tree = FolderTree(tmp_path)
    assert tree.read("n.ipynb").text == "a = 1\nb = 2\n\nprint(a)\n\n"
    for name in ("bad.ipynb", "odd.ipynb", "deep.ipynb"):
        assert tree.read(name).reason


def test_hostile_entries_are_passed_over_quickly(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "work-evil"
    make(work, {"a.py": "a", "folder/b.py": "b"})
    make(outside, {"secret.py": "outside"})
    (work / "loop").symlink_to(work)
    (work / "folder" / "up").symlink_to("..")
    (work / "me").symlink_to("me")
    (work / "out").symlink_to(outside)
    (work / "out.py").symlink_to(outside / "secret.py")
    (work / "in.py").symlink_to("a.py")
    (work / "device.py").symlink_to("/dev/zero")
    os.mkfifo(work / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work / "socket.py"))
        with (work / "sparse.py").open("wb") as sparse:
            sparse.truncate(4 << 30)
        (work / os.fsdecode(b"bad\xff.py")).write_text("c")
        (work / "new\nline.py").write_text("d")
        started = time.perf_counter()
        found = {path for path, _ in FolderTree(work).walk()}
        # It takes milliseconds; a pipe that is waited for takes for ever.
        assert time.perf_counter() - started < 60
    assert found == {"a.py", "folder/b.py", os.fsdecode(b"bad\xff.py"), "new\nline.py"}
    tree = FolderTree(work)
    for path in ("pipe.py", "device.py", "out.py", "me", "socket.py"):
        with pytest.raises(OSError, match=r".+"):
            tree.read(path)
    assert "leaves the workspace" in tree.excluded("out.py")
    assert "leaves the workspace" in tree.excluded("out/secret.py")
    assert "its own name" in tree.excluded("in.py")
    assert tree.excluded("sparse.py").startswith("larger")


@pytest.mark.parametrize(
    "path",
    ["../work-evil/a.py", "..", "a/../../x", "/etc/passwd", "a\0b", "./a.py", "a//b", "%2e%2e/x"],
)
def test_paths_never_lead_outside(tmp_path: Path, path: str) -> None:
    make(tmp_path, {"work/a.py": "a", "work-evil/a.py": "evil", "x": "evil"})
    tree = FolderTree(tmp_path / "work")
    assert tree.excluded(path)
    assert list(tree.walk(path)) == []


def test_a_folder_that_turns_into_a_link_is_not_followed(tmp_path: Path, amount: Amount) -> None:
    reads = amount(2000, 10_000)
    make(tmp_path, {"work/sub/a.py": "inside", "evil/a.py": "outside"})
    tree = FolderTree(tmp_path / "work")
    ended = threading.Event()
    sub, other = tmp_path / "work" / "sub", tmp_path / "work" / "other"

    def swap() -> None:
        while not ended.is_set():
            sub.rename(other)
            sub.symlink_to(tmp_path / "evil")
            sub.unlink()
            other.rename(sub)

    swapping = threading.Thread(target=swap)
    swapping.start()
    for _ in range(reads):
        try:
            assert tree.read("sub/a.py").text == "inside"
        except OSError:
            continue
    ended.set()
    swapping.join()
    assert tree.read("sub/a.py").text == "inside"


def test_random_paths_stay_inside(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    make(tmp_path, {"work/a/b.py": "a = 1\n", "work-evil/a.py": "evil = 1\n", "a.py": "evil = 1\n"})
    generator = random.Random(2)
    parts = [
        "..",
        ".",
        "a",
        "b.py",
        "",
        "work-evil",
        "a.py",
        "%2e%2e",
        "\\",
        "~",
        "C:",
        "\0",
        "//x",
    ]
    indexer = Indexer(FolderTree(tmp_path / "work"), tmp_path / "store", tokenizer)
    indexer.refresh()
    for _ in range(40):
        paths = ["/".join(generator.choices(parts, k=generator.randint(1, 5))) for _ in range(50)]
        result = indexer.refresh(paths)
        assert set(result.indexed) <= {"a/b.py"}
        assert not result.removed
        for path in paths:
            assert explain(indexer.tree, path, ())
    assert indexer.status().files == 1
    indexer.close()


def test_names_that_differ_in_case_alone_are_one_file_where_the_disk_says_so(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"work/foo.py": "a = 1\n", "work/.ENV": "A=1\n", "work/Id_Rsa": "x"})
    tree = FolderTree(tmp_path / "work")
    tree.rules.case_insensitive = True
    lstat = Path.lstat
    monkeypatch.setattr(
        Path,
        "lstat",
        lambda path: lstat(path.with_name("foo.py") if path.name == "Foo.py" else path),
    )
    indexer = Indexer(tree, tmp_path / "store", tokenizer)
    indexer.refresh()
    indexer.refresh(["Foo.py", "foo.py"])
    assert indexer.status().files == 1
    assert "secret" in explain(indexer.tree, ".ENV", ())
    assert "secret" in explain(indexer.tree, "Id_Rsa", ())
    indexer.close()


def test_a_walk_does_as_much_for_a_file_by_many_patterns_as_by_few(tmp_path: Path) -> None:
    def calls(patterns: int) -> int:
        root = tmp_path / str(patterns)
        lines = "".join(f"ignored{i}/\n*.x{i}\n" for i in range(patterns))
        files = {f"sub/{i}.py": "a = 1\n" for i in range(100)}
        make(root, {".gitignore": lines, "sub/.gitignore": lines} | files)
        rules = FileRules(root)
        assert sum(1 for _ in rules.walk()) == 102
        return counted_calls(lambda: list(rules.walk()))

    assert calls(60) < 1.1 * calls(1)


_AUDITED = DATA["_AUDITED"]


def test_nothing_of_a_workspace_is_run(tmp_path: Path) -> None:
    work, marker = tmp_path / "work", tmp_path / "marker"
    script = f"#!/bin/sh\ntouch {marker}\n"
    config = f'[core]\n fsmonitor = "touch {marker}"\n[filter "x"]\n clean = touch {marker}\n'
    make(
        work,
        {
            "a.py": "a = 1\n",
            ".gitattributes": "* filter=x\n",
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/config": config,
            ".git/objects/x": "",
            ".git/refs/heads/main": "0" * 40,
            ".git/hooks/post-checkout": script,
            "nested/HEAD": "ref: refs/heads/main\n",
            "nested/config": config,
            "nested/objects/x": "",
            "nested/refs/x": "",
            "setup.py": f"open({str(marker)!r}, 'w')\n",
            "conftest.py": f"open({str(marker)!r}, 'w')\n",
            ".venv/pyvenv.cfg": "home = /\n",
            ".venv/bin/python": script,
            "sitecustomize.py": f"open({str(marker)!r}, 'w')\n",
        },
    )
    for path in (work / ".git/hooks/post-checkout", work / ".venv/bin/python"):
        path.chmod(0o755)
    command = [sys.executable, "-c", textwrap.dedent(_AUDITED), work, tmp_path / "s", SMALL_MODEL]
    done = subprocess.run(
        list(map(str, command)), cwd=Path(__file__).parents[2], capture_output=True, check=True
    )
    assert done.stdout == b"[]\n"
    assert not marker.exists()


def test_a_file_of_as_many_bytes_as_may_be_counts_and_one_more_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" * 512)
    assert read_content(tmp_path, "a.py", 3072).reason == ""
    assert read_content(tmp_path, "a.py", 3071).reason == "larger than 2 KiB"
