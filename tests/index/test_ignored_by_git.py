"""What git ignores, and what git says of the same paths: random trees, random patterns, and every
file that git reads patterns from."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from seeds import Amount
from text_cases import data_beside

from repo_index.files import FileRules

DATA = data_beside(__file__)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

_PIECES = [
    *("a", "b", "A", "*", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[[:upper:]]"),
    *("\\a", "\\*", "**", ".", "[]a]", "é", "[!/]", "[/]", "{a,b}", "[b-a]", "[", "\\", "\\ "),
    *("[a\\]]", "#", "!", "[[:nope:]]", "$", "+", "(", "~", "[a", "\u2028", "\x0c"),
]
_NAMES = "a b A ab ba aa c é a_b #a !a ax.b .e B [ a+b".replace("_", "\u2028").split(" ")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def ignored_by_git(folder: Path, paths: list[str]) -> set[str]:
    """Return those of ``paths`` in ``folder`` that git ignores, whether it follows them or not."""
    answer = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin", "--no-index"],
        cwd=folder,
        input=b"\0".join(map(os.fsencode, paths)),
        capture_output=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    return set(map(os.fsdecode, answer.stdout.split(b"\0"))) - {""}


def pattern(randoms: random.Random) -> str:
    segments = [
        randoms.choice(["**", "*"])
        if randoms.random() < 0.25
        else "".join(randoms.choice(_PIECES) for _ in range(randoms.randrange(1, 4)))
        for _ in range(randoms.choice([1, 1, 1, 2, 2, 3]))
    ]
    start, end = randoms.choice(["", "", "", "/"]), randoms.choice(["", "", "/"])
    blanks = randoms.choice(["", "", "", "", " ", "  ", "\\ ", "\t", "\r"])
    return randoms.choice(["", "", "", "!"]) + start + "/".join(segments) + end + blanks


def patterns(randoms: random.Random, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [pattern(randoms) for _ in range(randoms.randrange(3))]
    start = randoms.choice(["", "", "\ufeff"])
    file.write_text(start + "\n".join(lines) + randoms.choice(["", "\n"]))


def plant(randoms: random.Random, top: Path) -> list[Path]:
    """Make folders, files and ignore files below ``top``; return the folders."""
    folders = [top]
    for _ in range(randoms.randrange(2, 7)):
        folder = randoms.choice(folders) / randoms.choice(_NAMES)
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for _ in range(25):
        file = randoms.choice(folders) / randoms.choice(_NAMES)
        if not file.exists():
            file.write_text("x")
    for folder in randoms.sample(folders, randoms.randrange(len(folders) + 1)):
        patterns(randoms, folder / ".gitignore")
    return folders


def test_random_trees_are_ignored_as_git_ignores_them(
    tmp_path: Path, amount: Amount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repositories, their worktrees, those with their git folder elsewhere, and folders of each
    opened by themselves; the user's file, named and by default, and the repository's."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    randoms = random.Random(seed)
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    for trial in range(amount(40, 4000)):
        top, apart = tmp_path / f"work{trial}", tmp_path / f"git{trial}"
        named = randoms.random() < 0.4
        excludes = tmp_path / "excludes" if named else home / "git" / "ignore"
        setting = f'[core]\n\texcludesFile = "{excludes}" ; mine\n' if named else ""
        (tmp_path / "included").write_text(setting)
        (tmp_path / "config").write_text(
            randoms.choice([setting, "[include]\n path = included\n"])
            + "[user]\nname=a\nemail=a@example.com\n"
        )
        patterns(randoms, excludes)
        top.mkdir()
        git(top, "init", "-q", *(["--separate-git-dir", str(apart)] if trial % 3 == 1 else []))
        patterns(randoms, (apart if trial % 3 == 1 else top / ".git") / "info" / "exclude")
        if randoms.random() < 0.4:
            git(top, "config", "core.ignorecase", "true")
        if trial % 3 == 2:
            git(top, "commit", "-q", "--allow-empty", "-m", "first")
            git(top, "worktree", "add", "-q", str(tmp_path / f"tree{trial}"))
            top = tmp_path / f"tree{trial}"
        folders = plant(randoms, top)
        opened = randoms.choice(folders) if randoms.random() < 0.4 else top
        inside = opened.relative_to(top)
        above = [str(folder) for folder in (inside, *inside.parents) if folder != Path()]
        if above and ignored_by_git(top, above):
            continue
        rules = FileRules(opened)
        paths = [
            path.relative_to(opened).as_posix()
            for path in opened.rglob("*")
            if path.name != ".git" and ".git" not in path.relative_to(opened).parts
        ]
        expected = ignored_by_git(opened, paths)
        files = {path for path in paths if not (opened / path).is_dir()}
        assert {path for path in files if rules.ignored(path)} == expected & files, trial
        filled = {path for path in files if (opened / path).stat().st_size}
        assert {path for path, _ in rules.walk()} == filled - expected, trial


_INCLUDES = DATA["_INCLUDES"]


@pytest.mark.parametrize("how", _INCLUDES)
def test_the_excludes_file_is_found_as_git_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    excludes, included, work = (tmp_path / name for name in ("excludes", "included", "work"))
    excludes.write_text("mine/\n")
    included.write_text(f"[core]\nexcludesFile = {excludes}\n")
    (tmp_path / "loop").write_text(f"[core]\nexcludesFile = {excludes}\n")

    def filled(text: str) -> str:
        for name, path in (("EXCLUDES", excludes), ("INCLUDED", included), ("WORK", work)):
            text = text.replace(name, str(path))
        return text.replace("EXCL\\\nUDES", f"{str(excludes)[:9]}\\\n{str(excludes)[9:]}").replace(
            "LOOP", str(tmp_path / "loop")
        )

    (tmp_path / "config").write_text(filled(_INCLUDES[how][0]))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    (work / "mine").mkdir(parents=True)
    (work / "mine" / "a.py").write_text("a")
    git(work, "init", "-q", "-b", "trial")
    with (work / ".git" / "config").open("a") as config:
        config.write(filled(_INCLUDES[how][1]))
    (work / ".git" / "config.worktree").write_text(included.read_text())
    assert bool(FileRules(work).ignored("mine/a.py")) == bool(ignored_by_git(work, ["mine/a.py"]))


def test_submodules_and_repositories_below_a_plain_folder(tmp_path: Path) -> None:
    """Each is ignored by its own git's files when it is opened by itself; git does not read what
    lies above a repository, and neither do we."""
    library, work, plain = (tmp_path / name for name in ("library", "work", "plain"))
    for folder in (library, work, plain / "inner"):
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
        (folder / "a.py").write_text("a")
        git(folder, "add", "-A")
        git(folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "1")
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib/l")
    git(work, *add)
    (work / ".git/modules/lib/l/info/exclude").write_text("hidden/\n")
    (work / ".gitignore").write_text("*.py\n")
    assert FileRules(work / "lib" / "l").ignored("hidden/a.py")
    assert not FileRules(work / "lib" / "l").ignored("a.py")
    (plain / ".gitignore").write_text("*.py\n")
    (plain / "inner/.git/info/exclude").write_text("b.py\n")
    (plain / "inner/b.py").write_text("a")
    assert [path for path, _ in FileRules(plain).walk()] == [".gitignore", "inner/a.py"]
    assert FileRules(plain, patterns="a.py").ignored("inner/a.py")


def test_an_ignore_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "elsewhere").write_text("*.py\n")
    (tmp_path / ".gitignore").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "a.py").write_text("a")
    assert not ignored_by_git(tmp_path, ["a.py"])
    assert not FileRules(tmp_path).ignored("a.py")
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.unlink()
    exclude.symlink_to(tmp_path / "elsewhere")
    assert ignored_by_git(tmp_path, ["a.py"])
    assert FileRules(tmp_path).ignored("a.py")
